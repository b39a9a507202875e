"""The report of a callback at the end of training: one line per loader, and figures for the
framework's logger."""

from __future__ import annotations

from ..advisors.assemble.build_report import report
from ..advisors.schema.report_model import LoaderReport
from ..profiler.base.errors import LoaderscopeError
from ..profiler.record.iterate.watch import watch_all as watch_all

PREFIX = "loaderscope/"


def outcome() -> tuple[list[str], dict[str, float]]:
    """One line per loader of this process so far ('Images (training): input-bound. The training
    loop waited … First: …'), and its figures by logger name. Both are empty if nothing was
    recorded."""
    try:
        loaders = report().loaders
    except LoaderscopeError:
        return [], {}
    figures = {}
    for loader in loaders:
        wait = loader.stages.get("wait")
        figures[f"{PREFIX}{loader.name}/wait_share"] = wait.share if wait is not None else None
        figures[f"{PREFIX}{loader.name}/batches_per_s"] = loader.batches_per_s
        figures[f"{PREFIX}{loader.name}/headroom"] = loader.headroom
    known = {name: value for name, value in figures.items() if value is not None}
    return [_line(loader) for loader in loaders], known


def _line(loader: LoaderReport) -> str:
    phase = loader.config.get("phase")
    name = f"{loader.name} ({phase})" if phase else loader.name
    first = next((f" First: {each.title}" for each in loader.recommendations), "")
    return f"loaderscope: {name}: {loader.verdict}. {loader.basis.sentence}{first}"
