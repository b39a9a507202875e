"""Rules about the workers: how many, how they start, what they hold and hand over."""
