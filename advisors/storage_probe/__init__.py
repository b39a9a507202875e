"""Tries other layouts of a data set on a copy of a sample of its files, in a temporary folder."""
