"""Reading the sampled fetches of a loader: the files of all its processes, added up. Nothing in them is trusted."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from ...base.errors import RunUnreadable
from ...base.metadata import read_json
from ..probe_totals import SUMS, ProbeTotals, is_known, totals_from
from ..sampled_fetches import ChainTotals, ContainerFile, EpochTotals, MountTotals, SampledFetches, SuffixTotals

MAX_FILES = 1024
NOT_A_LOADER = "not a torch DataLoader: only wait and step can be measured"


def read_sampled_fetches(directory: Path, loader: int, kind: str, reasons: Mapping[str, str]) -> SampledFetches:
    """The sampled fetches of loader number `loader` of the process whose folder this is. Never raises.

    `kind` and `reasons` are the loader's own: why none was sampled stands there under "looks".
    """
    totals = ProbeTotals()
    for name in _names(directory, re.compile(rf"looks-{loader}-(?:m|w\d{{1,5}})\.json")):
        try:
            data = read_json(directory / name)
        except RunUnreadable:
            continue
        if is_known(data):
            totals.add(totals_from(data))
    if "looks" in reasons:
        totals.reasons["looks"] = reasons["looks"]
    elif kind == "iterable":
        totals.reasons["looks"] = NOT_A_LOADER
    return sampled_fetches_of(totals)


def sampled_fetches_of(totals: ProbeTotals) -> SampledFetches:
    """The same, as advice has it."""
    return SampledFetches(
        **{name: getattr(totals, name) for name in SUMS},
        directories=totals.directories,
        suffixes={suffix: SuffixTotals(*numbers) for suffix, numbers in totals.suffixes.items()},
        folders=totals.most_used_folders(),
        mounts=tuple(MountTotals(path, kind, opens) for (path, kind), opens in totals.mounts.items()),
        containers=tuple(ContainerFile(kind, path, size) for path, (kind, size) in totals.containers.items()),
        moved=tuple(sorted(totals.moved)),
        epochs=tuple(EpochTotals(epoch, *values) for epoch, values in sorted(totals.epochs.items())),
        chains=tuple(ChainTotals(*key, *numbers) for key, numbers in sorted(totals.chains.items())),
        reasons=totals.reasons,
    )


def _names(directory: Path, pattern: re.Pattern[str]) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            found = [entry.name for entry in entries if pattern.fullmatch(entry.name)]
    except OSError:
        return []
    return sorted(found)[:MAX_FILES]
