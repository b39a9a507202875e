"""The owner of a frame: the user's code, a library, or the standard library.

Only paths are used, as a run may have been recorded on another machine. A library is named by its
folder below `site-packages` ("PIL", "numpy"), a module of the standard library by its first name
("json", "zipfile").
"""

import re
import sys
from dataclasses import dataclass
from functools import lru_cache

PYTHON = "python"

_INSTALLED = re.compile(r".*/(?:site|dist)-packages/(?:[^/]+\.egg/)?(.+)", re.DOTALL)
# ".../lib/python3.11/json/decoder.py"; on Windows ".../Lib/json/decoder.py" of a folder named after
# Python.
_STANDARD = re.compile(
    r"(?:.*/lib(?:32|64)?/(?:python|pypy)3\.\d{1,3}t?/|.*/(?i:python)[^/]*/(?:.*/)?Lib/|.*/python3\d{1,3}\.zip/)(.+)",
    re.DOTALL,
)
# Folders that hold packages of several projects, which the second name distinguishes.
_SHARED_FOLDERS = ("google", "nvidia", "azure")
# Code that a person gave as text; other such names are of code that libraries write.
_TYPED = ("<string>", "<stdin>", "<ipython-input", "<python-input", "<cell", "<console>")
# Functions that the standard library generates for named tuples and data classes.
_WRITTEN = re.compile(r"(?:.*\.)?(?:__\w+__|_replace|_asdict|_make)", re.DOTALL)


@dataclass(frozen=True)
class Owner:
    """`library` is None for the user's own code. `place` is the file below its library's root
    ("PIL/ImageFile.py"), of the standard library below "python/" ("python/json/decoder.py"), else
    the file itself."""

    library: str | None
    place: str

    @property
    def own(self) -> bool:
        return self.library is None


@lru_cache(maxsize=8192)
def owner_of(file: str, function: str = "") -> Owner:
    """The owner of this file. `function` distinguishes the user's code from generated code if the
    file is "<string>"."""
    path = file.replace("\\", "/")
    if found := _INSTALLED.fullmatch(path):
        return Owner(_package(found[1]), found[1])
    if (found := _STANDARD.fullmatch(path)) and (module := _module(found[1])):
        return Owner(module, f"python/{found[1]}")
    if path.startswith("<") and not path.startswith(_TYPED):
        return Owner(PYTHON, path)
    if (
        path == "<string>"
        and _WRITTEN.fullmatch(function)
        and not function.endswith(("__getitem__", "__getitems__"))
    ):
        return Owner(PYTHON, path)
    return Owner(None, path)


def _package(tail: str) -> str:
    parts = tail.split("/")
    if len(parts) > 2 and parts[0] in _SHARED_FOLDERS:
        return f"{parts[0]}.{parts[1]}"
    return parts[0].partition(".")[0] if len(parts) == 1 else parts[0]


def _module(tail: str) -> str | None:
    """The standard module, None for a folder of the user's that is only named like it."""
    first = re.split(r"[/.]", tail, maxsplit=1)[0]
    if first not in sys.stdlib_module_names:
        return None
    public = first.lstrip("_")
    return public if public in sys.stdlib_module_names else first
