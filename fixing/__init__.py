"""Advice as a change of the user's own source: which lines it is about, the edit, the diff, and
writing it."""
