"""Sampling of fetches: in some of them, files opened, bytes read and from
where."""
