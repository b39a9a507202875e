"""num-workers: more, fewer, or none."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from loaderscope.advisors.rules.workers import num_workers
from loaderscope.advisors.schema.report_model import Code, CodeStage, Doing
from loaderscope.profiler.store.sampled_fetches import SampledFetches
from loaderscope.profiler.store.stacks.stack_samples import Wait
from rule_cases import (
    FakeWhatIf,
    advice,
    arguments,
    case_of,
    outcomes,
    ran,
    rejection,
    shown,
    unmeasured,
    workers_config,
)
from rule_rows import host_samples, main_loop, worker_loop
from stack_cases import OWN, seen
from stored_rows import LENGTH, Stored, store

NAME = "num-workers"


def by_count(**factors: float) -> FakeWhatIf:
    """Factors by number of workers, n2=1.9; the nearest smaller one counts for those not named."""
    known = {int(name[1:]): value for name, value in factors.items()}
    return FakeWhatIf(lambda num_workers: known[max(n for n in known if n <= num_workers)])


def test_more_for_decoding_but_not_beyond_the_cpus(tmp_path: Path) -> None:
    whatif = by_count(n0=1.0, n1=1.5, n2=2.2, n3=2.6, n4=3.1)
    rows = main_loop(100, fetch=30.0, collate=1.0)
    found = advice(NAME, case_of(tmp_path / "a", rows, whatif=whatif, process={"affinity": 4}))
    assert found.params == {"num_workers": 4} and found.predicted.mid == 3.1
    assert arguments(found.code).items() >= {"num_workers": "4", "shuffle": "True"}.items()
    assert shown(found, "making a batch", "effective CPUs") == ("31.0 ms", "4 cores")
    assert max(asked["num_workers"] for asked in whatif.asked) == 4
    # The fewest within two percent.
    fewest = by_count(n0=1.0, n1=1.5, n2=2.0, n3=2.01, n4=2.03)
    assert advice(NAME, case_of(tmp_path / "b", rows, whatif=fewest)).params == {"num_workers": 2}


FROM_NET, NET = Wait("network", "10.0.0.7:80"), "mostly waiting for the network, not computing"


@pytest.mark.parametrize(
    ("wait", "cpu", "unknown", "said", "unsaid"),
    [
        (FROM_NET, 0.05, 0.0, NET, "`loaderscope tune`"),
        (Wait("sleep"), 0.05, 0.0, "mostly waiting for a timer, not computing", "network"),
        (None, 0.05, 0.9, "`loaderscope tune` measures it", "network"),
        (Wait("network"), 0.05, 0.0, "mostly waiting", "the network"),  # two samples saw it
        (None, 0.95, 0.9, ", computing, and", "was not seen"),  # of waiting, a core's included
    ],
)
def test_what_fetching_waits_for_is_said(tmp_path, wait, cpu, unknown, said, unsaid):
    most = 2 if cpu > 0.5 else 16
    whatif = FakeWhatIf(lambda num_workers: max(1.0, min(num_workers, most) * 0.9))
    whatif.unknown_share = unknown
    rows = main_loop(100, fetch=50.0, fetch_cpu=cpu, compute_ms=2.0)
    case = case_of(tmp_path, rows, whatif=whatif, process={"affinity": 2})
    many = wait is not None and (wait.kind == "sleep" or bool(wait.what))
    if wait is not None:
        waits = {wait: 39, Wait("compute"): 1} if many else {wait: 2}
        case = seen(case, (f"Rows.__getitem__ {OWN}:41", 40 if many else 2, waits))
    found = advice(NAME, case)
    assert found.params == {"num_workers": most}  # more than CPUs
    assert said in found.why and unsaid not in found.why
    assert found.why.count("mostly waiting") == (cpu < 0.5)
    assert ("fetching waits, for the network" in found.evidence) == ("for the network" in said)


def test_more_workers_are_no_help_where_all_wait_for_one_lock(tmp_path: Path) -> None:
    rows = worker_loop(100, wait_ms=20.0, compute_ms=1.0, fetch_ms=40.0)
    facts: Any = {"config": workers_config(2), "process": {"affinity": 8}}
    case = case_of(tmp_path, rows, whatif=by_count(n0=0.98, n3=1.0), **facts)
    fetch = CodeStage(40, None, (), (), {}, (), (Doing("lock", None, 2, 1.0),))
    code = Code(1, 40, 8.0, 25.0, {"fetch": fetch})
    locked = replace(case, report=replace(case.report, code=code))
    assert "2 workers wait for one lock, 100 % of fetching" in rejection(NAME, locked).why
    assert "lock" not in rejection(NAME, case).why


def test_none_where_handing_over_costs_more(tmp_path: Path) -> None:
    made = {"fetch_ms": 0.15, "collate_ms": 0.05, "pack_ms": 0.8, "unpack_ms": 0.4}
    rows = worker_loop(100, wait_ms=1.2, compute_ms=0.2, **made)
    case = case_of(tmp_path, rows, whatif=by_count(n0=3.0, n1=1.0), config=workers_config(2))
    found, other = outcomes(NAME, case)
    told = [(each.rejected, each.params) for each in (found, other)]
    assert told == [(False, {"num_workers": 0}), (True, {"num_workers": 8})]
    written = arguments(found.code)
    assert written["num_workers"] == "0" and "prefetch_factor" not in written
    assert str(found.evidence["handing a batch over"]) == "1.20 ms"


SHORT = main_loop(100, compute_ms=0.1, fetch=0.1, collate=0.1)
LONG, USUAL = worker_loop(200, wait_ms=15.0, fetch_ms=30.0), worker_loop(100)
FACTS = {"config": workers_config(2), "process": {"affinity": 2}}
BUSY = {**FACTS, "system": host_samples(worker_cores=0.9, main_cores=0.2) | {"affinity": 2}}
MAKES, BUSY_CPUS = "A batch takes 200 µs to make", "2 CPUs this process may use are busy already"
BEYOND = by_count(n0=0.7, n1=1.0, n2=1.02, n4=1.34)


@pytest.mark.parametrize(
    ("rows", "whatif", "facts", "title", "mid", "why"),
    [
        (SHORT, by_count(n0=1.0, n1=0.2), {}, "num_workers=8 would not help", 0.2, MAKES),
        (LONG, by_count(n0=0.5, n1=0.6, n2=1.0), BUSY, "", 1.0, BUSY_CPUS),
        # What the model predicts beyond the CPUs: predict(num_workers=4) and the report are of one mind.
        (USUAL, BEYOND, FACTS, "Use 4 workers", 1.34, "not certain enough"),
        (USUAL, BEYOND, FACTS, "Use 4 workers", 1.34, "has 2 CPUs"),
    ],
)
def test_more_workers_are_rejected(tmp_path, rows, whatif, facts, title, mid, why):
    found = rejection(NAME, case_of(tmp_path, rows, whatif=whatif, **facts))
    assert title in found.title and why in found.why
    assert found.predicted is not None and found.predicted.mid == mid


def test_other_programs_are_named(tmp_path: Path) -> None:
    whatif = by_count(n0=1.0, n1=0.9, n2=0.8)
    whatif.busy_beside = 1.0
    case = case_of(tmp_path, main_loop(100, fetch=3.0), whatif=whatif, process={"affinity": 2})
    assert "beside other programs" in rejection(NAME, case).why


def test_nothing_is_rejected_where_loading_is_no_limit(tmp_path: Path) -> None:
    rows = main_loop(100, compute_ms=50.0, fetch=0.1)
    case = case_of(tmp_path, rows, whatif=by_count(n0=1.0, n1=0.9))
    assert case.report.verdict == "compute-bound" and outcomes(NAME, case) == []


def test_latency_on_a_busy_machine_is_latency_where_waiting_for_a_core_was_counted(tmp_path):
    """Else not: on a saturated machine, CPU over wall time falls although fetching computes."""
    rows = worker_loop(200, wait_ms=15.0, fetch_ms=60.0, cpu=0.3)
    host = host_samples(workers=4, worker_cores=0.45) | {"affinity": 2}
    facts: Any = {"process": {"affinity": 2}, "config": workers_config(4), "system": host}
    crowded = case_of(tmp_path / "a", rows, whatif=by_count(n0=0.5, n4=1.0), **facts)
    assert num_workers.most_workers(crowded) == 2
    rows = main_loop(100, fetch=50.0, fetch_cpu=0.05, compute_ms=2.0)
    case = case_of(tmp_path / "b", rows, whatif=by_count(n0=1.0), process={"affinity": 1})
    busy = replace(case, system=replace(case.system, cpu_busy_mean_share=0.99))
    assert num_workers.most_workers(busy) == 1
    assert busy.report.waiting is not None
    for share, several in ((0.01, True), (0.9, False)):
        waiting = replace(busy.report.waiting, fetch_core_wait_share=share)
        told = replace(busy, report=replace(busy.report, waiting=waiting))
        most = num_workers.most_workers(told)
        assert most > 8 if several else most == 1


@pytest.mark.parametrize(("names", "said"), [((), False), (("get_worker_info",), True)])
def test_an_iterable_set_must_share_its_stream_out(tmp_path, names, said):
    facts: Any = {
        "inspection": {"dataset": {"type": "t.Stream", "name": "Stream", "names": list(names)}},
        "config": {"dataset_kind": "iterable", "sampler": "x._InfiniteConstantSampler"},
    }
    whatif = by_count(n0=1.0, n2=1.9)
    case = case_of(tmp_path, main_loop(100, fetch=30.0), whatif=whatif, **facts)
    assert advice(NAME, case) if said else unmeasured(NAME, case)


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("own", [False, True])
def test_a_file_that_stays_open_is_opened_again_in_each_worker(tmp_path: Path, own: bool) -> None:
    """Workers that shared one position would make a mess of their samples."""
    path, begun = store(tmp_path / "rows.bin"), tmp_path / "begun"

    def init(worker_id: int) -> None:
        begun.touch()

    dataset = Stored(lambda: path.open("rb", buffering=0), late=False)
    loader = DataLoader(dataset, batch_size=4, shuffle=True, worker_init_fn=init if own else None)
    rows, whatif = main_loop(100, fetch=30.0), by_count(n0=1.0, n1=1.5, n2=2.2)
    case = case_of(tmp_path, rows, loader=loader, whatif=whatif)
    plain = advice(NAME, case)
    assert "read_apart" not in plain.code and "rows.bin" not in (plain.caveat or "")
    seen = replace(case.loader, looks=SampledFetches(moved=(str(path),)))
    found = advice(NAME, replace(case, loader=seen))
    assert "rows.bin stays open" in (found.caveat or "")
    rows = torch.cat(list(ran(found.code, dataset=dataset, worker_init_fn=init)["loader"]))
    assert (rows == rows[:, :1]).all() and sorted(rows[:, 0].tolist()) == list(range(LENGTH))
    assert begun.exists() == own
    spawned = replace(seen, config={**seen.config, "start_method": "spawn"})
    assert "read_apart" not in advice(NAME, replace(case, loader=spawned)).code
