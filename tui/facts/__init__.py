"""From a `Run` to what a screen shows: pure functions, frozen values."""
