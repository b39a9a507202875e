"""For those who want Loaderscope in their code: callbacks, and a notebook's magic. Each module imports its framework."""
