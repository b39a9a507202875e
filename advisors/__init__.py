"""From a `Run` to a `Report`: stage statistics and, on top of them, advice."""
