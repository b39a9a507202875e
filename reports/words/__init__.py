"""What is said, whatever the format: glosses, units, rows, sentences."""
