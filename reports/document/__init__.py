"""What is said and in which order, as blocks that every format draws."""
