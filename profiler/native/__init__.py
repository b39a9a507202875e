"""What runs once a batch, in two forms: compiled (`src/`), and the Python that does the same a few
times slower."""
