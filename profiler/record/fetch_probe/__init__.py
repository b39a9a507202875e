"""Sampling of fetches: in some of them, chains of transforms, files opened, bytes read and from
where."""
