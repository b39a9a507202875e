"""Reading the JSON files of a run directory: bounded, typed, and clean enough to print.

Nothing in a run directory is trusted: it may come from another machine, be torn by a crash, or have
been written by someone who wishes the reader ill. Texts lose their control characters, sizes are
capped, numbers are checked.
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
MAX_INT = 1 << 62
MAX_NAMED = 5

Scalar = str | int | float | bool | None


def clean(text: object, limit: int = MAX_TEXT) -> str:
    """One printable line: control, format and unpaired characters are replaced, what is too long is
    cut."""
    line = str(text)[: limit + 1]
    if not line.isprintable():
        spaced = line.replace("\n", " ").replace("\t", " ").replace("\r", " ")
        line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in spaced)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def read_json(path: Path, notes: list[str] | None = None) -> dict[str, Any]:
    """The object in a JSON file, cleaned; raises RunUnreadable, with FileNotFoundError as cause
    where there is none.

    A number that cannot be is None, and `notes` says which those were.
    """
    disbelieved: dict[str, None] = {}
    cleaned: dict[str, Any] = _bounded(
        read_object(path, MAX_JSON_BYTES), MAX_DEPTH, "", disbelieved
    )
    if disbelieved and notes is not None:
        names = ", ".join(list(disbelieved)[:MAX_NAMED])
        notes.append(
            f"{clean(path.name)} holds numbers that cannot be ({names}): they count as not known"
        )
    return cleaned


def read_object(path: Path, max_bytes: int) -> dict[str, Any]:
    """The object in a JSON file, as it stands there: whoever uses it bounds and cleans it. Raises
    as `read_json`."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a FIFO would wait for ever
            raise RunUnreadable(f"{clean(path)} is not a file")
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise RunUnreadable(f"{clean(path)} cannot be read: {error.strerror or error}") from error
    if len(data) > max_bytes:
        raise RunUnreadable(f"{clean(path)} is far too large to be Loaderscope's")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RunUnreadable(f"{clean(path)} is torn or corrupt: it is not JSON") from error
    if not isinstance(value, dict):
        raise RunUnreadable(f"{clean(path)} is corrupt: it holds no JSON object")
    return value


def _bounded(value: Any, depth: int, key: str, disbelieved: dict[str, None]) -> Any:
    """The value of this key, or inside it, without what cannot be; `disbelieved` gathers the keys
    of that."""
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
        return [_bounded(item, depth - 1, key, disbelieved) for item in value[:MAX_ITEMS]]
    names = ((clean(name, 200), item) for name, item in list(value.items())[:MAX_ITEMS])
    return {name: _bounded(item, depth - 1, name, disbelieved) for name, item in names}


def text(data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    return value if isinstance(value, str) and value else None


def integer(data: Mapping[str, Any], key: str) -> int | None:
    value = data.get(key)
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and believable(key, value)
        else None
    )


def number(data: Mapping[str, Any], key: str) -> float | None:
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not believable(key, value):
        return None
    return float(value)


def strings(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A list of texts; a lone text counts as a list of one."""
    value = data.get(key)
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def sentences(data: Mapping[str, Any], key: str) -> dict[str, str]:
    """A mapping of name to sentence, such as `reasons`."""
    value = data.get(key)
    return {k: v for k, v in value.items() if isinstance(v, str)} if isinstance(value, dict) else {}


def scalars(data: Mapping[str, Any], key: str) -> dict[str, Scalar]:
    """A flat mapping, such as `config`; nested values are left out."""
    value = data.get(key)
    if not isinstance(value, dict):
        return {}
    return {k: v for k, v in value.items() if v is None or isinstance(v, str | int | float | bool)}
