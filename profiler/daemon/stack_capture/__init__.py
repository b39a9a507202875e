"""Capturing stacks with py-spy: when, of whom, and what is kept."""
