"""Watching: kinds of loaders, their iterators, and the recorder that turns clock readings into
records."""
