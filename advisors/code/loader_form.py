"""How the user made a loader, as far as its recorded configuration tells: the one description all
pasted code is of."""

import re
from dataclasses import dataclass
from typing import Any

from ...profiler.base.torch_parts import DEFAULT_PREFETCH
from ...profiler.store.inspection import Part
from ..case.case import Case
from ..case.code_text import Source, identifier, last_part

# Classes that take what torch's DataLoader takes: how to import those of other libraries.
_CLASSES = {
    "torch.utils.data.dataloader.DataLoader": None,
    "torchdata.stateful_dataloader.stateful_dataloader.StatefulDataLoader": None,
    "monai.data.dataloader.DataLoader": "from monai.data import DataLoader",
    "torch_geometric.loader.dataloader.DataLoader": "from torch_geometric.loader import DataLoader",
}
# What these libraries put in by themselves.
_PUT_IN = ("monai.data.utils.", "torch_geometric.loader.dataloader.Collater", "timm.data.")
# What options of workers come to without workers.
NEEDS_WORKERS = (
    "prefetch_factor",
    "persistent_workers",
    "multiprocessing_context",
    "timeout",
    "in_order",
)
_SHARDS = ("BatchSamplerShard, BatchSampler", "BatchSamplerShard")
_BATCH_SAMPLERS = (
    "torch.utils.data.sampler.BatchSampler",
    "torchdata.stateful_dataloader.sampler.BatchSampler",
    "BatchSampler",
)
_FRAMEWORKS = (
    "accelerate.",
    "transformers.",
    "lightning.",
    "pytorch_lightning.",
    "lightning_fabric.",
)
_LIBRARIES = ("torch", "torchvision", "torchdata", "numpy", "transformers")
_INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]")
_DEFAULT_COLLATE = ("default_collate", "default_convert")

# What makes the loader of options, by framework.
_OF_OPTIONS = {
    "transformers": "the Trainer of transformers",
    "timm": "timm's create_loader",
    "ultralytics": "Ultralytics",
    "fastai": "fastai",
}
Arguments = dict[str, Any]  # of a loader, by name
_DEFAULTS = {"pin_memory": False, "timeout": 0, "in_order": True, "persistent_workers": False}
_SHARED_OUT = ("DistributedSampler", "UnrepeatedDistributedSampler")


@dataclass(frozen=True)
class LoaderForm:
    """The call that made a loader.

    `cls` is what code calls its class. `batching` is the argument that says which samples make a
    batch ("batch_size", "batch_sampler" or "none"). `plain`: DataLoader makes its sampler itself,
    shuffled or in order; `shuffle` is None where the order is not known. `inner` is how code
    reaches what draws the samples from the batch sampler, where that is torch's own BatchSampler.
    `by_hand` says why the call cannot be written out, None where it can; `imports` is the line that
    imports a class of another library's, `generator` the argument that shuffling takes.
    """

    cls: str
    batching: str
    plain: bool
    shuffle: bool | None
    inner: str | None
    by_hand: str | None
    imports: str | None = None
    generator: str = ""

    @property
    def whole(self) -> bool:
        """Whether an epoch draws each sample once, in batches of one size, by torch's own
        samplers."""
        return self.plain and (self.batching == "batch_size" or self.inner is not None)


def form_of(case: Case) -> LoaderForm:
    """How this case's loader was made."""
    config, framework = case.config, framework_of(case)
    qualified, sampler = config_text(case, "loader"), config_text(case, "sampler")
    batch_sampler, made_by = config_text(case, "batch_sampler"), config_text(case, "made_by")
    batching = config_text(case, "batching") or "batch_size"
    name = last_part(sampler or "")
    shuffle, plain = config.get("shuffle"), config.get("sampler_plain") is True
    shuffle = shuffle if isinstance(shuffle, bool) else None
    cls, imports = identifier(qualified, "DataLoader"), _CLASSES.get(qualified or "")
    if framework in ("lightning", "ray") and name in _SHARED_OUT and shuffle is not None:
        plain = True  # the framework shares out what the user's call draws
    if framework == "accelerate" and plain and config_text(case, "sampler_wrappers") in _SHARDS:
        batching = "batch_size"  # so the user's call said, before Accelerate dealt the batches out
    if framework == "webdataset" and cls == "DataLoader":
        cls, imports = "wds.WebLoader", "import webdataset as wds"
    by_hand = None
    if framework in _OF_OPTIONS:
        by_hand = (
            f"{_OF_OPTIONS[framework]} makes this loader, so there is no call of DataLoader to "
            "change"
        )
    elif made_by == "accelerate" and (batching == "batch_sampler" or not plain):
        by_hand = (
            "Accelerate makes this loader out of yours: change the DataLoader(…) that you hand to "
            "prepare()"
        )
    elif made_by == "lightning" and not plain:
        by_hand = (
            "Lightning gives this loader its sampler: change the DataLoader(…) that you hand to it"
        )
    elif imports is None and (
        config.get("own_constructor") is True
        or (cls == "DataLoader" and qualified is not None and qualified not in _CLASSES)
    ):
        by_hand = f"{cls} has a constructor of its own: change your call of it"
    torchs = batching == "batch_sampler" and batch_sampler in _BATCH_SAMPLERS
    inner = "batch_sampler.sampler" if torchs else None
    generator = ", generator=generator" if shuffle and config.get("generator") is True else ""
    return LoaderForm(cls, batching, plain, shuffle, inner, by_hand, imports, generator)


