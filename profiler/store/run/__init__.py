"""A run directory read as a `Run`: found, opened, followed while it grows."""
