"""What the reading thread works out of a `Run` for the screens: pure functions, frozen values."""
