"""Calls of git. None writes into the project's repository."""

import os
import shutil
import subprocess
from pathlib import Path

from ..profiler.base.errors import UsageError

# Set by git's hooks, or by a caller in another repository.
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
_QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_LFS_SKIP_SMUDGE": "1", "GIT_TERMINAL_PROMPT": "0"}


NOT_INSTALLED = 127


def git(
    folder: Path, *arguments: str, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a git command in this folder."""
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
    """The root of the work tree that contains this folder."""
    done = git(folder, "rev-parse", "--show-toplevel")
    return None if done.returncode else Path(done.stdout.rstrip("\n"))


def project_folder(here: Path) -> Path:
    """The git work tree that contains this folder, else the folder itself."""
    return (top_of(here) or here).resolve()


def files_of(root: Path, *options: str) -> list[str]:
    """The output of `git ls-files`, as paths relative to the root."""
    done = git(root, "ls-files", "-z", *options)
    return [] if done.returncode else list(filter(None, done.stdout.split("\0")))


def commit_of(root: Path, revision: str) -> str:
    """The id of a commit. Raises UsageError."""
    if top_of(root) is None:
        raise UsageError(f"--against needs a git repository, and {root} lies in none")
    done = git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}")
    if done.returncode:
        raise UsageError(f"there is no commit {revision!r} in {root}; see `git log`")
    return done.stdout.strip()


def add_repository(root: Path, into: Path, commit: str | None = None) -> None:
    """Give the copy its own repository, which shares the objects of the project's: scripts ask for
    their commit. With `commit`, check its files out. Raises UsageError if that fails.

    `git worktree` would register the copy in the project's repository, where it would outlive a
    killed trial.
    """
    cloned = into / ".loaderscope-clone"
    done = git(
        into, "clone", "-q", "--shared", "--no-checkout", "--template=", str(root), cloned.name
    )
    if done.returncode:
        shutil.rmtree(cloned, ignore_errors=True)
    else:
        (cloned / ".git").rename(into / ".git")
        cloned.rmdir()
        take = ("checkout", "-q", "--force", "--detach", commit) if commit else ("reset", "-q")
        done = git(into, *take)
    if commit and done.returncode:
        why = done.stderr.strip().splitlines()[-1:]
        raise UsageError(f"{commit[:12]} cannot be checked out: {' '.join(why)}")
