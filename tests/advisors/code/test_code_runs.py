"""Whatever a rule advises, pasted below the user's own code: it runs, and its loader gives the same
batches. What is seen of the loader is real, what was measured is made up."""

import ast
import itertools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    get_worker_info,
)

from builders import epoch_row
from loaderscope.advisors.case.advice import Advice
from loaderscope.advisors.case.case import Case
from loaderscope.advisors.case.code_text import free_names
from loaderscope.advisors.code.loader_code import loader_code
from loaderscope.advisors.rules import all_rules
from loaderscope.profiler.record.inspect.inspect_batch import inspect_batch
from rule_cases import case_of
from rule_rows import host_samples, main_loop, worker_loop
from stored_sets import Sized

N = 238  # sixty batches of four, the last of two


class Rows(Sized):
    """Its sample number n is n/255: each can be told, even if it comes as a byte."""

    def __init__(self) -> None:
        super().__init__(N)
        self.values = torch.arange(N * 3).reshape(N, 3) // 3 / 255

    def __getitem__(self, index: int) -> Any:
        return self.values[index]


class Pairs(Rows):
    def __getitem__(self, index: int) -> Any:
        return {"x": self.values[index], "y": index}


class Made(Rows):
    def __getitem__(self, index: int) -> Any:
        total = self.values[index] * 1.0
        for _ in range(2):
            total = total + 0
        return total


class Stream(IterableDataset[Any]):
    def __init__(self) -> None:
        self.numbers = list(range(N))

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        step = slice(worker.id, None, worker.num_workers) if worker else slice(None)
        return iter([torch.full((3,), number / 255) for number in self.numbers[step]])


class Listed(Sampler[Any]):
    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


TWICE = [index for index in range(0, N, 2) for _ in range(2)]
GROWING = [list(range(sum(range(3, n)), sum(range(3, n + 1)))) for n in range(3, 21)]


class Loader(DataLoader[Any]):
    """The user's own loader."""


