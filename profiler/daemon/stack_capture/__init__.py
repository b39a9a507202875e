"""Capturing stacks with py-spy: when, of which processes, and what their threads wait for."""