def framework_of(case: Case) -> str | None:
    """The framework that made this loader, else the one that runs the loop over it."""
    made, runs = config_text(case, "made_by"), config_text(case, "framework")
    if runs == "transformers":
        return runs
    return made if made is not None or runs == "timm" else runs


def arguments_of(case: Case, form: LoaderForm) -> Arguments:
    """The arguments that differ from DataLoader's defaults, in the order in which people write
    them. What cannot be written as a value goes by the argument's own name: it is in the user's
    hands."""
    config = case.config
    found: Arguments = {"dataset": Source("dataset"), **_drawing(case, form)}
    if framework_of(case) == "accelerate" and config.get("replicas") and "batch_size" in found:
        # Of one rank or of all: the user's configuration says.
        found["batch_size"] = Source("batch_size")
    if case.num_workers:
        found["num_workers"] = case.num_workers
    for name, default in _DEFAULTS.items():
        value = config.get(name)
        if isinstance(value, bool | int | float) and value != default:
            found[name] = value
    if case.loader.prefetch_factor != DEFAULT_PREFETCH:
        found["prefetch_factor"] = case.loader.prefetch_factor
    inspection, put_in = case.inspection, (*_PUT_IN, *_FRAMEWORKS)
    for name, part, given in (
        ("collate_fn", inspection.collate, _PUT_IN),
        ("worker_init_fn", inspection.worker_init, put_in),
    ):
        qualified = config_text(case, name) or ""
        theirs = qualified.removeprefix("partial(").startswith(given)
        if not theirs and not is_default_collate(qualified):
            found[name] = Source(function_name(qualified, part, name))
    context = config_text(case, "multiprocessing_context")
    if context is not None:
        known = context in ("fork", "spawn", "forkserver")
        found["multiprocessing_context"] = context if known else Source("multiprocessing_context")
    if config.get("generator") is True:
        found["generator"] = Source("generator")
    return found


def _drawing(case: Case, form: LoaderForm) -> Arguments:
    """Who draws the samples, and in what batches."""
    if form.batching == "batch_sampler":
        return {"batch_sampler": Source("batch_sampler")}
    found: Arguments = {}
    if form.batching == "none" or "batch_size" in case.config:
        found["batch_size"] = None if form.batching == "none" else case.config["batch_size"]
    if case.config.get("drop_last") is True:
        found["drop_last"] = True
    # Without automatic batching a known sampler inside of another draws single samples, the outer
    # one lists of them.
    direct = config_text(case, "sampler_path") in (None, "sampler")
    if form.plain and direct:
        return {**found, "shuffle": True} if form.shuffle else found
    return {**found, "sampler": Source("sampler")}


def drawing_sampler(case: Case) -> str | None:
    """Code for what draws single samples, in the order of this loader's; None where that is not
    known."""
    form = form_of(case)
    if form.by_hand is not None or form.batching == "none":
        return None
    if form.batching == "batch_sampler":
        return form.inner
    if not form.plain:
        return "sampler"
    return (
        f"RandomSampler(dataset{form.generator})" if form.shuffle else "SequentialSampler(dataset)"
    )


def is_default_collate(qualified: str | None) -> bool:
    """Whether this is torch's own way to make a batch."""
    if not qualified or qualified in _DEFAULT_COLLATE:
        return True
    return qualified.startswith("torch.utils.data.") and last_part(qualified) in _DEFAULT_COLLATE


def collate_name(case: Case) -> str:
    """What code calls the loader's collate function, torch's own included."""
    qualified = config_text(case, "collate_fn") or "default_collate"
    if is_default_collate(qualified):
        return last_part(qualified)
    return function_name(qualified, case.inspection.collate, "collate_fn")


def function_name(qualified: str, part: Part | None, fallback: str) -> str:
    """How code calls a function of the user's.

    More than a name is needed for a partial, a method or a function inside a function, an object
    with `__call__` is known by its class only, and the import of a library's function is not known:
    those get `fallback`.
    """
    name = identifier(part.name if part is not None else qualified, fallback)
    *modules, _ = qualified.split(".")
    inside = part is not None and (
        "." in (part.qualname or "") or _INSTALLED.search(part.file or "") is not None
    )
    if (
        inside
        or qualified.startswith(("partial(", *(f"{library}." for library in _LIBRARIES)))
        or name in _DEFAULT_COLLATE
        or any(module == "<locals>" or module[:1].isupper() for module in modules)
        or not (name[:1].islower() or name[:1] == "_")
    ):
        return fallback
    return name


def config_text(case: Case, name: str) -> str | None:
    """A text of the loader's configuration; None without one."""
    value = case.config.get(name)
    return value if isinstance(value, str) and value else None
