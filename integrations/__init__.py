"""Callbacks for those who want Loaderscope in their code; each module imports its framework, nothing else does."""
