"""A plan: cheap steps first where they gain nearly as much, predicted together, what excludes what,
where to stop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loaderscope.advisors.assemble.plan import Option, plan_of
from loaderscope.advisors.case.advice import Advice
from loaderscope.advisors.case.case import Case
from loaderscope.advisors.schema.report_model import Effort, LeftOut, Plan, Range
from loaderscope.advisors.whatif.changes import Excluded, together
from rule_cases import FakeWhatIf, case_of
from rule_rows import main_loop

FETCH, COMPUTE = 8.0, 2.0


def loop(fetch: Any = 1.0, num_workers: int = 0, fetch_us: Any = None, **_: Any) -> float:
    """A loop that fetches for FETCH and computes for COMPUTE, one after the other or beside each
    other."""
    low, high = fetch if isinstance(fetch, tuple) else (fetch, fetch)
    work = FETCH * (low + high) / 2 if fetch_us is None else sum(fetch_us) / 2
    return (FETCH + COMPUTE) / (max(work / num_workers, COMPUTE) if num_workers else work + COMPUTE)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    rows = main_loop(100, fetch=8.0, compute_ms=2.0)
    made = case_of(tmp_path_factory.mktemp("plan"), rows, whatif=FakeWhatIf(loop))
    return replace(made, report=replace(made.report, headroom=(FETCH + COMPUTE) / COMPUTE))


def made(
    case: Case, title: str, effort: Effort, kind: Any = "speed", params: Any = None, **changes: Any
) -> Option:
    facts: Any = {"params": params or {}, "kind": kind}
    advice = Advice(title, "why.", {"a": "1 s"}, case.predict(**changes), "x = 1\n", **facts)
    return Option(advice.recommendation("num-workers", "speed", effort), changes, 0.0)


def titles(case: Case, *options: Option) -> tuple[list[str], Plan]:
    ordered, plan = plan_of(case, options)
    assert plan is not None and [each.advice for each in plan.steps] == list(range(len(plan.steps)))
    assert sorted(each.title for each in ordered) == sorted(each.advice.title for each in options)
    assert {each.advice for each in (*plan.steps, *plan.left_out)} == set(range(len(ordered)))
    return [ordered[each.advice].title for each in plan.steps], plan


def test_an_argument_that_gains_nearly_as_much_comes_before_a_conversion(case: Case) -> None:
    workers = made(case, "workers", "one argument", num_workers=4)  # 5.0
    stored = made(case, "stored", "a conversion", fetch=0.05)  # 4.2
    done, plan = titles(case, stored, workers)
    assert done == ["workers"]
    assert plan.steps[0].computing_share == pytest.approx(1.0)
    assert plan.left_out == (LeftOut(1, 0, False, "it brings nothing more"),)
    assert plan.stop == "the loop computes nearly all of the time: stop there."


def test_what_gains_much_more_is_not_put_off_for_what_it_excludes(case: Case) -> None:
    batched = made(case, "batched", "a few lines", fetch_us=(0.0, 0.4), num_workers=0)
    one = made(case, "one worker", "one argument", params={"num_workers": 1}, num_workers=1)  # 1.25
    done, plan = titles(case, one, batched)
    assert done == ["batched"]
    assert plan.left_out == (LeftOut(1, 0, True, "both set num_workers"),)


def test_steps_are_predicted_together(case: Case) -> None:
    """Half the work and two workers: neither the sum nor the product of what each does alone."""
    workers = made(case, "workers", "one argument", num_workers=2)  # 2.5
    half = made(case, "half", "a few lines", fetch=0.5)  # 1.67
    done, plan = titles(case, half, workers)
    assert done == ["half", "workers"]
    assert [each.together.mid for each in plan.steps] == pytest.approx([1.667, 5.0], rel=1e-3)
    assert plan.steps[0].together == case.predict(fetch=0.5)
    assert plan.steps[1].together.high == pytest.approx(5.0), "held below free loading"


def test_work_is_removed_before_the_rest_is_spread_over_workers(case: Case) -> None:
    workers = made(case, "workers", "one argument", num_workers=3)  # 3.75
    removed = made(case, "removed", "a few lines", fetch=0.5)  # 1.67
    little = made(case, "little", "a few lines", fetch=0.8)  # 1.19
    assert titles(case, workers, removed)[0][0] == "removed"
    assert titles(case, workers, little)[0][0] == "workers"


def test_a_line_without_a_known_remedy_counts_for_half_of_what_it_costs(case: Case) -> None:
    workers = made(case, "workers", "one argument", num_workers=1)  # 1.25
    advice = made(case, "line", "a few lines", fetch=0.5).advice
    for high, first in ((4.0, "line"), (1.3, "workers")):
        line = replace(advice, predicted=Range(1.0, 1.2, high))
        by_hand = Option(line, {"fetch": (1 / high, 1.0)}, 0.0, by_hand=True)
        assert titles(case, workers, by_hand)[0][0] == first
    # Nor is tuned first what it may make needless.
    line = Option(replace(advice, predicted=Range(1.0, 1.2, 2.2)), {"fetch": 0.3}, 0.0, True)
    assert titles(case, workers, line)[0] == ["line", "workers"]


def test_a_loop_that_computes_most_of_the_time_is_not_converted(case: Case) -> None:
    workers = made(case, "workers", "one argument", num_workers=3)  # 3.75
    third = made(case, "third", "a few lines", fetch=0.8)  # together 4.7
    stored = made(case, "stored", "a conversion", fetch=0.9)
    done, plan = titles(case, workers, third, stored)
    assert done == ["workers", "third"]
    assert plan.left_out == (LeftOut(2, 1, False, "the loop then computes 94 % of the time"),)
    assert plan.stop == "the loop computes 94 % of the time: stop there."


def test_what_is_wrong_comes_before_what_is_slow(case: Case) -> None:
    order = made(case, "order", "a few lines", kind="correctness")
    workers = made(case, "workers", "one argument", num_workers=1)
    done, plan = titles(case, workers, order)
    assert done == ["order", "workers"]
    assert plan.steps[0].together == Range(1.0, 1.0, 1.0)
    assert plan.stop == "the loop still waits 75 % of the time; no further change is known."


def test_a_gain_that_no_model_foretold_is_multiplied(case: Case) -> None:
    rebuilt = replace(made(case, "rebuilt", "one argument", fetch=0.9), changes=None)
    half = made(case, "half", "a few lines", fetch=0.5)
    _, plan = titles(case, rebuilt, half)
    product = rebuilt.advice.predicted.mid * half.advice.predicted.mid
    assert plan.steps[1].together.mid == pytest.approx(product)


def test_two_conversions_are_alternatives(case: Case) -> None:
    shards = made(case, "shards", "a conversion", fetch=0.5)
    stored = made(case, "stored", "a conversion", fetch=0.4)
    done, plan = titles(case, shards, stored)
    assert done == ["stored"] and plan.left_out[0].why == "both store the data again"


def test_changes_of_one_stage() -> None:
    found = together({"fetch": 0.5}, {"fetch": (0.2, 0.4), "collate": 0.5})
    assert found == {"fetch": (0.1, 0.2), "collate": 0.5}
    found = together({"num_workers": 2}, {"num_workers": 2, "pin_memory": True})
    assert found["pin_memory"] is True
    for one, other in (
        ({"fetch_us": 3.0}, {"fetch": 0.5}),
        ({"fetch": 0.5}, {"fetch_us": (1, 2)}),
        ({"num_workers": 2}, {"num_workers": 0}),
    ):
        with pytest.raises(Excluded, match="both"):
            together(one, other)


def test_without_advice_there_is_no_plan(case: Case) -> None:
    assert plan_of(case, []) == ((), None)
