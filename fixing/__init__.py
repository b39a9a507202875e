"""Advice as a change of the user's own source: the lines it is about, the edit, the diff, and
writing it."""
