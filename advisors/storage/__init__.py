"""What is read, and which layout of the data fits."""
