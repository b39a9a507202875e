"""DataLoader calls as a person would write them, for all pasted code that makes a loader.

A call is the one that made the user's loader (see `loader_form`), with changes. If that is not
known in full, the code is a comment that names what to change in the user's own call.
"""

from typing import Any

from ..case.case import Case
from ..case.code_text import Source, identifier, literal
from .dialects import around, in_options
from .loader_form import NEEDS_WORKERS, Arguments, LoaderForm, arguments_of, config_text, form_of

# A call longer than this is written one argument a line.
LINE = 96

DROP = Source("")  # as a value of `loader_code`: leave this argument out

# What DataLoader does not take together with a batch sampler.
NOT_WITH_BATCHES = ("batch_size", "shuffle", "sampler", "drop_last")
# What DataLoader takes without a keyword, in this order.
POSITIONS = (
    *("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers"),
    *("collate_fn", "pin_memory", "drop_last", "timeout", "worker_init_fn"),
    "multiprocessing_context",
)


def dataset_class(case: Case, fallback: str = "MyDataset") -> str:
    """The class name of this loader's data set, for code."""
    name = case.dataset.name if case.dataset is not None else config_text(case, "dataset")
    return identifier(name, fallback)


def loader_code(case: Case, **changes: Any) -> str:
    """`loader = DataLoader(dataset, batch_size=…, …)` with this loader's arguments and the changes.

    In the words of the framework that made it or runs the loop. Where its call is not known well
    enough, what to change by hand.

    A change is a plain value, `Source("name")` for code, or `DROP`. What does not go together is
    left out: options of workers without workers, and batch_size, shuffle, sampler and drop_last
    with a batch sampler.
    """
    options = in_options(case, changes, DROP)
    if options is not None:
        return options
    form = form_of(case)
    why = form.by_hand or _cannot(form, changes)
    if why is not None:
        return _by_hand(why, changes)
    arguments = _arguments(case, form, changes)
    yours = [
        value
        for name, value in arguments.items()
        if isinstance(value, Source)
        and value.isidentifier()
        and name != "dataset"
        and changes.get(name) is not value
    ]
    if form.cls not in ("DataLoader", "StatefulDataLoader") and form.imports is None:
        yours.insert(0, Source(form.cls))
    note = f"# yours, as in your own call: {', '.join(yours)}\n" if yours else ""
    imports = f"{form.imports}\n\n" if form.imports else ""
    return imports + note + around(case, _written(form.cls, arguments))


def _arguments(case: Case, form: LoaderForm, changes: Arguments) -> Arguments:
    arguments = {**arguments_of(case, form), **changes}
    sampler = changes.get("sampler")
    if _of_batches(form, changes):
        # The same batch sampler with other figures.
        size = literal(changes.get("batch_size", case.batch_size))
        last = literal(changes.get("drop_last", case.config.get("drop_last") is True))
        arguments["batch_sampler"] = Source(
            f"BatchSampler({sampler or form.inner}, batch_size={size}, drop_last={last})"
        )
    without: list[str] = ["shuffle"] if sampler else []
    if arguments.get("batch_sampler"):
        without += NOT_WITH_BATCHES
    if not arguments.get("num_workers"):
        without += NEEDS_WORKERS
    return {
        name: arguments[name]
        for name in (*POSITIONS, *arguments)
        if name in arguments and name not in without and arguments[name] is not DROP
    }


def _of_batches(form: LoaderForm, changes: Arguments) -> bool:
    """Whether a change is of what the batch sampler says that the loader is given."""
    given = form.batching == "batch_sampler" and "batch_sampler" not in changes
    return given and any(changes.get(name, DROP) is not DROP for name in NOT_WITH_BATCHES)


def _cannot(form: LoaderForm, changes: Arguments) -> str | None:
    """Why these changes cannot be made to the call; None where they can."""
    anew = form.inner is not None and (changes.get("shuffle") or DROP) is DROP
    if anew or not _of_batches(form, changes):
        return None
    return "your batch sampler says which samples make a batch: change it there"


def _by_hand(why: str, changes: Arguments) -> str:
    """The changes as comments: pasted, they change nothing."""
    lines = [
        f"#     leave out {name}" if value is DROP else f"#     {name}={literal(value)}"
        for name, value in changes.items()
    ]
    return "\n".join([f"# By hand: {why}", *lines]) if lines else "# The loader stays as it is."


def _written(cls: str, arguments: Arguments) -> str:
    written = [
        literal(value) if name == "dataset" else f"{name}={literal(value)}"
        for name, value in arguments.items()
    ]
    line = f"{cls}({', '.join(written)})"
    if len(line) <= LINE:
        return line
    return f"{cls}(\n" + "".join(f"    {item},\n" for item in written) + ")"
