"""What a recommendation changes: arguments of the loader, or code that stands around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import libcst as cst

from ..advisors.code.dialects import DIALECTS
from ..advisors.code.loader_form import NEEDS_WORKERS
from ..advisors.schema.report_model import LoaderReport, Recommendation
from ..profiler.base.metadata import clean
from ..profiler.store.making import Making
from .arguments import Arguments
from .edits import Edits
from .project import CannotPatch, Project
from .sites import Site, site_of

# Calls that hold the options of a framework's loaders; matched by the end of their name.
_OPTIONS_IN = {"transformers": ("TrainingArguments",)}
_NAMED_LOADERS = ("DataLoader", "Loader")


class Advised(NamedTuple):
    """One loader's advice, with where the loader was made."""

    advice: Recommendation
    loader: LoaderReport
    making: Making


def change_arguments(
    project: Project, edits: Edits, advised: Advised, wanted: Mapping[str, str]
) -> None:
    """Set these arguments (name → source) where the loader's call gets them from. Raises
    CannotPatch."""
    arguments = arguments_of(project, edits, advised)
    for name, value in wanted.items():
        arguments.set(name, value)
    if wanted.get("num_workers") == "0":
        for name in NEEDS_WORKERS:
            if name not in wanted:
                arguments.remove(name)


def arguments_of(project: Project, edits: Edits, advised: Advised) -> Arguments:
    """The call that decides the loader's arguments: the user's own, or the framework's options."""
    making = advised.making
    framework = making.through if not making.again else None
    dialect = DIALECTS.get(framework or "")
    if framework in _OPTIONS_IN:
        site = _options(project, _OPTIONS_IN[framework], framework)
    else:
        site = site_of(project, making)
    if dialect is None:
        if making.through is not None and not making.again:
            raise CannotPatch(
                f"{clean(making.through, 60)} makes this loader in its {clean(making.call, 60)}(): "
                f"which of its options decides is not known ({site.source.place(site.call)})"
            )
        return Arguments(project, edits, site)
    names = dialect.options
    evaluating = advised.loader.config.get("phase") in ("validation", "evaluation", "test")

    def named(name: str) -> str | None:
        found = names.get(name)
        return found.replace("train_", "eval_") if found and evaluating else found

    return Arguments(project, edits, site, named, positions=("dataset", "input_size", "batch_size"))


def _options(project: Project, ends: tuple[str, ...], framework: str) -> Site:
    found = []
    for source in project.sources():
        for node in source.find(cst.Call):
            assert isinstance(node, cst.Call)
            if source.text(node.func).endswith(ends):
                found.append(Site(source, node))
    if len(found) == 1:
        return found[0]
    if found:
        raise CannotPatch(
            f"there are {len(found)} calls of {ends[0]}: which one this run used is not known"
        )
    raise CannotPatch(
        f"no {ends[0]}(…) in the project decides the options of {framework}: pass them on the "
        "command line"
    )
