"""Two copies of a project. Code and small files are copied, large data is linked."""

import os
import re
import shutil
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ..profiler.base.errors import UsageError
from .change import Change
from .git import NOT_INSTALLED, add_repository, commit_of, files_of, git

TEXTS = (".ipynb", ".yaml", ".yml", ".toml", ".json", ".cfg", ".ini", ".gin")
SOURCES = (".py", ".pyi", ".pyx", *TEXTS)
# Scripts that resume write these files again.
WRITTEN = (".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".db", ".sqlite", ".log")
SMALL_BYTES, MOST_BYTES = 8_000_000, 256_000_000  # of one file, and of all copied files
MOST_HERE, MOST_ENTRIES = 2_000, 20_000  # entries of one folder, and of all folders
_NEVER = (".git", "__pycache__")
_LINKED = ("node_modules", "site-packages", ".venv", "venv", ".tox", ".mypy_cache", ".ruff_cache")


class Copies(NamedTuple):
    """The folders of the two sides. `linked`: paths that both share with the project. Writing there
    changes the project."""

    before: Path
    after: Path
    linked: list[str]


def make_copies(change: Change, into: Path) -> Copies:
    """Copy the project without and with the change. Raises UsageError if the change does not exist
    or does not apply."""
    before, after = into / "before", into / "after"
    root, other = change.root, change.other or change.root
    for folder in (root, other):
        if not folder.is_dir():
            raise UsageError(f"there is no folder {folder}")
    touched = touched_by(change.patch or "")
    if change.revision is not None:
        commit = commit_of(root, change.revision)
        before.mkdir()
        add_repository(root, before, commit)
        untracked = files_of(root, "--others", "--exclude-standard")
        sources = [each for each in untracked if Path(each).suffix in SOURCES]
        lay(root, before, set(), {*files_of(root), *sources})
    else:
        _copy(root, before, touched)
    linked = _copy(other, after, touched)
    if change.patch is not None:
        apply(change.patch, after)
    return Copies(before, after, linked)


def _copy(root: Path, into: Path, touched: Collection[str]) -> list[str]:
    into.mkdir()
    if (root / ".git").exists():
        add_repository(root, into)
    return lay(root, into, touched)


def lay(
    source: Path, into: Path, touched: Collection[str], left_out: Collection[str] = ()
) -> list[str]:
    """Copy small files and those in `touched`, and link the rest. Skip files in `left_out` and
    files that exist already. Returns the linked paths."""
    linked: list[str] = []
    folders, entries, left = deque([""]), 0, MOST_BYTES
    while folders:
        here = folders.popleft()
        inside = list(islice(_listing(source / here), MOST_HERE + 1))
        needed = not here or (into / here).exists() or any(f.startswith(here) for f in touched)
        whole = len(inside) > MOST_HERE or entries + len(inside) > MOST_ENTRIES
        if whole and not needed:
            (into / here).symlink_to(source / here)
            linked.append(here)
            continue
        entries += len(inside)
        (into / here).mkdir(exist_ok=True)
        for entry in inside if not whole else _listing(source / here):
            path = f"{here}{entry.name}"
            to = into / path
            if entry.name in _NEVER or path in left_out:
                continue
            if entry.is_dir(follow_symlinks=False) and not _is_linked(entry):
                folders.append(path + "/")
            elif not os.path.lexists(to):
                copied, shared = _lay_one(entry, to, source, path in touched, left)
                left -= copied
                linked += [path] if shared else []
    return linked


def _listing(folder: Path) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as found:
        yield from found


def _is_linked(folder: os.DirEntry[str]) -> bool:
    return folder.name in _LINKED or Path(folder.path, "pyvenv.cfg").exists()


def _lay_one(
    entry: os.DirEntry[str], to: Path, source: Path, touched: bool, left: int
) -> tuple[int, bool]:
    """(how many bytes were copied, whether the copy shares it with the project)."""
    if entry.is_symlink() and not touched:
        link, target = Path(entry.path).readlink(), Path(entry.path).resolve()
        inside = target.is_relative_to(source) and not link.is_absolute()
        to.symlink_to(link if inside else target)
        return 0, not inside and target.is_dir()
    if entry.is_file():
        size = entry.stat().st_size
        kept = size <= SMALL_BYTES or to.suffix in WRITTEN
        if touched or (kept and size <= left):
            with suppress(PermissionError):
                shutil.copy2(entry.path, to)
                return size, False
    elif not entry.is_dir():
        return 0, False  # sockets and the like
    to.symlink_to(entry.path)
    return 0, not _is_linked(entry)


_FILES = re.compile(r"^(?:---|\+\+\+) (?:[ab]/)?([^\t\n]+)|^rename (?:from|to) (.+)", re.MULTILINE)
_MAKES_LINK = re.compile(r"^new (?:file )?mode 120000", re.MULTILINE)


def touched_by(patch: str) -> set[str]:
    """The files that a patch changes."""
    return {(one or other).strip() for one, other in _FILES.findall(patch)} - {"/dev/null"}


def apply(patch: str, folder: Path) -> None:
    """Apply a unified diff, with git's prefixes (a/, b/) or without. Raises UsageError."""
    files = sorted(touched_by(patch))
    if not files:
        raise UsageError("this is no patch: no line begins with `+++`; make one with `git diff`")
    text = patch if patch.endswith("\n") else patch + "\n"
    # In a folder that is no repository, git follows links.
    within = folder.resolve()
    first = "it makes a link" if _MAKES_LINK.search(patch) else ""
    for file in files:
        if not (folder / file).parent.resolve().is_relative_to(within):
            first = first or f"{file} lies beyond a link or outside"
    if first:
        raise UsageError(f"the patch does not apply to a copy of the project: {first}")
    for level in ("-p1", "-p0"):
        done = git(folder, "apply", "--whitespace=nowarn", level, "-", given=text)
        if done.returncode == NOT_INSTALLED:
            raise UsageError("a patch is applied by git, which is not installed here")
        if done.returncode == 0:
            return
        first = first or next(iter(done.stderr.splitlines()), "").removeprefix("error: ")
        reverse = git(folder, "apply", "--check", "--reverse", level, "-", given=text)
        if reverse.returncode == 0:
            raise UsageError(
                "the patch is applied already: take it back (`git stash`), or compare the project "
                "as it is with the last commit by --against HEAD"
            )
    raise UsageError(f"the patch does not apply to the project as it lies there: {first}")
