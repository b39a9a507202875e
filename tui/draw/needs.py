"""Drawings of what a snapshot may not have: without it, a few words stand in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from textual.content import Content

from ...advisors.schema.report_model import LoaderReport
from ..snapshot import AdviceView, LoaderView, Snapshot
from .marks import BAD, DIM, line, text

T = TypeVar("T")
P = ParamSpec("P")
Drawing = Callable[Concatenate[T, P], Content]


def needs_loader(draw: Drawing[LoaderView, P]) -> Drawing[Snapshot, P]:
    """A drawing of the chosen loader."""

    def drawn(s: Snapshot, /, *args: P.args, **options: P.kwargs) -> Content:
        if s.loader is None:
            return line(("no batches yet", DIM))
        return draw(s.loader, *args, **options)

    return drawn


def needs_advice(draw: Drawing[LoaderReport, P]) -> Drawing[Snapshot, P]:
    """A drawing of the last report with advice."""

    def drawn(s: Snapshot, /, *args: P.args, **options: P.kwargs) -> Content:
        if s.advice.report is None:
            return no_advice(s.advice)
        return draw(s.advice.report, *args, **options)

    return drawn


def no_advice(advice: AdviceView) -> Content:
    """Why there is none."""
    return line((text(advice.problem), BAD) if advice.problem else ("no advice yet", DIM))
