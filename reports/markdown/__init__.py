"""Reports for GitHub and CI comments."""
