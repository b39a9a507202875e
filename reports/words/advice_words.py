"""The advice of a report, as lines for a terminal: what to change, what would not help, what could not be judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from ...advisors.schema.report_model import LoaderReport, Range, Recommendation
from ...profiler.base.metadata import clean
from .layout import hanging, heading, indented
from .units import rate

# Of a text that comes from the run; code is shown whole.
MAX_CODE_LINE = 100_000
EVIDENCE_SHOWN = 6
BODY = 5  # where text begins, after "  1. "

MARKS = {"correctness": "bold red", "safety": "bold yellow"}

# Capacity → the words for it in "… can make 31 batches/s".
CAPACITIES = {
    "index": "the sampler can draw",
    "workers": "fetch + collate can make",
    "fetch+collate": "fetch + collate can make",
    "pack": "packing can send",
    "unpack": "the main process can unpack",
    "pin": "page-locking can copy",
    "h2d": "copying to the device can move",
    "compute": "computing could take",
}


def advice_lines(loader: LoaderReport) -> Iterator[RenderableType]:
    """Everything the rules said of a loader, each part under its heading, an empty line after each."""
    if loader.recommendations:
        yield heading("What to change")
        for number, each in enumerate(loader.recommendations, 1):
            yield from _recommendation(number, each)
    else:
        nothing = _nothing_to_change(loader)
        if nothing:
            yield indented(nothing, "bold")
            yield Text("")
    if loader.rejected:
        yield heading("What would not help")
        for each in loader.rejected:
            yield hanging("·", _rejected(each))
        yield Text("")
    if loader.unmeasured:
        yield indented("not judged: " + "; ".join(_unjudged(loader.unmeasured)), "dim")
        yield Text("")


def _nothing_to_change(loader: LoaderReport) -> str | None:
    if loader.verdict == "compute-bound":
        return "Nothing to gain from the loader: faster loading would not speed up training."
    if loader.verdict == "too-short" or not (loader.rejected or loader.unmeasured):
        return None  # too little seen, or no rule was asked
    return "No change was found that is certain to help."


def _recommendation(number: int, advice: Recommendation) -> Iterator[RenderableType]:
    yield hanging(f"{number}.", _title(advice))
    yield indented(clean(advice.why), by=BODY)
    if advice.evidence:
        yield indented(_evidence(advice.evidence), "dim", by=BODY)
    if advice.change.code.strip():
        yield Text("")
        yield code_block(advice.change.code)
    if advice.caveat:
        yield Text("")
        yield indented(f"But: {clean(advice.caveat)}", by=BODY)
    yield Text("")


def _title(advice: Recommendation) -> Text:
    title = Text(style="bold")
    if advice.kind in MARKS:
        title.append(f"{advice.kind}: ", style=MARKS[advice.kind])
    title.append(clean(advice.title, 200))
    effect = effect_text(advice)
    if effect:
        title.append(f"  {effect}", style="green")
    title.append(f"  [{clean(advice.rule, 40)}]", style="not bold dim")
    return title


def _rejected(advice: Recommendation) -> Text:
    line = Text.assemble((clean(advice.title, 200), "bold"))
    effect = effect_text(advice)
    if effect:
        line.append(f" {effect}")
    return line.append(f": {clean(advice.why)}")


def _evidence(evidence: Mapping[str, str]) -> str:
    shown = [f"{clean(name, 60)} {clean(value, 60)}" for name, value in list(evidence.items())[:EVIDENCE_SHOWN]]
    return " · ".join(shown)


def _unjudged(unmeasured: Mapping[str, str]) -> Iterator[str]:
    """'rule, rule (reason)': rules that lack the same thing together."""
    by_reason: dict[str, list[str]] = {}
    for rule, reason in unmeasured.items():
        by_reason.setdefault(clean(reason), []).append(clean(rule, 40))
    for reason, rules in by_reason.items():
        yield f"{', '.join(rules)} ({reason})"


def code_block(code: str) -> Group:
    """Code to paste: one line of it a line, whatever the width. (In a group, since rich joins texts printed alone.)"""
    lines = (clean(line.expandtabs(4), MAX_CODE_LINE).rstrip() for line in code.strip("\n").split("\n"))
    return Group(*(Text(" " * BODY + line, style="cyan", no_wrap=True, overflow="ignore") for line in lines))


def effect_text(advice: Recommendation) -> str:
    """'predicted ×1.8 (1.5–2.1)', or what was measured; nothing where speed does not change."""
    if advice.measured is not None:
        return f"measured {times(advice.measured)}"
    if advice.predicted.low == advice.predicted.high == 1.0:
        return ""
    return f"predicted {predicted_text(advice.predicted)}"


def predicted_text(predicted: Range) -> str:
    """'×1.8 (1.5–2.1)': the likely factor, and where it lies four times in five."""
    wide = predicted.high - predicted.low >= 0.3
    low, high = (times(value, wide)[1:] for value in (predicted.low, predicted.high))
    middle = times(predicted.mid, wide)
    return middle if low == high else f"{middle} ({low}–{high})"


def times(factor: float, wide: bool | None = None) -> str:
    """'×0.21', '×1.8', '×24': with one decimal below 10 if the range is wide (by default from 2 on), else two."""
    if factor >= 9.95:
        return f"×{factor:,.0f}"
    one = factor >= 1.95 if wide is None else wide and factor >= 0.95
    return f"×{factor:.1f}" if one else f"×{factor:.2f}"


def limit_sentence(loader: LoaderReport) -> str | None:
    """'The limit: fetch + collate can make 31 batches/s; computing could take 120.' None if no capacity is known.

    Without workers the stages take turns, so that each alone could do more than the loop does: that is said.
    """
    known = {name: c.batches_per_s for name, c in loader.capacities.items() if c.batches_per_s}
    limit = loader.limit
    if limit is None or limit not in known:
        return None
    other = "compute"
    if limit == "compute":
        others = [name for name in known if name != "compute"]
        if not others:
            return None
        other = min(others, key=lambda name: known[name] or 0.0)
    beside = f"; {_words(other)} {rate(known[other])}" if other in known else ""
    turns = ", if they did not take turns" if beside and loader.config.get("num_workers") == 0 else ""
    return f"The limit: {_words(limit)} {rate(known[limit])} batches/s{beside}{turns}."


def _words(capacity: str) -> str:
    return CAPACITIES.get(capacity) or f"{clean(capacity, 40)} can do"