class Counted(DataLoader[Any]):
    def __init__(self, dataset: Any, count: int) -> None:
        super().__init__(dataset, batch_size=len(dataset) // count)


def join(samples: Any) -> Any:
    result = []
    for sample in samples:
        result.append(sample.tolist())  # noqa: PERF401 - it is the slow way that is to be found
    return torch.tensor(result)


def padded(samples: Any) -> Any:
    return torch.nn.utils.rnn.pad_sequence(list(samples), batch_first=True)


class Joiner:
    def __call__(self, samples: Any) -> Any:
        return torch.stack(list(samples))


def prepare_worker(worker_id: int) -> None:
    torch.manual_seed(worker_id)


class Form:
    """A way to make a loader, of these arguments: functions of the data set make those of MADE.
    `ordered`: its order is always the same; `by_hand`: its call is not for code to write."""

    MADE = ("dataset", "sampler", "batch_sampler", "generator")

    def __init__(self, cls=DataLoader, ordered=False, by_hand=False, **given) -> None:
        self.cls, self.ordered, self.by_hand, self.given = cls, ordered, by_hand, given

    def loader(self, **more: Any) -> tuple[Any, dict[str, Any]]:
        """The loader, and the names that the user's code has for its parts."""
        made: dict[str, Any] = {"dataset": Rows()}
        if not self.given.keys() & {"batch_sampler", "count"}:
            made["batch_size"] = 4
        for name, value in {**self.given, **more}.items():
            anew = name in self.MADE and callable(value)
            made[name] = value(made["dataset"]) if anew else value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torchdata warns of what it calls itself
            return self.cls(**made), {**globals(), **made}


def stateful(**given: Any) -> Any:
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(**given)


def prepared(**given: Any) -> Any:
    made = pytest.importorskip("accelerate.data_loader")
    return made.prepare_data_loader(DataLoader(**given), put_on_device=False)


def batches(of: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda dataset: BatchSampler(of(dataset), 4, False)


def shared(dataset: Any) -> Any:
    return DistributedSampler(dataset, 2, 1)


FORMS = {
    "in order": Form(ordered=True),
    "shuffled": Form(shuffle=True),
    "drop_last": Form(shuffle=True, drop_last=True),
    "a generator": Form(shuffle=True, generator=lambda _: torch.Generator().manual_seed(1)),
    "a sampler": Form(sampler=Listed(TWICE), ordered=True),
    "a subset's sampler": Form(sampler=SubsetRandomSampler(range(0, N, 3))),
    "a distributed sampler": Form(sampler=shared, ordered=True),
    "batches": Form(batch_sampler=batches(RandomSampler)),
    "batches of a sampler": Form(batch_sampler=BatchSampler(Listed(TWICE), 4, False), ordered=True),
    "distributed batches": Form(batch_sampler=batches(shared), ordered=True),
    "own batches": Form(batch_sampler=Listed(GROWING), ordered=True),
    "whole batches": Form(batch_size=None, sampler=batches(RandomSampler)),
    "single samples": Form(batch_size=None, ordered=True),
    "a collate function": Form(shuffle=True, collate_fn=join),
    "padding": Form(shuffle=True, drop_last=True, collate_fn=padded),
    "padding of batches": Form(batch_sampler=batches(lambda d: Listed(TWICE)), collate_fn=padded),
    "a collate object": Form(shuffle=True, collate_fn=Joiner()),
    "a lambda": Form(shuffle=True, collate_fn=lambda samples: torch.stack(list(samples))),
    "a worker's init": Form(shuffle=True, worker_init_fn=prepare_worker),
    "dicts": Form(dataset=lambda d: Pairs(), shuffle=True),
    "computed": Form(dataset=lambda d: Made(), shuffle=True),
    "tensors": Form(dataset=lambda d: TensorDataset(d.values), shuffle=True),
    "a subset": Form(dataset=lambda d: Subset(d, list(range(0, N, 2))), shuffle=True),
    "joined": Form(dataset=lambda d: ConcatDataset([d, d]), ordered=True),
    "a list": Form(dataset=lambda d: list(d.values), shuffle=True),
    "a stream": Form(dataset=lambda d: Stream(), ordered=True),
    "a stream of samples": Form(dataset=lambda d: Stream(), batch_size=None, ordered=True),
    "own loader": Form(Loader, shuffle=True),
    "stateful": Form(stateful, shuffle=True),
    "accelerate": Form(prepared, shuffle=True, by_hand=True),
    "own constructor": Form(Counted, ordered=True, by_hand=True, count=59),
}
WORKERS: tuple[dict[str, Any], ...] = (
    {},
    {"num_workers": 2},
    {"num_workers": 2, "persistent_workers": True, "prefetch_factor": 4, "timeout": 60},
    {"num_workers": 2, "multiprocessing_context": "fork", "in_order": False},
)
RECORDED = {
    "slow to fetch": {"fetch": 20.0, "index": 0.01, "collate": 0.01},
    "many lookups": {"fetch": 0.08, "index": 0.005, "collate": 0.02},
    "slow to draw": {"fetch": 0.05, "index": 5.0, "collate": 0.02},
    "slow to collate": {"fetch": 0.5, "index": 0.01, "collate": 20.0},
    "tiny batches": {"fetch": 0.005, "index": 0.05, "collate": 0.3},
}


def alone(loader: Any) -> Any:
    """The loader without its workers, which take long to start; what they get is drawn and collated
    just the same."""
    inner = getattr(loader, "base_dataloader", loader)
    inner.num_workers = inner.timeout = 0
    return loader


def numbers(batch: Any) -> list[int]:
    """Which samples are in a batch; a lone sample is a batch of one."""
    while not isinstance(batch, torch.Tensor):
        batch = batch["x"] if isinstance(batch, dict) else batch[0]
    rows = batch.reshape(-1, 3)[:, 0]
    return [int(n) for n in (rows if rows.dtype == torch.uint8 else (rows * 255).round()).tolist()]


def batches_of(loader: Any) -> list[list[int]]:
    torch.manual_seed(3)
    return [numbers(batch) for batch in alone(loader)]


def recorded(path: Path, made: Form, workers: dict[str, Any], stages: dict[str, float]) -> Case:
    """The case of such a loader, of two epochs with these times in ms."""
    sizes = [len(batch) for batch in batches_of(made.loader(**workers)[0])]
    loader, _ = made.loader(**workers)
    rows: list[dict[str, Any]] = []
    told = []
    for epoch in range(2):
        start = {"start_ns": rows[-1]["t_ns"] + 10**9} if rows else {}
        if workers:
            times = {f"{name}_ms": stages[name] for name in ("fetch", "collate")}
            times |= {"epoch": epoch, "pack_ms": 4.0, "unpack_ms": 4.0, **start}
            own = worker_loop(len(sizes), 10.0, 0.05, **times)
        else:
            own = main_loop(len(sizes), 0.05, **stages)
            shift = start.get("start_ns", own[0]["t_ns"]) - own[0]["t_ns"]
            own = [{**row, "epoch": epoch, "t_ns": row["t_ns"] + shift} for row in own]
        for row, size in zip(own, sizes, strict=True):
            row |= {"samples": size, "bytes": 12 * size, "tensors": 40, "pickled_bytes": 10}
        own[-1]["compute_ns"] = 900_000_000  # a short last batch that is compiled for
        told.append(epoch_row(own))
        rows += own
    structure = inspect_batch(next(iter(alone(made.loader(**workers)[0]))))
    for leaf in structure["leaves"]:
        leaf |= {"padding_share": 0.5}
    system = host_samples(threads=40, worker_cores=3.0)
    return case_of(path, rows, epochs=told, loader=loader, inspection=structure, system=system)


def advised(case: Case) -> Iterator[tuple[str, Advice]]:
    """All that the rules say, advice that the engine would drop for its small gain included."""
    for rule in all_rules():
        for outcome in rule.examine(case):
            if isinstance(outcome, Advice):
                yield rule.name, outcome


def pasted(code: str, scope: dict[str, Any]) -> Any:
    """The loader that the code makes of these names; None where it leaves the loader as it is.
    Every name in it is defined, imported, or one the user has."""
    lacking = free_names(ast.parse(code)) - scope.keys()
    assert not lacking, (lacking, code)
    scope.pop("loader", None)
    exec(compile(code, "<pasted>", "exec"), scope)
    return scope.get("loader")


def check(made: Form, workers: dict[str, Any], rule: str, advice: Advice) -> bool:
    """Whether the code makes a loader; asserts that it gives the batches of the one before."""
    before = batches_of(made.loader(**workers)[0])
    _, scope = made.loader(**workers)
    after = pasted(advice.code, scope)
    try:
        if after is None:
            lines = [line for line in advice.code.splitlines() if line[:1] != "#"]
            assert "DataLoader(" not in "".join(lines)
            return False
        assert not made.by_hand, advice.code
        assert_same(made, rule, advice, before, batches_of(after))
    finally:
        for cls in (Rows, Pairs, Made):  # pasted code may give the class a method
            if "__getitems__" in vars(cls):
                del cls.__getitems__  # type: ignore[attr-defined]
    if workers and "num_workers" not in advice.params and rule != "batched-getitems":
        assert "num_workers=2" in advice.code, advice.code
    return True


def assert_same(made: Form, rule: str, advice: Advice, before: Any, found: Any) -> None:
    if advice.params.get("batch_size"):
        assert max(map(len, found)) == advice.params["batch_size"]
        if "drop_last=True" in advice.code:
            return
        before, found = [list(itertools.chain(*before))], [list(itertools.chain(*found))]
    elif advice.params.get("drop_last"):
        before = [batch for batch in before if len(batch) == len(before[0])]
        assert len(found) == len(before)
        if not made.ordered:
            return  # others are left out
    reordered = not made.ordered or "LengthBuckets" in advice.code or "in_order" in advice.params
    assert sorted(map(len, found)) == sorted(map(len, before)), (rule, advice.code)
    same = made_of(found, before) if reordered else found == before
    assert same, (rule, advice.code)


def made_of(found: list[list[int]], before: list[list[int]]) -> bool:
    """Whether both hold the same samples, as often; one that leaves a short batch out may leave out
    others."""
    one, other = sorted(itertools.chain(*found)), sorted(itertools.chain(*before))
    return one == other or (len(one) == len(other) < N and len(set(one)) == len(one))


def cases(name: str, all_of_them: bool) -> Iterator[tuple[int, str]]:
    """Each recording without workers, and each way to hand work to workers with one recording,
    which is another for each form; or each way with each recording."""
    kinds, place = list(RECORDED), list(FORMS).index(name)
    for number, kind in itertools.product(range(len(WORKERS)), kinds):
        if all_of_them or number == 0 or kind == kinds[(place + number) % len(kinds)]:
            yield number, kind


@pytest.mark.filterwarnings("ignore:'set_vital':UserWarning")
@pytest.mark.parametrize("all_of_them", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FORMS)
def test_pasted_advice_gives_the_same_batches(tmp_path: Path, name: str, all_of_them: bool) -> None:
    made = FORMS[name]
    spoke, written = set(), set()
    for number, kind in cases(name, all_of_them):
        if number and made.cls is Counted:  # it takes no workers
            continue
        case = recorded(tmp_path / f"{number}-{kind}", made, WORKERS[number], RECORDED[kind])
        for rule, advice in advised(case):
            spoke.add(rule)
            if check(made, WORKERS[number], rule, advice):
                written.add(rule)
    assert "num-workers" in spoke or "stream" in name, spoke
    assert bool(written) is not made.by_hand, (spoke, written)


@pytest.mark.parametrize("name", ["shuffled", "batches", "a collate function", "own loader"])
def test_its_workers_give_the_same_too(tmp_path: Path, name: str) -> None:
    made = FORMS[name]
    code = loader_code(recorded(tmp_path, made, {}, RECORDED["slow to fetch"]), num_workers=2)
    loader, scope = made.loader()
    after = pasted(code, scope)
    assert after.num_workers == 2
    found, before = ([numbers(batch) for batch in each] for each in (after, loader))
    assert sorted(map(len, found)) == sorted(map(len, before))
    assert sorted(itertools.chain(*found)) == sorted(itertools.chain(*before))
