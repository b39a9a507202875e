"""Writes the batched form of one loader: complete code, to be pasted after the definition of its data set."""

from __future__ import annotations

from dataclasses import dataclass

from ..case import Case
from ..loader_code import DROP, Source, identifier, loader_code
from .access import Plan
from .batch_access import Access, batch_access
from .batch_values import NotArrays, samples_text

# A batch sampler that draws from torch's random numbers just as RandomSampler does: the same seed, the same order.
BATCH_INDICES = '''class BatchIndices(Sampler):
    """The indices of whole batches, as tensors, in the order in which batch_size and shuffle would draw them."""

    def __init__(self, length, batch_size, shuffle=False, drop_last=False, generator=None):
        self.length, self.batch_size, self.shuffle = length, batch_size, shuffle
        self.drop_last, self.generator = drop_last, generator

    def __len__(self):
        full, rest = divmod(self.length, self.batch_size)
        return full + (1 if rest and not self.drop_last else 0)

    def __iter__(self):
        rows = torch.arange(self.length) if not self.shuffle else self.shuffled()
        rows = rows[: len(self) * self.batch_size]
        for part in rows.split(1024 * self.batch_size):  # a million small tensors at once would fill memory
            yield from part.split(self.batch_size)

    def shuffled(self):
        generator = self.generator
        if generator is None:
            generator = torch.Generator()
            generator.manual_seed(int(torch.empty((), dtype=torch.int64).random_()))
        return torch.randperm(self.length, generator=generator)
'''

AS_IS = """def as_is(batch):
    return batch
"""


@dataclass(frozen=True)
class Batched:
    """The batched form: its code, the DataLoader arguments it changes, and what is left to do a sample.

    `form` is "sampler" (whole batches of indices) or "getitems" (a list of samples for the user's own collate
    function, which stays).
    """

    form: str
    code: str
    access: Access
    workers_kept: bool

    @property
    def params(self) -> dict[str, int | None]:
        workers: dict[str, int | None] = {} if self.workers_kept else {"num_workers": 0}
        return {"batch_size": None, **workers} if self.form == "sampler" else workers


def batched_form(case: Case) -> Batched:
    """The best batched form of this case's loader. Raises NotArrays with what stands in the way."""
    dataset = case.dataset
    if dataset is None:
        raise NotArrays("the data set was not looked at")
    access = batch_access(dataset)
    if own_collate(case):
        return _for_own_collate(case, access)
    return _whole_batches(case, access)


def own_collate(case: Case) -> bool:
    """Whether the loader's collate function is not torch's default."""
    told = case.config.get("collate_fn")
    return isinstance(told, str) and told.rpartition(".")[2] not in ("default_collate", "default_convert")


def whole_epochs(case: Case) -> bool:
    """Whether the sampler draws each sample once: shuffled or in order. Anything else keeps the sampler it has."""
    sampler, batch_sampler = case.config.get("sampler"), case.config.get("batch_sampler")
    if not isinstance(sampler, str) or case.batch_size is None:
        return False
    if isinstance(batch_sampler, str) and batch_sampler.rpartition(".")[2] != "BatchSampler":
        return False
    if sampler.rpartition(".")[2] not in ("RandomSampler", "SequentialSampler"):
        return False
    length, drawn = case.config.get("dataset_len"), samples_an_epoch(case)
    if drawn is None or not isinstance(length, int):
        return True
    left_out = length % case.batch_size if case.config.get("drop_last") else 0
    return drawn == length - left_out


def samples_an_epoch(case: Case) -> int | None:
    """Samples of an epoch that ran to its end and is kept in detail; None without one."""
    epochs, batches = case.loader.epochs, case.loader.batches
    for epoch, count, how in zip(epochs["epoch"], epochs["batches"], epochs["how"], strict=True):
        rows = batches["samples"][batches["epoch"] == epoch]
        if how == 1 and len(rows) == count and len(rows) and rows.min() >= 0:
            return int(rows.sum())
    return None


