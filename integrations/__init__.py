"""For those who want Loaderscope in their code: callbacks, a notebook's magic. Each module imports
its framework."""
