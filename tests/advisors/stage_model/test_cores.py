"""Waiting for a core, told apart from waiting for I/O; and what other programs take of the cores."""

from pathlib import Path
from typing import Any

import pytest

from builders import MS, T0, loop, opened
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.stage_model.core_wait import core_wait_ratio, waiting_besides_core
from loaderscope.advisors.stage_model.other_programs import others_cores, others_share
from loaderscope.advisors.stage_model.summary import effective_cpus
from loaderscope.advisors.whatif import WhatIf
from loaderscope.advisors.whatif.workload import workload_of

S = 1_000 * MS


def sample(at_s, pid, cpu_s, delay_s, **values) -> dict[str, Any]:
    """Of main, whose process is 4000, or of a worker."""
    of = {"pid": pid, "owner_pid": 4000, "role": int(pid != 4000)}
    of |= dict.fromkeys(("loader", "worker"), of["role"] - 1)
    times = {"t_ns": T0 + round(at_s * S), "cpu_user_ns": round(cpu_s * S), "cpu_system_ns": 0}
    return {**of, **times, "run_delay_ns": round(delay_s * S), **values}


def sampled(runs: Path, samples: list[dict[str, Any]]) -> Any:
    made = {"fetch_ns": 40 * MS, "fetch_cpu_ns": 10 * MS, "t_fetch_ns": lambda n, t, w: t}
    system = {"machine": [{"t_ns": T0 + n * S} for n in range(10)], "process": samples}
    return opened(runs, loop(100, 50, 50, **made), system=system, config={"num_workers": 2})


def ratio(run: Any, in_main: bool = False) -> float | None:
    return core_wait_ratio(run, run.processes[0], run.loaders[0], in_main=in_main)


def test_the_ratio_is_of_waiting_ready_to_waiting_ready_and_computing(runs_dir: Path) -> None:
    workers = [
        sample(t, 5001 + n, cpu_s=3 * n + t * 0.2, delay_s=1 - n + t * 0.6)
        for n in (0, 1)
        for t in (1, 4, 9)
    ]
    main = [sample(t, 4000, cpu_s=t * 0.9, delay_s=t * 0.1) for t in (1, 9)]
    run = sampled(runs_dir, [*workers, *main])
    assert ratio(run) == pytest.approx(0.75)
    assert ratio(run, in_main=True) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([], None),
        ([sample(t, 5001, t, t, run_delay_ns=-1) for t in (1, 9)], None),  # not counted here
        ([sample(t, 5001, t * 0.001, t) for t in (1, 9)], None),  # hardly computed
        ([sample(t, 5001, t, 100 * (t == 20)) for t in (1, 9, 20)], 0),  # outside the loop
    ],
)
def test_what_was_not_measured_is_unknown(runs_dir: Path, samples: Any, expected: Any) -> None:
    assert ratio(sampled(runs_dir, samples)) == expected


def test_the_report_divides_idle_time_into_waiting_for_a_core_and_the_rest(runs_dir: Path) -> None:
    samples = [sample(t, 5001, cpu_s=t * 0.2, delay_s=t * 0.2) for t in (1, 4, 9)]
    waiting = build_report(sampled(runs_dir, samples)).loaders[0].waiting
    assert waiting is not None and waiting.fetch_idle_share == pytest.approx(0.75)
    # 10 ms of CPU time took 20 ms of a shared core.
    assert waiting.fetch_core_wait_share == pytest.approx(0.25)


def test_what_is_left_is_never_negative() -> None:
    ratios = (0.5, 0.9, None)
    assert [waiting_besides_core(0.75, each) for each in ratios] == pytest.approx([0.5, 0.0, 0.75])


