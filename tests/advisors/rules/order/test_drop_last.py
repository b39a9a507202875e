"""drop-last: short last batches that cost far more than their size."""

from pathlib import Path
from typing import Any

import pytest

from builders import MS, epoch_row, loop
from loaderscope.advisors.case.case import Case
from rule_cases import advice, case_of, shown
from silence import silent

NAME = "drop-last"


def case(tmp_path, lasts_ms=(90.0, 95.0, 80.0), samples=1, drop_last=False, how=1) -> Case:
    """Epochs of 40 steps of 10 ms and a last one of its own."""
    rows: list[dict[str, Any]] = []
    epochs = []
    for epoch, last_ms in enumerate(lasts_ms):
        start = rows[-1]["t_ns"] + 500 * MS if rows else 5_000_000_000_000
        own = loop(41, 1.0, 9.0, epoch=epoch, start_ns=start)
        own[-1].update(samples=samples, compute_ns=round(last_ms * MS))
        rows += own
        epochs.append(epoch_row(own, how=how))
    return case_of(tmp_path, rows, epochs=epochs, config={"drop_last": drop_last})


def test_a_recompilation_in_each_epoch_is_seen(tmp_path: Path) -> None:
    found = advice(NAME, case(tmp_path))
    assert found.params == {"drop_last": True} and "drop_last=True" in found.code
    assert shown(found, "epochs with it", "step on a short last batch") == ("3 of 3", "90.0 ms")
    assert "evaluation" in (found.caveat or "")
    # 81 ms of 491 ms too much: at best 1 / (1 - 0.165).
    assert found.predicted.high == pytest.approx(1.2, abs=0.01)
    assert 1 < found.predicted.low < found.predicted.high


test_it_is_silent_one_step_away = silent(
    NAME,
    case,
    {"lasts_ms": (90.0,)},  # once may be chance
    {"lasts_ms": (20.0, 20.0, 20.0)},
    {"lasts_ms": (90.0, 9.0, 9.0, 9.0, 9.0)},  # compiled once, then kept
    {"samples": 4},  # not short: the loop does more at its end
    {"drop_last": True},
    {"how": -1},  # left early
)
