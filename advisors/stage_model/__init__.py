"""From a run's columns to stages, their capacities, what is waited for, and a verdict."""
