"""Records on their way to files and back: lanes, the memory behind them, segments,
columns."""
