"""From a run's columns to stages, what is waited for, and a verdict."""
