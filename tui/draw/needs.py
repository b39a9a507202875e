"""Drawings of what a snapshot may not have: without it, a few words stand in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.content import Content

from ..snapshot import AdviceView, Snapshot
from .marks import BAD, dim, line, text

Drawing = Callable[..., Content]


def needs_loader(draw: Drawing) -> Drawing:
    """Makes a drawing of a snapshot out of one of its LoaderView."""

    def drawn(s: Snapshot, *room: int, **options: Any) -> Content:
        return dim("no batches yet") if s.loader is None else draw(s.loader, *room, **options)

    return drawn


def needs_advice(draw: Drawing) -> Drawing:
    """Makes a drawing of a snapshot out of one of its last report with advice."""

    def drawn(s: Snapshot, *room: int, **options: Any) -> Content:
        report = s.advice.report
        return no_advice(s.advice) if report is None else draw(report, *room, **options)

    return drawn


def no_advice(advice: AdviceView) -> Content:
    """Why there is none."""
    return line((text(advice.problem), BAD)) if advice.problem else dim("no advice yet")
