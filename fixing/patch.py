"""A recommendation as a patch of the user's source."""

from dataclasses import dataclass, replace
from pathlib import Path

from ..advisors.code.dialects import EVALUATING
from ..advisors.code.python_text import CannotEdit
from ..advisors.schema.report_model import LoaderReport, Recommendation, Report
from ..profiler.base.errors import UsageError
from ..profiler.store.making import read_sources
from ..profiler.store.run.run import LoaderRun, Run
from .deciding_call import arguments_of, change_arguments
from .edits import Edits, FileChange, unified_diff
from .lines import change_fetching
from .pasting import BY_HAND, has_definitions, paste
from .project import CannotPatch, Project

# Advice whose batches may differ: what is promised of each patch is what `try` compares.
OTHER_BATCHES = ("batch-size", "drop-last", "in-order", "distributed-sampler", "sampler")


@dataclass(frozen=True)
class Patch:
    """A change of code. `same_batches`: whether the loop must be handed what it was before.
    `place`: where the loader is made."""

    title: str
    place: str
    changes: tuple[FileChange, ...]
    same_batches: bool = True

    @property
    def diff(self) -> str:
        """For `patch -p1` in the project's root."""
        return unified_diff(self.changes)


def open_project(run: Run, root: Path) -> Project:
    """The project in this folder, with what the run's processes recorded of its files."""
    hashes: dict[str, str] = {}
    for process in run.processes:
        hashes.update(read_sources(process.path).files)
    return Project(root, hashes, run.argv)


def chosen(report: Report, number: int | None) -> tuple[LoaderReport, Recommendation]:
    """The plan's first step, or the recommendation of that number as `report --advice` counts: of
    the loader that costs most, of those that have it. Raises UsageError."""
    at = (number or 1) - 1
    for loader in report.costliest:
        if at < len(loader.recommendations):
            return loader, loader.recommendations[at]
    if number is None:
        raise UsageError("the report of this run recommends nothing to change")
    most = max((len(each.recommendations) for each in report.loaders), default=0)
    has = f"it has {most}" if most else "nothing is advised"
    raise UsageError(f"there is no advice {number}: {has}")


def with_diffs(report: Report, run: Run, root: Path) -> Report:
    """The report with the diff of each recommendation that can be patched, not tried."""
    project = open_project(run, root)

    def with_diff(loader: LoaderReport, advice: Recommendation) -> Recommendation:
        try:
            patch = make_patch(run, project, loader, advice)
        except CannotPatch:
            return advice
        return replace(advice, change=replace(advice.change, diff=patch.diff))

    loaders = (
        replace(
            loader, recommendations=tuple(with_diff(loader, one) for one in loader.recommendations)
        )
        for loader in report.loaders
    )
    return replace(report, loaders=tuple(loaders))


def make_patch(run: Run, project: Project, loader: LoaderReport, advice: Recommendation) -> Patch:
    """Raises CannotPatch, with the reason as one sentence."""
    recorded = _recorded(run, loader)
    edits = Edits()
    try:
        same = _edit(project, edits, loader, advice, recorded)
        changes = edits.changes()
    except (CannotEdit, RecursionError) as error:
        raise CannotPatch("its exact place in the source is not known") from error
    if not changes:
        raise CannotPatch("the source says this already")
    place = recorded.made.place or "where it is watched"
    return Patch(advice.title, place, changes, same)


def _edit(
    project: Project,
    edits: Edits,
    loader: LoaderReport,
    advice: Recommendation,
    recorded: LoaderRun,
) -> bool:
    """Whether the batches stay the same. Raises CannotPatch."""
    if advice.rule == "batched-getitems" and change_fetching(project, edits, recorded):
        return True
    if advice.effort == "a conversion":
        raise CannotPatch("it converts the data, once, which is no change of the source")
    evaluating = loader.config.get("phase") in EVALUATING
    if has_definitions(advice.change.code):
        arguments = arguments_of(project, edits, recorded.made, evaluating)
        paste(edits, arguments.site, arguments, advice.change.code)
    elif advice.change.params:
        wanted = {name: repr(value) for name, value in advice.change.params.items()}
        change_arguments(project, edits, recorded.made, wanted, evaluating)
    else:
        raise CannotPatch(BY_HAND)
    return advice.rule not in OTHER_BATCHES


def _recorded(run: Run, loader: LoaderReport) -> LoaderRun:
    for each in run.loaders:
        if (each.pid, each.index) == (loader.pid, loader.index):
            return each
    raise CannotPatch(f"the run holds no loader {loader.name}")
