"""What a rule sees of one loader, and what it may answer."""
