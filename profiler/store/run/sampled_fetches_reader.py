"""Reading the sampled fetches of a loader: the files of all its processes, added up. Nothing in
them is trusted."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from ..probe_totals import ProbeTotals, read_fetches
from ..sampled_fetches import SampledFetches

MAX_FILES = 1024
NOT_A_LOADER = "not a torch DataLoader: only wait and step can be measured"


def read_sampled_fetches(
    directory: Path, loader: int, kind: str, reasons: Mapping[str, str]
) -> SampledFetches:
    """The sampled fetches of loader number `loader` of the process whose folder this is. Never
    raises.

    `kind` and `reasons` are the loader's own: why none was sampled stands there under "looks".
    """
    totals, held = ProbeTotals(), Counter[str]()  # containers, by how many workers had them open
    pattern = re.compile(rf"looks-{loader}-(?:m|w\d{{1,5}})\.json")
    with suppress(OSError):
        names = sorted(name for name in os.listdir(directory) if pattern.fullmatch(name))
        for name in names[:MAX_FILES]:
            found = read_fetches(directory / name)
            totals.add(found)
            held.update({each.path for each in found.containers} if "-w" in name else ())
    if "looks" in reasons:
        totals.reasons["looks"] = reasons["looks"]
    elif kind == "iterable":
        totals.reasons["looks"] = NOT_A_LOADER
    shared = sum(count > 1 for count in held.values())
    return replace(totals.fetches(), shared=shared)
