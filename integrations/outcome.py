"""What a callback says when training has ended: a line a loader, and figures for the framework's
own logger."""

from __future__ import annotations

from ..advisors.assemble.build_report import report
from ..advisors.schema.report_model import LoaderReport, Report
from ..profiler.base.errors import LoaderscopeError
from ..profiler.record.iterate.watch import watch_all

PREFIX = "loaderscope/"


def begin() -> None:
    """Record every DataLoader of this process from now on."""
    watch_all()


def outcome() -> Report | None:
    """The report of this process so far; None where nothing was recorded."""
    try:
        return report()
    except LoaderscopeError:
        return None


def lines(found: Report) -> list[str]:
    """'Images (training): input-bound. The training loop waited … First: …', a loader each."""
    said = []
    for loader in found.loaders:
        phase = loader.config.get("phase")
        name = f"{loader.name} ({phase})" if phase else loader.name
        first = next((each.title for each in loader.recommendations), None)
        said.append(
            f"loaderscope: {name}: {loader.verdict}. {loader.basis.sentence}"
            + (f" First: {first}" if first else "")
        )
    return said


def scalars(found: Report) -> dict[str, float]:
    """Wait share, batches a second and headroom of each loader, by names for loggers; what is not
    known is left out."""
    known: dict[str, float] = {}
    for loader in found.loaders:
        for figure, value in (
            ("wait_share", _wait_share(loader)),
            ("batches_per_s", loader.batches_per_s),
            ("headroom", loader.headroom),
        ):
            if value is not None:
                known[f"{PREFIX}{loader.name}/{figure}"] = value
    return known


def _wait_share(loader: LoaderReport) -> float | None:
    wait = loader.stages.get("wait")
    return wait.share if wait is not None else None
