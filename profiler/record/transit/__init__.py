"""A batch's way through a worker and its queue: fetchers, envelope, the worker's own loop."""
