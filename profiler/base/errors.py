"""What can go wrong for a user, as one small tree.

    LoaderscopeError
    ├── RunNotFound      no run of that name, or no run at all
    ├── RunUnreadable    a run directory that is corrupt, foreign, or of a newer version
    └── UsageError       an argument that makes no sense

Each message is one sentence a person can act on; the command line prints it and exits with 2.
"""


class LoaderscopeError(Exception):
    """Base of every error raised to the user: its text is one sentence that says what is wrong and
    how to fix it."""


class RunNotFound(LoaderscopeError):
    """There is no such run."""


class RunUnreadable(LoaderscopeError):
    """A run directory exists but cannot be read as a run."""


class UsageError(LoaderscopeError):
    """An argument is wrong."""
