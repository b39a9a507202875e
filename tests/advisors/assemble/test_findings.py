"""What the waiting is made of, with and without stacks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from torch.utils.data import DataLoader

import stored_sets
from loaderscope.advisors.assemble.findings import findings_of
from loaderscope.advisors.case.advice import Advice
from loaderscope.advisors.case.case import Case
from loaderscope.profiler.store.stacks.stack_samples import Wait
from loaderscope.reports.words.inside import finding_text
from rule_cases import FakeWhatIf, case_of, outcomes
from rule_rows import US, rows_of, worker_loop
from stack_cases import OWN, seen
from stored_sets import Sized

SETS = stored_sets.__file__


def case(tmp_path: Path, fetch_us=8_000, collate_us=10, compute_ms=0.1) -> Case:
    times = {"fetch_ns": fetch_us * US, "collate_ns": collate_us * US, "samples": 4}
    rows, epochs = rows_of(wait_ms=(fetch_us + collate_us) / 1e3, compute_ms=compute_ms, **times)
    return case_of(tmp_path, rows, epochs=epochs, loader=DataLoader(Sized(), batch_size=4))


def test_the_line_that_costs_leads_with_the_call_below_it(tmp_path: Path) -> None:
    getitem = f"Rows.__getitem__ {OWN}:41 > Rows.load {OWN}:50"
    stacks = (f"{getitem} > loads std/json/decoder.py:7", 60), (getitem, 20)
    sampled = seen(case(tmp_path), *stacks, (f"Rows.__getitem__ {OWN}:42", 20))
    first, second = findings_of(sampled)
    assert (first.stage, first.place, first.call) == ("fetch", "patches.py:50", "json loads")
    assert first.share.low < first.share.mid == 0.8 < first.share.high
    assert 0.75 < first.waiting_share <= 0.8
    assert (second.place, second.call) == ("patches.py:42", None)
    assert first.factor is not None and first.factor.mid > 1


def test_no_finding_gains_more_than_free_loading(tmp_path: Path) -> None:
    computes = replace(case(tmp_path, compute_ms=8.0), whatif=FakeWhatIf(9.0))
    (found,) = findings_of(computes)
    assert computes.report.headroom is not None and computes.report.headroom < 3
    assert found.factor is not None and found.factor.mid == computes.report.headroom


def test_a_finding_says_what_was_done_there(tmp_path: Path) -> None:
    outer = f"Rows.__getitem__ {OWN}:41"
    locks = {Wait("lock", "", 4): 50, Wait("sleep"): 5, Wait("compute"): 5}
    peers = {Wait("network", f"10.0.0.{n}:80"): 2 for n in range(5)}
    waits = (f"{outer} > Rows.load {OWN}:50 > acquire std/threading.py:7", 60, locks)
    others = (outer, 30, peers), (f"Rows.__getitem__ {OWN}:43", 10)
    locked, asked, unknown = findings_of(seen(case(tmp_path), waits, *others))
    assert (locked.doing[0].kind, locked.doing[0].processes) == ("lock", 4)
    assert locked.doing[0].share == 50 / 60
    assert "waits for a lock shared by 4 workers, 83 %)" in finding_text(locked)
    # What is inside of another of the user's own lines belongs to that one; peers are many.
    assert [(each.kind, each.what, each.share) for each in asked.doing] == [("network", None, 1.0)]
    assert unknown.doing == () and "wait" not in finding_text(unknown)


def test_a_data_set_of_a_library_is_named_by_its_functions(tmp_path: Path) -> None:
    stack = "ImageFolder.__getitem__ site/torchvision/datasets/folder.py:2 > "
    (found,) = findings_of(seen(case(tmp_path), (f"{stack}load site/PIL/ImageFile.py:425", 50)))
    assert (found.text, found.place, found.call) == ("PIL load", "ImageFile.py:425", None)


def test_without_stacks_stages_are_what_is_known(tmp_path: Path) -> None:
    found = findings_of(case(tmp_path, collate_us=8_000))
    assert [(each.stage, each.text) for each in found] == [("fetch", None), ("collate", None)]


@pytest.mark.parametrize(
    ("method", "found"),
    [
        (f"Sized.reorder {SETS}:12 > sample std/random.py:300", True),
        (f"Sized.__init__ {SETS}:12", False),  # made once
        (f"Net.forward {SETS}:12", False),
        (f"Sized.reorder {OWN}:12", False),  # of another file
        ("BatchSampler.__len__ site/torch/utils/data/sampler.py:3", False),
    ],
)
def test_what_the_loop_runs_of_the_data_set_costs_though_it_does_not_wait(tmp_path, method, found):
    computes = case(tmp_path, fetch_us=50, compute_ms=20.0)
    stacks = (f"main {OWN}:9 > {method}", 60), (f"main {OWN}:10 > step {SETS}:90", 40)
    sampled = seen(computes, *stacks, stage="compute")
    costs = [(each.stage, each.place, each.call, each.share.mid) for each in findings_of(sampled)]
    assert costs == [("compute", "stored_sets.py:12", "Sized.reorder", 0.6)] * found
    advised = [each for each in outcomes("hot-function", sampled) if isinstance(each, Advice)]
    assert [each.beside_loading for each in advised] == [0.6] * found
    said = "60 % of all time", "called from patches.py:9"
    assert all(words in each.why for each in advised for words in said)


def unpacking(tmp_path: Path, fetch_ms: float, free: FakeWhatIf) -> Case:
    """A loop that waits for unpacking, beside workers whose line is known."""
    rows = worker_loop(200, fetch_ms=fetch_ms, unpack_ms=4.9)
    found = case_of(tmp_path, rows, loader=DataLoader(Sized(), batch_size=4, num_workers=2))
    code = seen(case(tmp_path / "seen"), (f"Rows.__getitem__ {OWN}:41", 40)).report.code
    return replace(found, whatif=free, report=replace(found.report, code=code))


@pytest.mark.parametrize(("gain", "leads"), [(2.0, "fetch"), (1.1, "transfer")])
def test_a_line_of_workers_leads_where_the_loop_would_gain_most_without(tmp_path, gain, leads):
    """Workers that keep the loop's cores busy slow down its unpacking, for which it waits."""
    free = FakeWhatIf(lambda **left: gain if "fetch" in left else 1.05)
    first, *others = findings_of(unpacking(tmp_path, 2.0, free))
    assert first.stage == leads
    assert all(each.waiting_share < 0.05 for each in (first, *others) if each.stage == "fetch")


@pytest.mark.parametrize(("share", "leads"), [(1.0, "transfer"), (0.3, "fetch")])
def test_hand_over_that_waits_for_what_the_workers_compute_is_not_the_cause(tmp_path, share, leads):
    free = FakeWhatIf(lambda **left: 1.9 if "transfer" in left else 1.5 if "fetch" in left else 1.0)
    free.handover_share = share
    found = unpacking(tmp_path, 4.0, free)
    found = replace(found, report=replace(found.report, headroom=3.0))
    assert findings_of(found)[0].stage == leads


def test_what_is_drawn_before_the_first_batch_is_drawing(tmp_path: Path) -> None:
    rows, epochs = rows_of(wait_ms=1.0, compute_ms=0.1, fetch_ns=900 * US, samples=4)
    for number, row in enumerate(rows):
        row["index_ns"] = 60_000 * US if number % 60 == 0 else 0
    found = case_of(tmp_path, rows, epochs=epochs, loader=DataLoader(Sized(), batch_size=4))
    (drawing,) = (each for each in findings_of(found) if each.stage == "index")
    # Two epochs of 60 ms each, beside some 120 batches that are waited for 1 ms each.
    assert 0.45 < drawing.waiting_share < 0.55
