"""Iterators of torch's own that take turns behind one of ours: each batch comes once, in order."""
