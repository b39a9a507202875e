"""The user's source files as the run recorded them: inside one folder, and unchanged since."""

import ast
import hashlib
import io
import os
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..advisors.code.python_text import PythonText, first_line
from ..profiler.base.errors import UsageError
from ..profiler.base.metadata import clean
from ..profiler.guard.users_code import of_python, package_of

MAX_BYTES = 2 << 20


class CannotPatch(UsageError):
    """Why there is no patch, as one sentence."""


class Source(PythonText):
    """One file: `path` relative to the project's root, `data` as it was read."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path, self.data = path, data
        self.encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        super().__init__(data.decode(self.encoding))

    def place(self, node: Any) -> str:
        """'data.py:41'."""
        return f"{clean(self.path, 200)}:{first_line(node)}"

    def shown(self, node: ast.AST) -> str:
        return clean(self.of(node), 80)


class Project:
    """The folder `root` of the command, and the hashes that the run recorded of files in it."""

    def __init__(self, root: Path, hashes: Mapping[str, str], argv: tuple[str, ...] = ()) -> None:
        self.root = root.resolve()
        self.argv = argv
        self.files = sorted(hashes)
        self._hashes = hashes
        self._sources: dict[str, Source] = {}

    def source(self, file: str) -> Source:
        """The source of this absolute path. Raises CannotPatch."""
        relative = self.relative(file)
        if relative not in self._sources:
            self._sources[relative] = self._read(file, relative)
        return self._sources[relative]

    def relative(self, file: str) -> str:
        """The path below the root. Raises CannotPatch for a file that lies elsewhere."""
        shown = clean(file, 200)
        if not file or not Path(file).is_absolute():
            raise CannotPatch(f"the source of {shown or 'this code'} is in no file")
        if package_of(file) or of_python(file):
            raise CannotPatch(f"{shown} belongs to an installed package: change your own code")
        path = Path(os.path.normpath(file))
        # The root may have been reached by a link.
        for found in (path, Path(os.path.realpath(path.parent), path.name)):
            if found.is_relative_to(self.root):
                return str(found.relative_to(self.root))
        raise CannotPatch(
            f"{shown} lies outside {clean(self.root, 200)}: run this in your project, or name it "
            "with --root"
        )

    def _read(self, file: str, relative: str) -> Source:
        shown = clean(relative, 200)
        expected = self._hashes.get(file)
        if expected is None:
            raise CannotPatch(
                f"the run did not record what {shown} was like: record it again with this version"
            )
        try:
            with (self.root / relative).open("rb") as opened:
                data = opened.read(MAX_BYTES + 1)
        except OSError as error:
            raise CannotPatch(f"{shown} cannot be read: {error.strerror}") from error
        if hashlib.sha256(data).hexdigest() != expected:
            raise CannotPatch(f"{shown} was changed since the run: record it again")
        return _parsed(relative, data)

    def sources(self) -> Iterator[Source]:
        """All files of the project that the run imported and that are unchanged."""
        for file in self.files:
            try:
                yield self.source(file)
            except CannotPatch:
                continue

    def module(self, name: str, beside: Source) -> Source | None:
        """The module of this dotted name, as `beside` would import it; dots in front are
        relative."""
        inner = name.lstrip(".")
        path, up = inner.replace(".", "/"), len(name) - len(inner)
        ends = [f"{path}.py", f"{path}/__init__.py"] if path else ["__init__.py"]
        if up:
            folder = [*Path(beside.path).parents][:up][-1]
            ends = [str(folder / end) for end in ends]
        below = () if up else tuple(f"/{end}" for end in ends)
        for source in self.sources():
            if source.path in ends or source.path.endswith(below):
                return source
        return None


def _parsed(path: str, data: bytes) -> Source:
    try:
        return Source(path, data)
    except (SyntaxError, ValueError, RecursionError, LookupError, MemoryError) as error:
        why = f"{clean(path, 200)} cannot be parsed: {type(error).__name__}"
        raise CannotPatch(why) from error
