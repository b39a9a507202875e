"""Reads the JSON files of a run directory: bounded, typed, and clean enough to print.

Nothing in a run directory is trusted. It may come from another machine, be torn by a crash, or be
written to harm its reader. Texts lose their control characters, sizes are capped, and numbers are
checked.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import RunUnreadable
from .plausible import believable

MAX_JSON_BYTES = 1 << 20
MAX_TEXT = 2_000
MAX_ITEMS = 1_000
MAX_DEPTH = 16
MAX_NAMED = 5

Scalar = str | int | float | bool | None
Scalars = Mapping[str, Scalar]  # arguments by name
Facts = dict[str, Any]  # what is known of something, by name


def clean(text: object, limit: int = MAX_TEXT) -> str:
    """One printable line. Control, format and unpaired characters are replaced. A text longer than
    `limit` is cut."""
    line = str(text)[: limit + 1]
    if not line.isprintable():
        shown = (" " if c in "\n\t\r" else c for c in line)
        line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def read_json(
    path: Path,
    notes: list[str] | None = None,
    max_bytes: int = MAX_JSON_BYTES,
    max_items: int = MAX_ITEMS,
) -> Facts:
    """The object in a JSON file, cleaned. Raises RunUnreadable, caused by FileNotFoundError if
    there is no file.

    Impossible numbers become None, and `notes` gets their names.
    """
    disbelieved: dict[str, None] = {}

    def bounded(value: Any, depth: int, key: str) -> Any:
        if isinstance(value, str):
            return clean(value)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int | float):
            if believable(key, value):
                return value
            disbelieved[key] = None
            return None
        if depth == 0:
            return None
        if isinstance(value, list):
            return [bounded(item, depth - 1, key) for item in value[:max_items]]
        names = ((clean(name, 200), item) for name, item in list(value.items())[:max_items])
        return {name: bounded(item, depth - 1, name) for name, item in names}

    cleaned: Facts = bounded(read_object(path, max_bytes), MAX_DEPTH, "")
    if disbelieved and notes is not None:
        names = ", ".join(list(disbelieved)[:MAX_NAMED])
        notes.append(f"{clean(path.name)} holds impossible numbers ({names}): they are left out")
    return cleaned


def read_object(path: Path, max_bytes: int) -> Facts:
    """The object in a JSON file, neither bounded nor cleaned. Raises as `read_json`."""
    shown = clean(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a FIFO would wait for ever
            raise RunUnreadable(f"{shown} is not a file")
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise RunUnreadable(f"{shown} cannot be read: {error.strerror or error}") from error
    if len(data) > max_bytes:
        raise RunUnreadable(f"{shown} is far too large to be Loaderscope's")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RunUnreadable(f"{shown} is torn or corrupt: it is not JSON") from error
    if not isinstance(value, dict):
        raise RunUnreadable(f"{shown} is corrupt: it holds no JSON object")
    return value


def text(data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    return value if isinstance(value, str) and value else None
