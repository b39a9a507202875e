"""A plan: cheap steps first, predicted together, what excludes what, where to stop."""

from dataclasses import replace
from typing import Any

import pytest

from loaderscope.advisors.assemble.plan import Option, plan_of
from loaderscope.advisors.case.advice import Advice
from loaderscope.advisors.case.case import Case
from loaderscope.advisors.schema.report_model import LeftOut, Plan, Range
from loaderscope.advisors.whatif.changes import Excluded, together
from rule_cases import FakeWhatIf, case_of
from rule_rows import main_loop

FETCH, COMPUTE = 8.0, 2.0


def loop(fetch: Any = 1.0, num_workers: int = 0, fetch_us: Any = None, **_: Any) -> float:
    """A loop that fetches for FETCH and computes for COMPUTE, in turn or beside each other."""
    low, high = fetch if isinstance(fetch, tuple) else (fetch, fetch)
    work = FETCH * (low + high) / 2 if fetch_us is None else sum(fetch_us) / 2
    return (FETCH + COMPUTE) / (max(work / num_workers, COMPUTE) if num_workers else work + COMPUTE)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    rows = main_loop(100, fetch=8.0, compute_ms=2.0)
    made = case_of(tmp_path_factory.mktemp("plan"), rows, whatif=FakeWhatIf(loop))
    return replace(made, report=replace(made.report, headroom=(FETCH + COMPUTE) / COMPUTE))


OPTIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "1 worker": ("one argument", {"num_workers": 1}),  # 1.25
    "2 workers": ("one argument", {"num_workers": 2}),  # 2.5
    "3 workers": ("one argument", {"num_workers": 3}),  # 3.75
    "4 workers": ("one argument", {"num_workers": 4}),  # 5.0
    "rebuilt": ("one argument", {"fetch": 0.9}),
    "half": ("a few lines", {"fetch": 0.5}),  # 1.67
    "a fifth": ("a few lines", {"fetch": 0.8}),  # 1.19, with three workers 4.7
    "batched": ("a few lines", {"fetch_us": (0.0, 0.4), "num_workers": 0}),
    "order": ("a few lines", {}),
    "shards": ("a conversion", {"fetch": 0.5}),
    "stored": ("a conversion", {"fetch": 0.05}),  # 4.2
}


def made(case: Case, title: str, kind: Any = "speed") -> Option:
    effort, changes = OPTIONS[title]
    facts: Any = {"params": changes if "worker" in title else {}, "kind": kind}
    advice = Advice(title, "why.", {"a": "1 s"}, case.predict(**changes), "x = 1\n", **facts)
    return Option(advice.recommendation("num-workers", "speed", effort), changes, 0.0)


def titles(case: Case, *options: Option) -> tuple[list[str], Plan]:
    ordered, plan = plan_of(case, options)
    assert plan is not None and [each.advice for each in plan.steps] == list(range(len(plan.steps)))
    assert sorted(each.title for each in ordered) == sorted(each.advice.title for each in options)
    assert {each.advice for each in (*plan.steps, *plan.left_out)} == set(range(len(ordered)))
    return [ordered[each.advice].title for each in plan.steps], plan


COMPUTES = "the loop then computes 94 % of the time"


@pytest.mark.parametrize(
    ("options", "steps", "left_out"),
    [
        # An argument that gains nearly as much comes before a conversion.
        ("stored, 4 workers", "4 workers", [LeftOut(1, 0, False, "it brings nothing more")]),
        # What gains much more is not put off for what it excludes.
        ("1 worker, batched", "batched", [LeftOut(1, 0, True, "both set num_workers")]),
        # Work is removed before the rest is spread over workers, if that gains enough.
        ("3 workers, half", "half, 3 workers", []),
        # A loop that computes most of the time is not converted.
        ("3 workers, a fifth, shards", "3 workers, a fifth", [LeftOut(2, 1, False, COMPUTES)]),
        ("shards, stored", "stored", [LeftOut(1, 0, True, "both store the data again")]),
    ],
)
def test_what_is_done_in_which_order_and_what_is_left_out(case, options, steps, left_out):
    done, plan = titles(case, *(made(case, name) for name in options.split(", ")))
    assert (", ".join(done), [*plan.left_out]) == (steps, left_out)


def test_steps_are_predicted_together(case: Case) -> None:
    """Half the work and two workers: neither the sum nor the product of what each does alone."""
    workers = made(case, "2 workers")
    half = made(case, "half")
    done, plan = titles(case, half, workers)
    assert done == ["half", "2 workers"]
    assert [each.together.mid for each in plan.steps] == pytest.approx([1.667, 5.0], rel=1e-3)
    assert plan.steps[0].together == case.predict(fetch=0.5)
    assert plan.steps[1].together.high == pytest.approx(5.0), "held below free loading"
    assert plan.steps[1].computing_share == pytest.approx(1.0)
    assert plan.stop == "the loop computes nearly all of the time: stop there."


def test_a_line_without_a_known_remedy_yields_to_workers_that_gain_half_as_much(case: Case) -> None:
    workers, advice = made(case, "1 worker"), made(case, "half").advice
    for mid, first in ((40.0, "half"), (1.3, "1 worker")):
        line = replace(advice, predicted=Range(1.0, mid, 2 * mid))
        by_hand = Option(line, {"fetch": (0.5 / mid, 1.0)}, 0.0, by_hand=True)
        assert titles(case, workers, by_hand)[0][0] == first


def test_workers_that_start_anew_are_waste_as_slow_lines_are(case: Case) -> None:
    workers = made(case, "2 workers")
    again = replace(workers, advice=replace(workers.advice, rule="persistent-workers"))
    less = replace(again, advice=replace(again.advice, predicted=Range(1.1, 1.6, 2.0)))
    for each, first in ((workers, "half"), (again, "2 workers"), (less, "half")):
        assert titles(case, made(case, "half"), each)[0][0] == first


def test_what_is_wrong_comes_before_what_is_slow(case: Case) -> None:
    order = made(case, "order", "correctness")
    workers = made(case, "1 worker")
    done, plan = titles(case, workers, order)
    assert done == ["order", "1 worker"]
    assert plan.steps[0].together == Range(1.0, 1.0, 1.0)
    assert plan.stop == "the loop still waits 75 % of the time; no further change is known."


def test_a_gain_that_no_model_foretold_is_multiplied(case: Case) -> None:
    rebuilt = replace(made(case, "rebuilt"), changes=None)
    half = made(case, "half")
    _, plan = titles(case, rebuilt, half)
    product = rebuilt.advice.predicted.mid * half.advice.predicted.mid
    assert plan.steps[1].together.mid == pytest.approx(product)


def test_changes_of_one_stage() -> None:
    found = together({"fetch": 0.5}, {"fetch": (0.2, 0.4), "collate": 0.5})
    assert found == {"fetch": (0.1, 0.2), "collate": 0.5}
    workers = {"num_workers": 2}
    assert together(workers, {**workers, "pin_memory": True}) == {**workers, "pin_memory": True}
    half, anew = {"fetch": 0.5}, {"fetch_us": 3.0}
    for one, other in ((anew, half), (half, anew), (workers, {"num_workers": 0})):
        with pytest.raises(Excluded, match="both"):
            together(one, other)


def test_without_advice_there_is_no_plan(case: Case) -> None:
    assert plan_of(case, []) == ((), None)
