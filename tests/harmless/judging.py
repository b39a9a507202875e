"""Whether a watched run can be told from bare ones by what was seen of them."""

from __future__ import annotations

import difflib
import re
from typing import Any

from .catalogue import Program
from .stage import Seen

# A watched process may have so much more of these than a bare one: its lanes, and memory for what
# we imported (6 seen).
MORE_MAPS = 30
MORE_DESCRIPTORS = 0
# Looked at by itself.
_ASIDE = ("folder", "cannot be run here")


def differences(program: Program, bare: list[Seen], watched: Seen) -> list[str]:
    """One line for each thing that all bare runs agree on and the watched one has otherwise."""
    names = dict.fromkeys(name for seen in [*bare, watched] for name in seen if name not in _ASIDE)
    found = []
    for name in names:
        values = [_comparable(seen, name) for seen in bare]
        if name in program.unjudged or any(value != values[0] for value in values):
            continue
        value = _comparable(watched, name)
        if name == "stderr" and program.may_speak:
            value, said = _without_our_lines(value or "")
            if len(said) > 1:
                found.append(f"more than one line of ours: {said}")
        if not _alike(name, values[0], value):
            found.append(f"{name}: {_told(values[0], value)}")
    return found


def judged(program: Program, bare: list[Seen]) -> tuple[int, int]:
    """Of so many things seen, so many are judged."""
    names = {name for seen in bare for name in seen if name not in _ASIDE}
    same = [name for name in names if len({repr(_comparable(seen, name)) for seen in bare}) == 1]
    return len(names), len([name for name in same if name not in program.unjudged])


def _alike(name: str, bare: Any, watched: Any) -> bool:
    if name == "end maps" and bare is not None and watched is not None:
        return bool(watched <= bare + MORE_MAPS)
    if name == "end descriptors" and bare is not None and watched is not None:
        return bool(watched <= bare + MORE_DESCRIPTORS)
    return bool(bare == watched)


def _comparable(seen: Seen, name: str) -> Any:
    return _masked(seen.get(name), seen["folder"]) if name in seen else None


def _masked(value: Any, folder: str) -> Any:
    """Less what is of one run only: its folder, process ids, addresses."""
    if isinstance(value, str):
        value = value.replace(folder, "FOLDER")
        return re.sub(
            r"(?i)\b(pids?|process|psm_|torch_)([ (=:]*)\d+(, ?\d+)*|0x[0-9a-f]+|pym-[\w-]+",
            r"\1\2#",
            value,
        )
    if isinstance(value, list):
        return [_masked(inner, folder) for inner in value]
    if isinstance(value, dict):
        return {key: _masked(inner, folder) for key, inner in value.items()}
    return value


def _without_our_lines(text: str) -> tuple[str, list[str]]:
    lines = text.splitlines(keepends=True)
    ours = [line for line in lines if line.startswith("loaderscope: ")]
    return "".join(line for line in lines if line not in ours), ours


def _told(bare: Any, watched: Any) -> str:
    if isinstance(bare, str) and isinstance(watched, str) and max(len(bare), len(watched)) > 80:
        lines = difflib.unified_diff(
            bare.splitlines(), watched.splitlines(), "bare", "watched", lineterm="", n=0
        )
        return "\n" + "\n".join(list(lines)[:40])
    if isinstance(bare, dict) and isinstance(watched, dict):
        keys = [key for key in {**bare, **watched} if bare.get(key) != watched.get(key)]
        return "; ".join(
            f"{key}: bare {bare.get(key)!r}, watched {watched.get(key)!r}" for key in keys
        )
    return f"bare {bare!r}, watched {watched!r}"[:1500]
