"""Stack samples as recorded: their types, files and stages, and requests for more."""
