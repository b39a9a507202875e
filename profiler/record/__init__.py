"""In the training process and its workers: hooks, times, and the lanes they are written to."""
