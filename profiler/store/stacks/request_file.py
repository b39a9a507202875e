"""The file in a run directory by which a burst of stacks is asked for: apart, so that the sampler,
which looks for it at each tick, need not load what asks."""

REQUEST = "stacks.request"
