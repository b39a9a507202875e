"""A look inside some fetches: chains of transforms, files opened, bytes read and from where."""
