"""The fifth screen: the stages, and the slowest batches."""

from textual.content import Content

from ...reports.document.stages import slowest_batches, stage_table
from ..snapshot import LoaderView
from .marks import blocks, dim, needs_loader


@needs_loader
def stages(v: LoaderView, width: int) -> Content:
    """Each stage: its mean and percentiles, and its share of a step."""
    return blocks(stage_table(v.report), width)


@needs_loader
def slowest(v: LoaderView, width: int) -> Content:
    """The newest batches that were waited for longest."""
    found = slowest_batches(v.loader)
    return blocks(found, width) if found else dim("no batch has a measured wait")
