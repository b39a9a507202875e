"""What a case of a planted storage layout is: the loop, what the report must name, and which rules
may speak."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from loaderscope.advisors.schema.report_model import LoaderReport, StorageSummary

from .case import Case
from .hot_case import outcome_of

RULES = ("storage-format", "page-cache", "hot-function")
REOPENED = 0.5
ABOUT = 0.25  # a count a sample may be this far off: batches at an epoch's end are shorter


@dataclass(frozen=True, kw_only=True)
class Layout(Case):
    """One case. `build(folder=…)` makes the loop as found with its files below that folder; where
    there is a `fix`, `better=True` makes the loop with the layout a good engineer would choose.

    One of `names` must be in the report: a suffix with its dot among the files opened, anything
    else among the containers. One of `causes` must be recommended, none of `forbidden` may be, and
    `rejected` must be said not to help. One of `words` must be in what the causes, or the rejected
    rules, say.
    """

    names: tuple[str, ...] = ()
    mount: str | None = None  # kind of the file system
    opens: float | None = None  # a sample
    reopened: bool | None = None  # the same paths again and again
    mostly: str | None = None  # "reading" or "decoding": the larger part of fetch
    rejected: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def judged(self, loader: LoaderReport) -> dict[str, Any]:
        """What the report says of the planted layout, and what is wrong with that."""
        said = {rule: outcome_of(loader, rule) for rule in RULES}
        storage = loader.storage
        unseen = (
            ["no storage summary in the report"] if storage is None else list(self._unseen(storage))
        )
        unsaid = list(self._unsaid(said))
        return {
            "seen": not unseen,
            "wrong": [*unseen, *unsaid],
            "storage": described(storage),
            "said": {
                rule: f"{outcome}: {text}" for rule, (outcome, text, _) in said.items() if text
            },
            "outcome": ", ".join(
                f"{rule} {outcome}" for rule, (outcome, _, _) in said.items() if outcome != "silent"
            ),
            "predicted": next(
                (said[rule][2] for rule in self.causes if said[rule][0] == "recommended"), None
            ),
            "ok": not unseen and not unsaid,
        }

    def _unseen(self, storage: StorageSummary) -> Iterator[str]:
        there = {kind.suffix for kind in storage.kinds} | {each.kind for each in storage.containers}
        if self.names and not there.intersection(self.names):
            yield (
                f"none of {', '.join(self.names)} is named, only "
                f"{', '.join(sorted(there)) or 'nothing'}"
            )
        if self.mount is not None and self.mount not in {each.kind for each in storage.mounts}:
            yield (
                f"no mount is called {self.mount}, only "
                f"{', '.join(each.kind for each in storage.mounts) or 'none'}"
            )
        if self.opens is not None and not self._about(storage.opens_per_sample):
            yield f"{storage.opens_per_sample} opens a sample instead of {self.opens}"
        if self.reopened is not None:
            share = storage.reopened_share
            if share is None or (share >= REOPENED) is not self.reopened:
                yield f"{share} of the opens are said to be of files opened before"
        # What waits for a core, on a machine that does other things as well, is neither.
        shares = {"reading": storage.reading_share, "decoding": storage.decoding_share}
        known = {name: share for name, share in shares.items() if share is not None}
        if self.mostly is not None and (
            not known or max(known, key=lambda name: known[name]) != self.mostly
        ):
            yield f"fetch is said not to be {self.mostly}: {known}"

    def _about(self, count: float | None) -> bool:
        assert self.opens is not None
        return count is not None and abs(count - self.opens) <= ABOUT * max(self.opens, 0.1)

    def _unsaid(self, said: Mapping[str, tuple[str, str, Any]]) -> Iterator[str]:
        recommended = [rule for rule, (outcome, _, _) in said.items() if outcome == "recommended"]
        if self.causes and not set(self.causes) & set(recommended):
            yield f"none of {', '.join(self.causes)} is recommended"
        for rule in recommended:
            if not self.allowed(rule):
                yield f"{rule} is recommended"
        for rule in self.rejected:
            if said[rule][0] != "rejected":
                yield f"{rule} is not rejected but {said[rule][0]}"
        text = " ".join(
            said[rule][1] for rule in (*self.causes, *self.rejected) if rule in said
        ).lower()
        if text and self.words and not any(word.lower() in text for word in self.words):
            yield f"none of the words {', '.join(self.words)} is said"


def described(storage: StorageSummary | None) -> dict[str, Any] | None:
    if storage is None:
        return None
    return {
        "samples": storage.samples,
        "opens_per_sample": storage.opens_per_sample,
        "reopened_share": storage.reopened_share,
        "read_bytes_per_sample": storage.read_bytes_per_sample,
        "disk_bytes_per_sample": storage.disk_bytes_per_sample,
        "kinds": [each.suffix for each in storage.kinds],
        "mounts": [f"{each.kind} ({each.type})" for each in storage.mounts],
        "containers": [each.kind for each in storage.containers],
        "reading_share": storage.reading_share,
        "decoding_share": storage.decoding_share,
        "other_share": storage.other_share,
        "dataset_bytes": storage.dataset_bytes,
        "reasons": dict(storage.reasons),
    }
