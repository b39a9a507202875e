"""What is asked of git, which writes nothing into the project's own repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from ..profiler.base.errors import UsageError

# Set by hooks and by whoever calls from another repository.
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
_QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_LFS_SKIP_SMUDGE": "1", "GIT_TERMINAL_PROMPT": "0"}


NOT_INSTALLED = 127


def git(
    folder: Path, *arguments: str, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """How this git command went in that folder."""
    if shutil.which("git") is None:
        return subprocess.CompletedProcess("git", NOT_INSTALLED, "", "")
    env = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    ceiling = {"GIT_CEILING_DIRECTORIES": str(folder.parent)} if given is not None else {}
    return subprocess.run(
        ["git", "-c", "core.hooksPath=/dev/null", *arguments],
        cwd=folder,
        env={**env, **_QUIET, **ceiling},
        input=given,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    )


def top_of(folder: Path) -> Path | None:
    """The work tree's root that this folder lies in."""
    told = git(folder, "rev-parse", "--show-toplevel")
    return None if told.returncode else Path(told.stdout.rstrip("\n"))


def project_folder(here: Path) -> Path:
    """The git work tree that a folder lies in, else the folder itself."""
    return (top_of(here) or here).resolve()


def files_of(root: Path, *options: str) -> list[str]:
    """What `git ls-files` lists, as paths from the root."""
    told = git(root, "ls-files", "-z", *options)
    return [] if told.returncode else list(filter(None, told.stdout.split("\0")))


def commit_of(root: Path, revision: str) -> str:
    """The commit of that name. Raises UsageError."""
    if top_of(root) is None:
        raise UsageError(f"--against needs a git repository, and {root} lies in none")
    told = git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}")
    if told.returncode:
        raise UsageError(f"there is no commit {revision!r} in {root}; see `git log`")
    return told.stdout.strip()


def add_repository(root: Path, into: Path, commit: str | None = None) -> None:
    """A repository of its own for the copy, with the objects of the project's: scripts ask it for
    their commit. With `commit`, its files too. Raises UsageError where they cannot be had.

    A work tree of the project's repository would be noted there, and outlive a killed trial.
    """
    cloned = into / ".loaderscope-clone"
    told = git(
        into, "clone", "-q", "--shared", "--no-checkout", "--template=", str(root), cloned.name
    )
    if told.returncode:
        shutil.rmtree(cloned, ignore_errors=True)
    else:
        (cloned / ".git").rename(into / ".git")
        cloned.rmdir()
        take = ("checkout", "-q", "--force", "--detach", commit) if commit else ("reset", "-q")
        told = git(into, *take)
    if commit and told.returncode:
        why = told.stderr.strip().splitlines()[-1:]
        raise UsageError(f"{commit[:12]} cannot be checked out: {' '.join(why)}")
