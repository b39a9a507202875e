"""The result of a trial, in words."""

from ..profiler.base.metadata import clean
from ..reports.words.advice_words import predicted_text
from ..reports.words.units import count, size
from .result import TryResult

LEAST_BYTES = 1_000_000  # smaller changes of memory are not shown


def tried_line(result: TryResult) -> str:
    """'same batches (first 64), ×2.9 (2.6–3.1), memory +120 MB'."""
    if result.error is not None:
        return f"not tried: {clean(result.error, 500)}"
    parts = [_batches(result)]
    if result.factor is None:
        parts.append("speed not measured")
    else:
        sure = "" if result.faster or result.slower else "not certainly faster or slower: "
        parts.append(f"{sure}{predicted_text(result.factor)}")
    if result.memory_bytes is not None and abs(result.memory_bytes) >= LEAST_BYTES:
        sign = "+" if result.memory_bytes > 0 else "−"
        parts.append(f"memory {sign}{size(abs(result.memory_bytes))}")
    return ", ".join(parts)


def tried_lines(result: TryResult) -> list[str]:
    """The same line, and the notes."""
    return [tried_line(result), *(f"  {clean(note, 500)}" for note in result.notes)]


def _batches(result: TryResult) -> str:
    of = f"{'all' if result.ended else 'first'} {count(result.compared)}"
    if result.same_batches is None:
        return "batches not compared"
    if result.same_batches:
        return f"same batches ({of})"
    assert result.first_difference is not None
    at, what = result.first_difference.batch, clean(result.first_difference.what, 300)
    return f"different from batch {count(at)} on: {what}"
