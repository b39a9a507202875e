"""The call that decides a loader's arguments: the user's own, or the options of a framework."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ..advisors.code.dialects import DIALECTS
from ..advisors.code.loader_form import NEEDS_WORKERS
from ..profiler.base.metadata import clean
from ..profiler.store.making import Making
from .arguments import Arguments
from .edits import Edits
from .nodes import calls_of, import_of
from .project import CannotPatch, Project
from .sites import Site, site_of

# Classes that hold the options of a framework's loaders; matched by the end of their name.
_OPTIONS = {"transformers": "TrainingArguments"}
# What timm's create_loader takes without keywords.
_POSITIONS = {"timm": ("dataset", "input_size", "batch_size")}


def change_arguments(
    project: Project,
    edits: Edits,
    making: Making,
    wanted: Mapping[str, str],
    evaluating: bool = False,
) -> None:
    """Set these arguments of DataLoader (name → source) where the loader gets them from.

    `evaluating`: the loader is not that of training. Raises CannotPatch.
    """
    arguments = arguments_of(project, edits, making, evaluating)
    for name, value in wanted.items():
        arguments.set(name, value)
    if wanted.get("num_workers") == "0":
        for name in NEEDS_WORKERS:
            if name not in wanted:
                arguments.remove(name)


def arguments_of(
    project: Project, edits: Edits, making: Making, evaluating: bool = False
) -> Arguments:
    """The arguments of the call that decides. Raises CannotPatch."""
    framework = making.through if not making.again else None
    dialect = DIALECTS.get(framework or "")
    if framework in _OPTIONS:
        site = _options(project, _OPTIONS[framework])
    else:
        site = site_of(project, making)
    # Lightning wraps the constructors of loaders while it asks for them.
    if framework is None or (dialect is None and site.callee.endswith("Loader")):
        return Arguments(project, edits, site)
    if dialect is None:
        raise CannotPatch(
            f"{clean(framework, 60)} makes this loader in its {clean(making.call, 60)}(): which of "
            f"its options decides is not known ({site.source.place(site.call)})"
        )
    names = {
        name: option.replace("train_", "eval_") if evaluating else option
        for name, option in dialect.options.items()
    }
    return Arguments(project, edits, site, names, _POSITIONS.get(framework, ()))


def change_dispatching(project: Project, edits: Edits) -> None:
    """Let each rank make its own batches: an option of Accelerator. Raises CannotPatch."""
    called = "DataLoaderConfiguration"
    if calls_of(project, called):
        Arguments(project, edits, _options(project, called)).set("dispatch_batches", "False")
        return
    site = _options(project, "Accelerator")
    arguments, value = Arguments(project, edits, site), f"{called}(dispatch_batches=False)"
    if arguments.value("dataloader_config") is not None:
        raise CannotPatch(
            f"{site.source.place(site.call)} is given a dataloader_config: set it there"
        )
    if import_of(site.source, "accelerate.utils") is None:
        edits.add(site.source, [site.source.imported("import accelerate.utils")])
    arguments.replace("dataloader_config", f"accelerate.utils.{value}")


def _options(project: Project, ends: str) -> Site:
    found = [
        Site(source, call)
        for source in project.sources()
        for call in source.find(ast.Call)
        if source.shown(call.func).endswith(ends)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise CannotPatch(
            f"{ends}(…) is called in {len(found)} places: which this loader got is not known"
        )
    raise CannotPatch(f"no {ends}(…) in the project decides it: pass the option where you start it")
