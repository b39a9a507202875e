"""From the training process to a `Run`: hooks, the envelope, lanes, the system sampler."""
