"""Code to paste, written for the user's own loader."""
