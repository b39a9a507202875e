"""A process's part of a run: its folder, its facts, and the start of the system sampler."""
