"""Functions known to be slow: how they are found in stacks or source, and what to use instead."""
