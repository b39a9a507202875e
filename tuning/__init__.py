"""Tuning: tries a loader's settings on the training that goes on, and keeps the best proven
ones."""
