"""Reports as one file for a browser."""
