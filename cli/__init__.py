"""The `loaderscope` command, a file a verb. Each is a short function that calls one floor below."""

from .command import cli, main

__all__ = ["cli", "main"]
