"""A batch as a list of its parts. Equal batches have equal lists, and the lists are small."""

import hashlib
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..profiler.guard.static_access import inherits, is_one_of
from ..tuning.evidence.parts import PLAIN

MOST_PARTS = 256  # further parts share one digest
MOST_DEPTH = 64
INCOMPARABLE = "cannot be compared"

_TEXTS = ("str", "bytes", "PosixPath", "key")

Part = tuple[str, str, str]  # path in the batch, kind, digest of the values
Walked = tuple[str, str, bytes]  # path, kind, values as bytes


def fingerprint(batch: Any, copy: str, root: str) -> list[Part]:
    """The parts of a batch in order: containers, tensors, arrays and values. Paths below `copy`
    count as paths below `root`.

    Kinds, dtypes, shapes, keys, lengths and values count; strides, memory and history do not. Other
    objects are taken apart as pickle does. The kind of a part that cannot be pickled contains
    `INCOMPARABLE`.
    """
    parts: list[Part] = []
    rest = hashlib.blake2b(digest_size=16)
    for where, what, values in _walk(batch, "", 0):
        text = copy and what in _TEXTS
        held = values.replace(copy.encode(), root.encode()) if text else values
        digest = hashlib.blake2b(held, digest_size=16)
        if len(parts) < MOST_PARTS:
            parts.append((where, what, digest.hexdigest()))
        else:
            rest.update(f"{where}{what}".encode() + digest.digest())
    if len(parts) == MOST_PARTS:
        parts.append(("", "further parts", rest.hexdigest()))
    return parts


def _walk(value: Any, where: str, depth: int) -> Iterator[Walked]:
    import torch

    kind = type(value)
    name = kind.__qualname__
    if depth > MOST_DEPTH:
        yield where, f"a {name}, nested too deeply, that {INCOMPARABLE}", b""
    elif is_one_of(kind, PLAIN):
        yield where, name, _text(value)
    elif inherits(kind, Path):
        yield where, name, _text(str(value))
    elif inherits(kind, torch.Tensor):
        yield from _tensor(value, where, name, depth)
    elif kind is np.ndarray or isinstance(value, np.generic):
        array = np.asarray(value)
        what = f"{name} {array.dtype} {array.shape}"
        if array.dtype.hasobject:
            yield where, what, b""
            yield from _walk(array.tolist(), where, depth + 1)
        else:
            yield where, what, np.ascontiguousarray(array).tobytes()
    elif is_one_of(kind, (list, tuple)):
        yield where, f"{name} of {len(value)}", b""
        for at, each in enumerate(value):
            yield from _walk(each, f"{where}[{at}]", depth + 1)
    elif is_one_of(kind, (dict,)):
        yield where, f"{name} of {len(value)}", b""
        for key, each in value.items():
            inner = f"{where}[{key!r:.40}]"
            if is_one_of(type(key), PLAIN):
                yield inner, "key", _text(key)
            else:
                yield from _walk(key, f"{where}.keys", depth + 1)
            yield from _walk(each, inner, depth + 1)
    elif is_one_of(kind, (set, frozenset)):
        inside = sorted(repr([*_walk(each, "", depth + 1)]) for each in value)
        yield where, f"{name} of {len(value)}", _text(inside)
    else:
        yield from _object(value, where, name, depth)


def _text(value: Any) -> bytes:
    return repr(value).encode("utf-8", "surrogatepass")


def _tensor(value: Any, where: str, name: str, depth: int) -> Iterator[Walked]:
    import torch

    dtype, shape = str(value.dtype).removeprefix("torch."), tuple(value.shape)
    place = "" if value.device.type == "cpu" else f" on {value.device.type}"
    what = f"{name} {dtype} {shape}{place}"
    with torch.no_grad():
        value = value.detach()
        if value.is_nested:
            yield where, f"nested {what}", b""
            yield from _walk(value.unbind(), where, depth + 1)
        elif value.is_quantized or value.layout is not torch.strided:
            yield from _object(value.cpu(), where, what, depth)
        else:
            plain = value.cpu().as_subclass(torch.Tensor).resolve_conj().resolve_neg()
            flat = plain.contiguous().reshape(-1)
            held = flat.view(torch.uint8).numpy().tobytes() if len(flat) else b""
            yield where, what, held


def _object(value: Any, where: str, name: str, depth: int) -> Iterator[Walked]:
    """An object taken apart as pickle does. Classes and functions count by name."""
    try:
        made = value.__reduce_ex__(4)
    except Exception:
        made = ""
    if isinstance(made, str):
        try:
            yield where, name, pickle.dumps(value)
        except Exception:
            yield where, f"a {name} that {INCOMPARABLE}", b""
        return
    yield where, name, getattr(made[0], "__qualname__", "").encode()
    inside = (made[1] or None, *made[2:5])
    for suffix, each in zip(("", "", ".items", ".values"), inside, strict=False):
        if each is not None:
            listed = list(each) if isinstance(each, Iterator) else each
            yield from _walk(listed, f"{where}{suffix}", depth + 1)
