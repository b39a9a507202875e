"""What a loader's waiting is made of: the lines and calls that cost most, with or without a known
remedy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...profiler.record.inspect.uses import place_of
from ..case.case import Case
from ..case.fetching import waited_on
from ..schema.report_model import CodeStage, Finding, HotSpot, Range
from ..stacks.code_summary import wilson

# Below these, nothing is a finding: of all waiting, and of a stage's samples.
LEAST_WAITING, LEAST_SHARE = 0.05, 0.08
# Of fewer samples a share says little: of 10, a half may be a fifth or four fifths.
LEAST_SAMPLES = 10
MOST = 5
OTHERS = 0.3  # of a stage's samples, without a line of the user's on the stack: functions are named
_WHOLE = Range(1.0, 1.0, 1.0)


class _Part(NamedTuple):
    text: str | None
    place: str | None
    call: str | None
    share: Range


def findings_of(case: Case) -> tuple[Finding, ...]:
    """The largest first. None of a loop that does not wait, or of which too little was recorded."""
    report = case.report
    if report.waiting is None or report.verdict in ("compute-bound", "too-short"):
        return ()
    found = [*_of_work(case, "fetch"), *_of_work(case, "collate"), *_of_cause(case, "index"),
             *_of_cause(case, "startup")]  # fmt: skip
    found = [each for each in found if each.waiting_share >= LEAST_WAITING]
    return tuple(sorted(found, key=lambda each: -each.waiting_share)[:MOST])


def _of_work(case: Case, stage: str) -> Iterator[Finding]:
    """Of fetching or collating: lines where stacks were sampled, else steps of a transform chain,
    else the stage."""
    waiting = waited_on(case, stage)
    code = case.report.code.stages.get(stage) if case.report.code is not None else None
    parts: list[_Part] = []
    if code is not None and code.samples >= LEAST_SAMPLES:
        parts = list(_parts(code))
    elif stage == "fetch":
        parts = [
            _Part(f"{each.chain}: {each.name}", None, None, Range(*[each.share] * 3))
            for each in case.report.transforms
            if each.share is not None and each.share >= LEAST_SHARE
        ]
    for part in parts or [_Part(None, None, None, _WHOLE)]:
        free = _free(case, stage, part.share)
        yield Finding(stage, *part, waiting_share=waiting * part.share.mid, factor=free)


def _of_cause(case: Case, stage: str) -> Iterator[Finding]:
    """Drawing indices, or the start of workers."""
    assert case.report.waiting is not None
    cause = case.report.waiting.causes.get(stage)
    if cause is not None:
        yield Finding(stage, None, None, None, _WHOLE, cause.share, _free(case, stage, _WHOLE))


def _parts(code: CodeStage) -> Iterator[_Part]:
    """The stage's samples by the innermost of the user's own lines; those without one by the
    innermost function."""
    left = 1.0
    # What a library has made by `exec` counts to the line that calls it.
    lines = [each for each in code.lines if each.file != "<string>" or each.called_from is None]
    for line in lines:
        place = _place(line)
        inside = sum(each.total_share for each in lines if each.called_from == place)
        share = line.total_share - inside
        left -= max(0.0, share)
        if share >= LEAST_SHARE:
            text = line.text.strip() if line.text else line.function
            yield _Part(text, place, _call_at(code, place), _range(share, code))
    if left > OTHERS:
        for spot in code.hot:
            if spot.share >= LEAST_SHARE and spot.called_from is None and not spot.own:
                yield _Part(_named(spot), _place(spot), None, _range(spot.share, code))


def _call_at(code: CodeStage, place: str | None) -> str | None:
    """The library's function below this line that takes most of it."""
    below = [spot for spot in code.hot if not spot.own and spot.called_from == place]
    return _named(max(below, key=lambda spot: spot.total_share)) if below else None


def _named(spot: HotSpot) -> str:
    known = spot.library is None or spot.function.startswith(f"{spot.library}.")
    return spot.function if known else f"{spot.library} {spot.function}"


def _place(spot: HotSpot) -> str | None:
    return place_of(spot.file, spot.line) if spot.file else None


def _range(share: float, code: CodeStage) -> Range:
    low, high = wilson(round(share * code.samples), code.samples)
    return Range(low, share, high)


def _free(case: Case, stage: str, share: Range) -> Range | None:
    if case.whatif is None:
        return None
    return case.predict(**{stage: (1 - share.high, 1 - share.low)})
