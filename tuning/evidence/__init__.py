"""Whether batches depend on their indices alone, and what keeps other settings from making them."""
