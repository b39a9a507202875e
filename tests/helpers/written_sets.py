"""Data sets of source that a test gives, in a file, where what looks at them finds it."""

import itertools
import tempfile
from pathlib import Path
from typing import Any

_FOLDER = tempfile.TemporaryDirectory(prefix="loaderscope-tests-")
_NUMBERS = itertools.count()


def with_method(base: type, head: str, body: str, name: str = "Own", **names: Any) -> Any:
    """A class whose method of this head has this body, which may use these names."""
    file = Path(_FOLDER.name) / f"written{next(_NUMBERS)}.py"
    lines = "\n".join(f"        {line}" for line in body.split("\n"))
    file.write_text(f"class {name}(Base):\n    def {head}:\n{lines}\n")
    scope = {"Base": base, "__name__": base.__module__, **names}
    exec(compile(file.read_text(), str(file), "exec"), scope)
    return scope[name]


def with_getitem(
    base: type, body: str, name: str = "Own", argument: str = "i", **names: Any
) -> Any:
    return with_method(base, f"__getitem__(self, {argument})", body, name, **names)


def ways(text: str) -> list[str]:
    """Pieces of code with bars between them."""
    return [each.strip() for each in text.split("|")]
