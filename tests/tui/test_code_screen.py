"""The Code screen draws what is known, says why where nothing is, and costs nothing while another
screen is shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from builders import RunBuilder
from dashboard_samples import ADVICE, HOSTILE, advised, sampled, train
from inside_samples import CODE, FETCH, NO_CODE, hostile_code, hostile_storage, hostile_transforms
from loaderscope.profiler.store.run.follow import Follower
from loaderscope.tui.draw import code_screen as code
from loaderscope.tui.snapshot import AdviceView, Snapshot
from loaderscope.tui.snapshot_builder import SnapshotBuilder, ViewRequest, advice_of
from loaderscope.tui.stack_requests import Taken

DRAWS = (code.status, code.functions, code.own, code.transforms, code.reading)


def snapshot(advice: AdviceView = ADVICE, state: str = "finished") -> Snapshot:
    return Snapshot("run", (), state, advice=advice)


def test_each_stage_has_its_functions_with_bars() -> None:
    rows = code.functions(snapshot(), 100, 20).plain.split("\n")
    assert rows[1].split() == ["fetch", "1,204", "samples", "·", "GIL", "held", "31", "%"]
    assert (
        " ".join(rows[2].split())
        == "71 % 70 % █████▋ PIL ImageFile.load ImageFile.py:425 ← patches.py:41"
    )
    narrow = code.functions(snapshot(), 80, 20).plain.split("\n")[2]
    assert narrow.endswith(
        "PIL ImageFile.load  ImageFile.py:425"
    )  # who called is what can be spared
    assert [row.split()[0] for row in rows if row[:1] == "▸"] == ["▸", "▸"]
    assert any(row.startswith("collate") for row in rows)
    assert "forget" not in "".join(rows)  # a thousandth is no reason for anything


def test_own_lines_name_their_text() -> None:
    rows = code.own(snapshot(), 80, 20).plain.split("\n")
    assert rows[0] == "fetch"
    assert rows[1].split()[0] == "▸" and rows[1].endswith("patches.py:41  image.load()")
    assert rows[3].endswith("patches.py:40  Patches.__getitem__")


def test_the_place_of_a_line_is_never_cut() -> None:
    wordy = replace(FETCH.lines[0], text="x" * 70)
    advice = advised(code=replace(CODE, stages={"fetch": replace(FETCH, lines=(wordy,))}))
    (row,) = code.own(snapshot(advice), 50, 20).plain.split("\n")[1:]
    assert " patches.py:41  xxx" in row and row.endswith("…") and len(row) <= 50


@pytest.mark.parametrize("width", [1, 20, 40, 80, 200])
def test_lines_are_no_wider_than_their_room_where_there_is_some(width: int) -> None:
    for draw in (code.functions, code.transforms, code.reading):
        drawn = draw(snapshot(), width, 20)
        assert width < 60 or all(len(row) <= width for row in drawn.plain.split("\n"))


@pytest.mark.parametrize(
    ("advice", "state", "taken", "expected"),
    [
        (ADVICE, "live", None, ["2,410 samples in 2 bursts", "s takes stacks now"]),
        (ADVICE, "finished", None, ["2,410 samples", "of a live run only"]),
        (
            advised(code=NO_CODE),
            "live",
            None,
            ["py-spy is not installed: pip install py-spy", "s takes"],
        ),
        (advised(code=None), "live", None, ["no stacks were taken", "s takes"]),
        (AdviceView(), "live", None, ["no advice yet", "s takes"]),
        (ADVICE, "live", Taken(None, "taking stacks…"), ["2,410", "taking stacks…"]),
        (ADVICE, "live", Taken(False, "not permitted"), ["2,410", "not permitted"]),
    ],
)
def test_status(advice: AdviceView, state: str, taken: Taken | None, expected: list[str]) -> None:
    rows = code.status(snapshot(advice, state), 80, 2, taken=taken).plain.split("\n")
    assert len(rows) == 2
    for row, part in zip(rows, expected, strict=True):
        assert part in row


def test_nothing_known_is_said() -> None:
    empty = snapshot(advised(code=None, transforms=(), storage=None))
    assert [draw(empty, 80, 20).plain for draw in DRAWS[1:]] == [
        "no functions were seen", "none of your lines was seen", "no chain of transforms was found",
        "no files were looked at",
    ]  # fmt: skip


def test_hostile_texts_are_only_texts() -> None:
    advice = advised(
        code=hostile_code(HOSTILE),
        transforms=hostile_transforms(HOSTILE),
        storage=hostile_storage(HOSTILE),
    )
    for draw in DRAWS[1:]:
        drawn = draw(snapshot(advice), 120, 20)
        assert "<script>[b]red" in drawn.plain and "\x1b" not in drawn.plain


def test_a_doubt_about_the_figures_is_said() -> None:
    advice = advised(code=replace(CODE, reason="30 % of the samples may be another's"))
    assert code.functions(snapshot(advice), 80, 20).plain.endswith(
        "\n30 % of the samples may be another's"
    )


def test_a_stage_without_samples_is_not_there() -> None:
    advice = advised(code=replace(CODE, stages={"fetch": replace(FETCH, samples=0)}))
    assert code.functions(snapshot(advice), 80, 20).plain == "no functions were seen"


def test_snapshots_merge_no_stacks(runs_dir: Path) -> None:
    """They are made twice a second; what stacks show comes with the advice, at most each five
    seconds."""
    run = RunBuilder(runs_dir)
    train(run)
    sampled(run)
    follower = Follower(run.path)
    follower.poll()
    found, recorded = SnapshotBuilder(follower).build(ViewRequest(), AdviceView())
    assert found.loader is not None and recorded is not None and found.choice is not None
    assert not code.code_stages(found.loader.report.code)
    assert advice_of(recorded, found.choice.place).report is not None
