"""Stack samples as recorded: their types, their files, the stage each belongs to, asking for
more."""
