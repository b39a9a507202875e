"""The Code screen draws what is known, says why where nothing is, and costs nothing while another
screen is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import RunBuilder
from dashboard_samples import ADVICE, HOSTILE, advised
from inside_samples import CODE, FETCH, NO_CODE, hostile_code, hostile_storage
from loaderscope.profiler.store.run.follow import Follower
from loaderscope.tui.draw import code_screen as code
from loaderscope.tui.snapshot import AdviceView, Snapshot, advice_of, snapshot_of


def snapshot(advice: AdviceView = ADVICE) -> Snapshot:
    return Snapshot("run", (), "finished", advice=advice)


@pytest.mark.parametrize("width", [1, 20, 40, 80, 200])
def test_lines_are_no_wider_than_their_room_where_there_is_some(width: int) -> None:
    drawn = code.inside(snapshot(), width).plain
    assert width < 60 or all(len(row) <= width for row in drawn.split("\n"))


@pytest.mark.parametrize(
    ("advice", "said"),
    [
        (ADVICE, "2,410 samples in 2 bursts"),
        (advised(code=NO_CODE), "py-spy is not installed: pip install"),
        (advised(code=None), "no stacks were taken (see loaderscope stacks)"),
        (AdviceView(), "no advice yet"),
        (advised(code=replace(CODE, reason="30 % may")), "30 % may"),
    ],
)
def test_status(advice, said):
    (row,) = code.status(snapshot(advice), 80).plain.split("\n")
    assert said in row


def test_nothing_known_is_said() -> None:
    stage = replace(CODE, stages={"fetch": replace(FETCH, samples=0)})
    for found in (None, stage):
        empty = snapshot(advised(code=found, storage=None))
        said = code.inside(empty, 80).plain
        assert said == "no functions or files were seen"


def test_hostile_texts_are_only_texts() -> None:
    advice = advised(
        code=hostile_code(HOSTILE),
        storage=hostile_storage(HOSTILE),
    )
    drawn = code.inside(snapshot(advice), 120)
    assert "<script>[b]red" in drawn.plain and "\x1b" not in drawn.plain


def test_snapshots_merge_no_stacks(run: RunBuilder) -> None:
    """They are made twice a second; what stacks show comes with the advice, at most each five
    seconds."""
    follower = Follower(run.path)
    follower.poll()
    found, recorded = snapshot_of(follower, None, AdviceView())
    assert found.loader is not None and recorded is not None and found.place is not None
    assert not code.code_stages(found.loader.report.code)
    assert advice_of(recorded, found.place).report is not None