def _whole_batches(case: Case, access: Access) -> Batched:
    keep_workers = bool(access.loops) and case.num_workers > 0
    shuffled = str(case.config.get("sampler")).endswith("RandomSampler")
    notes: list[str] = []
    classes = list(access.classes)
    imports = ["DataLoader"]
    if whole_epochs(case):
        drop = ", drop_last=True" if case.config.get("drop_last") else ""
        shuffle = ", shuffle=True" if shuffled else ""
        sampler = f"BatchIndices(len(dataset), batch_size={case.batch_size}{shuffle}{drop})"
        classes.append(BATCH_INDICES)
        imports.append("Sampler")
    elif case.batch_size is not None:
        kept = bool(case.config.get("drop_last"))
        sampler = f"BatchSampler(sampler, batch_size={case.batch_size}, drop_last={kept})"
        notes.append(f"# `sampler` is the one this loader has today ({_sampler_name(case)}).")
        imports.append("BatchSampler")
    else:
        sampler = "batch_sampler"
        notes.append("# `batch_sampler` is the one this loader has today.")
    classes.append(AS_IS)
    text = "\n\n".join(classes)
    imports += [name for name in ("Dataset", "default_collate") if f"{name}(" in text or f"({name})" in text]
    call = loader_code(
        case,
        dataset=Source(access.expression),
        batch_size=None,
        batch_sampler=DROP,
        sampler=Source("BATCHES"),
        drop_last=DROP,
        shuffle=DROP,
        collate_fn=Source("as_is"),
        **({} if keep_workers else {"num_workers": 0, "worker_init_fn": DROP}),
    )
    code = "\n".join(
        [
            "import torch",
            f"from torch.utils.data import {', '.join(sorted(set(imports), key=str.lower))}",
            "\n",
            *([text, ""] if text else []),
            *notes,
            call.replace("BATCHES", sampler),
            *_loop(case, access),
        ]
    )
    return Batched("sampler", code + "\n", access, keep_workers)


def _loop(case: Case, access: Access) -> list[str]:
    """A comment with the same loop without a DataLoader."""
    if not whole_epochs(case) or access.loops:
        return []
    shuffled = str(case.config.get("sampler")).endswith("RandomSampler")
    order = "torch.randperm(len(dataset))" if shuffled else "torch.arange(len(dataset))"
    return [
        "",
        "# Without a DataLoader it is faster still:",
        f"#     batches = {access.expression}",
        f"#     for rows in {order}.split({case.batch_size}):",
        "#         batch = batches[rows]",
    ]


def _sampler_name(case: Case) -> str:
    told = case.config.get("sampler")
    return identifier(told if isinstance(told, str) else None, "its own")


def _for_own_collate(case: Case, access: Access) -> Batched:
    """`__getitems__` that answers a list of samples: what the user's collate function is given stays the same."""
    dataset = case.dataset
    assert dataset is not None
    inner, target = dataset, "dataset"
    while inner.type.endswith("data.dataset.Subset") and len(inner.children) == 1:
        inner, target = inner.children[0], f"{target}.dataset"
    if access.plan is None or access.loops:
        raise NotArrays("its samples are collated by a function of your own")
    fallback = f"type({target})"
    name = identifier(inner.name, fallback)
    code = [
        "import torch",
        "from torch.utils.data import DataLoader",
        "\n",
        getitems_function(access.plan),
        "",
        f"{name}.__getitems__ = getitems  # or write it into the class, as its method __getitems__",
        "",
        loader_code(case),
    ]
    return Batched("getitems", "\n".join(code) + "\n", access, True)


def getitems_function(plan: Plan) -> str:
    """A `__getitems__` with the samples themselves, each as `__getitem__` gives it."""
    result = plan.result
    if any(item.value is None for item in result.items):
        raise NotArrays("its samples are nested")
    lines = [
        "def getitems(source, indices):",
        '    """The samples at these indices: each array is read once for all of them."""',
        "    rows = torch.as_tensor(indices)",
        *(f"    {local} = {value.text}" for local, value in plan.assigns),
    ]
    texts = [samples_text(leaf) for leaf in plan.leaves]
    if result.kind == "value":
        lines.append(f"    return list({texts[0]})")
    elif result.kind == "tuple":
        lines.append(f"    return list(zip({', '.join(texts)}))")
    elif result.kind == "list":
        lines.append(f"    return [list(sample) for sample in zip({', '.join(texts)})]")
    else:
        lines.append(f"    return [dict(zip({list(result.keys)!r}, sample)) for sample in zip({', '.join(texts)})]")
    return "\n".join(lines) + "\n"
