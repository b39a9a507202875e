"""DataLoader calls as a person would write them: all pasted code that makes a loader comes from
here.

A call is the one that made the user's loader (see `loader_form`), with changes. What it cannot say
in full it does not say: then the code is a comment that names what to change in the user's own
call.
"""

from __future__ import annotations

from typing import Any

from ..case.case import Case
from ..case.code_text import Source, identifier, literal
from .dialects import around, in_options
from .loader_form import NEEDS_WORKERS, LoaderForm, arguments_of, form_of

# A call longer than this is written one argument a line.
LINE = 96

DROP = Source("")  # as a value of `loader_code`: leave this argument out

_NOT_BESIDE_BATCH_SAMPLER = ("batch_size", "shuffle", "sampler", "drop_last")
_ORDER = (
    "dataset",
    "batch_size",
    "shuffle",
    "sampler",
    "batch_sampler",
    "num_workers",
    "collate_fn",
    "pin_memory",
    "drop_last",
    "timeout",
)
# Arguments that stand in code by their own name or that of a function of the user's.
_YOURS = (
    "batch_size",
    "sampler",
    "batch_sampler",
    "collate_fn",
    "worker_init_fn",
    "multiprocessing_context",
    "generator",
)


def dataset_class(case: Case, fallback: str = "MyDataset") -> str:
    """The class name of this loader's data set, for code."""
    told = case.config.get("dataset")
    return identifier(
        case.dataset.name if case.dataset else told if isinstance(told, str) else None, fallback
    )


def loader_code(case: Case, **changes: Any) -> str:
    """`loader = DataLoader(dataset, batch_size=…, …)` with this loader's arguments and the changes.

    In the words of the framework that made it or runs the loop. Where its call is not known well
    enough, what to change by hand.

    A change is a plain value, `Source("name")` for code, or `DROP`. What does not go together is
    left out: options of workers without workers, and batch_size, shuffle, sampler and drop_last
    beside a batch sampler.
    """
    said = in_options(case, changes, DROP)
    if said is not None:
        return said
    form = form_of(case)
    why = form.by_hand or _cannot(form, changes)
    if why is not None:
        return _by_hand(why, changes)
    arguments = _arguments(case, form, changes)
    yours = [
        value
        for name, value in arguments.items()
        if name in _YOURS
        and isinstance(value, Source)
        and changes.get(name) is not value
        and value.isidentifier()
    ]
    if form.cls not in ("DataLoader", "StatefulDataLoader") and form.imports is None:
        yours.insert(0, Source(form.cls))
    note = f"# yours, as in your own call: {', '.join(yours)}\n" if yours else ""
    imports = f"{form.imports}\n\n" if form.imports else ""
    return imports + note + around(case, _written(form.cls, arguments))


def loader_call(case: Case, **changes: Any) -> str:
    """The call alone, of a loader whose call is known."""
    form = form_of(case)
    return _written(form.cls, _arguments(case, form, changes))


def _arguments(case: Case, form: LoaderForm, changes: dict[str, Any]) -> dict[str, Any]:
    own = arguments_of(case, form)
    arguments = {**own, **changes}
    given = changes.get("sampler")
    if given:
        arguments.pop("shuffle", None)
    if form.batching == "batch_sampler" and "batch_sampler" not in changes and _of_batches(changes):
        # The same batch sampler with other figures.
        kept = {"batch_size": case.batch_size, "drop_last": case.config.get("drop_last") is True}
        figures = ", ".join(
            f"{name}={literal(changes.get(name, value))}" for name, value in kept.items()
        )
        arguments["batch_sampler"] = Source(f"BatchSampler({given or form.inner}, {figures})")
    if arguments.get("batch_sampler"):
        for name in _NOT_BESIDE_BATCH_SAMPLER:
            arguments.pop(name, None)
    if not arguments.get("num_workers"):
        for name in NEEDS_WORKERS:
            arguments.pop(name, None)
    left = {name: value for name, value in arguments.items() if value is not DROP}
    return {name: left[name] for name in (*_ORDER, *left) if name in left}


def _of_batches(changes: dict[str, Any]) -> bool:
    """Whether a change is of what a batch sampler says."""
    return any(changes.get(name, DROP) is not DROP for name in _NOT_BESIDE_BATCH_SAMPLER)


def _cannot(form: LoaderForm, changes: dict[str, Any]) -> str | None:
    """Why these changes cannot be made to the call; None where they can."""
    if form.batching != "batch_sampler" or "batch_sampler" in changes or not _of_batches(changes):
        return None
    if form.inner is not None and (changes.get("shuffle") or DROP) is DROP:
        return None
    return "your batch sampler says which samples make a batch: change it there"


def _by_hand(why: str, changes: dict[str, Any]) -> str:
    """The changes as comments: pasted, they change nothing."""
    lines = [f"# By hand: {why}"]
    for name, value in changes.items():
        if value is DROP:
            lines.append(f"#     leave out {name}")
        else:
            lines.append(f"#     {name}={literal(value)}")
    if not changes:
        lines = ["# The loader stays as it is."]
    return "\n".join(lines)


def _written(cls: str, arguments: dict[str, Any]) -> str:
    written = [literal(arguments["dataset"])]
    written += [
        f"{name}={literal(value)}" for name, value in arguments.items() if name != "dataset"
    ]
    line = f"{cls}({', '.join(written)})"
    if len(line) <= LINE:
        return line
    return f"{cls}(\n" + "".join(f"    {item},\n" for item in written) + ")"
