"""A `Report` as text people and programs read: each format a pure function."""
