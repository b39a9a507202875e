"""Whole batches instead of samples: whether a data set can give them, and the code for it."""