def recorded(runs: Path, busy_pct: float, seconds: float = 10.0, **how: Any) -> Any:
    """A loop of 10 s that fetches for 40 ms of each 50 ms step, on eight cores. `how`: columns of
    the machine, and facts of the process and of the host."""
    times = [n * seconds / 20 for n in range(21)]
    used = {"cpu_user_pct": busy_pct - 5, "cpu_system_pct": 5.0, "cpu_idle_pct": 100 - busy_pct}
    used |= {"cpu_iowait_pct": 0.0, "sampler_cpu_ns": 0, **how.get("machine", {})}
    machine = [{"t_ns": T0 + round(t * S), **used} for t in times]
    main = [sample(t, 4000, cpu_s=t, delay_s=0) for t in times]
    system = {"machine": machine, "process": main, **how.get("host", {})}
    rows = loop(200, 40, 10, fetch_ns=40 * MS, fetch_cpu_ns=40 * MS)
    return opened(runs, rows, process=how.get("process"), system=system)


QUOTA = {"cgroup": {"version": 2, "cpu_quota": 4.0, "mem_limit_bytes": None}}
STOLEN = {"cpu_user_pct": 12.5, "cpu_system_pct": 0.0, "cpu_idle_pct": 37.5}


@pytest.mark.parametrize(
    ("busy_pct", "how", "others"),
    [
        (12.5, {}, 0.0),  # what the run itself uses
        (62.5, {}, 0.5),
        (75.0, {"process": {"cpus": "0-3"}}, 0.25),  # only the cores it may use count
        (62.5, {"host": QUOTA}, 0.0),  # others may use what a quota leaves
        (87.5, {"host": QUOTA}, 0.5),
        (12.5, {"machine": STOLEN}, 0.0),  # what the hypervisor took is nobody's
        (62.5, {"machine": STOLEN, "process": {"cpus": "0-1"}}, 0.0),  # and counts as busy
        (50.0, {"seconds": 0.3}, 0.0),
        (50.0, {"process": {"local_world_size": 2}}, 0.0),
        (50.0, {"machine": {"cpu_user_pct": float("nan")}}, 0.0),
    ],
)
def test_busy_cores_beyond_its_own_are_others(runs_dir, busy_pct, how, others):
    run = recorded(runs_dir, busy_pct, **how)
    host = run.host_of(run.processes[0])
    found = others_share(host, effective_cpus(run.processes, host))
    assert found == pytest.approx(others, abs=1e-6)


def test_workers_that_ended_are_not_others(runs_dir: Path) -> None:
    machine = {
        "cpu_user_pct": 25.0,
        "cpu_system_pct": 0.0,
        "cpu_idle_pct": 75.0,
        "sampler_cpu_ns": 0,
    }
    system = {"machine": [{"t_ns": T0 + n * S, **machine} for n in range(11)]}
    for known, others in ((True, 0.0), (False, 0.2)):
        main = [
            sample(t, 4000, t, 0, children_cpu_ns=t // 5 * 5 * S if known else -1)
            for t in range(11)
        ]
        workers = [
            sample(5 * n + t, 5001 + n, t, 0, children_cpu_ns=0 if known else -1)
            for n in (0, 1)
            for t in range(5)
        ]
        lane = sorted([*main, *workers], key=lambda row: row["t_ns"])
        run = opened(runs_dir / f"{known}", loop(9, 1, 1), system={**system, "process": lane})
        assert others_cores(run.host_of(run.processes[0])) == pytest.approx(others)


def test_workers_that_would_share_their_cores_bring_less(runs_dir: Path) -> None:
    def predicted(busy_pct: float) -> Any:
        run = recorded(runs_dir / f"{busy_pct}", busy_pct)
        whatif = WhatIf(workload_of(run, run.processes[0], run.loaders[0]))
        return whatif.predict(num_workers=2), whatif.predict(fetch=0.5), whatif.busy_beside

    alone, faster, none = predicted(12.5)
    beside, as_fast, cores = predicted(62.5)
    assert (none, cores) == (0.0, pytest.approx(4.0))
    assert beside.mid == pytest.approx(0.75 * alone.mid)
    assert beside.high / beside.low > alone.high / alone.low
    assert as_fast.mid == pytest.approx(faster.mid)
