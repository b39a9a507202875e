"""Start-up code for Python processes of a recorded run; not for import."""
