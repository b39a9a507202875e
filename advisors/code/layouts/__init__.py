"""Layouts of stored data: for each, the code that converts a data set to it, and a loader that
reads it."""
