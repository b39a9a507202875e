"""rank-imbalance: a rank whose data takes longer, and the ranks that wait for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import MS, RunBuilder
from loaderscope.advisors.case.case import Case
from loaderscope.advisors.stage_model.ranks import ranks_of
from loaderscope.profiler.store.run.loader_summary import summary_of
from loaderscope.profiler.store.run.run_reader import open_run
from rule_cases import FakeWhatIf, advice, asked, case_of
from rule_rows import rows_of
from silence import silent

NAME = "rank-imbalance"


def case(
    tmp_path: Path,
    own: tuple[float, float, float] = (8.0, 8.0, 10.0),
    peers: tuple[tuple[float, float, float], ...] = ((2.0, 2.0, 16.0), (3.0, 3.0, 15.0)),
    config: dict[str, Any] | None = None,
) -> Case:
    """(fetch, wait, compute) in ms of this rank and of the others."""
    run = RunBuilder(tmp_path / "ranks")
    for rank, times in enumerate((own, *peers)):
        rows, epochs = made(times)
        run.process(pid=4000 + rank, world_size=1 + len(peers), rank=rank).loader(
            rows, epochs=epochs
        )
    processes = open_run(run.path).processes
    ranks = ranks_of([(each, summary_of(each.loaders[0])) for each in processes]) if peers else None
    rows, epochs = made(own)
    facts: Any = {"process": {"world_size": 1 + len(peers), "rank": 0}, "config": config}
    case = case_of(tmp_path, rows, epochs=epochs, whatif=FakeWhatIf(), **facts)
    return replace(case, report=replace(case.report, ranks=ranks))


def made(times: tuple[float, float, float]) -> tuple[Any, Any]:
    fetch, wait, compute = times
    return rows_of(
        2, 40, wait_ms=wait, compute_ms=compute, fetch_ns=round(fetch * MS), collate_ns=0
    )


def test_the_slow_rank_is_told(tmp_path: Path) -> None:
    seen = case(tmp_path)
    found = advice(NAME, seen)
    assert str(found.evidence["spread"]) == "3.2 times"
    assert str(found.evidence["waiting more than the others"]) == "5.50 ms per step"
    assert asked(seen)[0]["fetch"] == pytest.approx((13 / 24, (1 + 13 / 24) / 2))
    assert found.code.startswith("# By hand: sort the samples by what each costs")


# Each its own data; always the same part.
@pytest.mark.parametrize("config", [{"shuffle": True}, {"shuffle": False, "replicas": 3}])
def test_unlike_parts_may_cost_more(tmp_path: Path, config: dict[str, Any]) -> None:
    assert advice(NAME, case(tmp_path, config=config))


test_it_is_silent_one_step_away = silent(
    NAME,
    case,
    {"peers": ()},
    {"config": {"shuffle": True, "replicas": 3}},  # dealt out at random
    {"own": (2.2, 2.2, 15.8)},  # no spread
    {"own": (2.0, 2.0, 16.0), "peers": ((8.0, 8.0, 10.0),)},  # the other one is slow
    {"own": (8.0, 0.3, 17.7), "peers": ((2.0, 0.1, 17.9),)},  # nobody waits
    {"own": (8.0, 8.0, 10.0), "peers": ((2.0, 2.0, 10.0),)},  # each at its own pace
)
