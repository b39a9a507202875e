"""Rates, factors, pay-offs and sentences, from made-up passes whose answer is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaderscope.advisors.storage_probe.decoders import Decoder
from loaderscope.advisors.storage_probe.formats import FORMATS
from loaderscope.advisors.storage_probe.layout import Layout
from loaderscope.advisors.storage_probe.probe_model import LayoutTrial
from loaderscope.advisors.storage_probe.results import MAX_EPOCHS, pays_after, trial_of
from loaderscope.advisors.storage_probe.source import Data
from loaderscope.advisors.storage_probe.timing import Timed
from loaderscope.advisors.storage_probe.verdict import sentences

MS = 1e-3
Made = Callable[..., tuple[LayoutTrial, ...]]
DATA = Data("/x", ".png", (), 1000, 10_000_000, (Path("/x"),), False)
PICTURES = Decoder("PIL", "pictures", len)
ROOMY, TIGHT = 10**12, 20_000_000


class Sized(NamedTuple):
    """A layout as it is after converting a tenth of DATA: `bytes_` on disk."""

    name: str
    bytes_: int
    convert_s: float = 0.0
    reason: str | None = None

    def made(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
        kind = next(each for each in FORMATS if each.name == self.name)
        layout = Layout(kind, folder, count=100, source_bytes=1_000_000, convert_s=self.convert_s)
        layout.reason = self.reason
        monkeypatch.setattr(layout, "disk_bytes", lambda: self.bytes_)
        return layout


FILES, LMDB = Sized("files", 1_200_000), Sized("lmdb", 1_100_000, 0.5)
ARRAY = Sized("array", 14_000_000, 2.0)
Passes = Sequence[float | None]


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """The results of layouts with these passes, (layout, cold, warm), and others without any."""

    def made(
        *lanes: tuple[Sized, Passes, Passes],
        decode: Sequence[float] = (),
        memory: int = ROOMY,
        missing: Sequence[Sized] = (),
    ) -> tuple[LayoutTrial, ...]:
        layouts = [each[0].made(tmp_path, monkeypatch) for each in lanes]
        for layout, (_, cold, warm) in zip(layouts, lanes, strict=True):
            layout.cold_s, layout.warm_s = list(cold), list(warm)
        others = [each.made(tmp_path, monkeypatch) for each in missing]
        timed = Timed(layouts, list(decode), len(lanes[0][2]))
        return tuple(trial_of(each, timed, DATA, memory) for each in (*layouts, *others))

    return made


def test_rates_and_factors_are_medians_of_paired_rounds(result: Made) -> None:
    # A machine twice as slow in the last round: the rates differ, the ratios do not.
    files, lmdb = result(
        (FILES, [4 * MS, 4 * MS, 8 * MS], [1 * MS, 1 * MS, 2 * MS]),
        (LMDB, [2 * MS, None, 4 * MS], [0.25 * MS, 0.5 * MS, 0.5 * MS]),
        decode=[3 * MS, 3 * MS, 6 * MS],
    )
    rate, factor = files.read_warm, lmdb.read_warm_factor
    assert rate is not None and factor is not None
    assert (rate.median, rate.low, rate.high) == pytest.approx((1000, 500, 1000))
    assert files.total_warm is not None and files.total_warm.median == pytest.approx(250)
    assert lmdb.read_cold is not None and lmdb.read_cold.passes == 2
    assert (factor.low, factor.mid, factor.high) == pytest.approx((2, 4, 4))
    assert lmdb.total_warm_factor is not None
    assert lmdb.total_warm_factor.mid == pytest.approx(4 / 3.25)
    assert (files.convert_s, files.read_warm_factor, files.pays_after_total) == (None, None, None)


def test_the_whole_is_ten_times_the_sample_and_pays_when_it_does(result: Made) -> None:
    lanes = (FILES, [2 * MS] * 3, [2 * MS] * 3), (LMDB, [1 * MS] * 3, [1 * MS] * 3)
    _, lmdb = result(*lanes, decode=[6 * MS] * 3)
    assert (lmdb.whole_bytes, lmdb.whole_convert_s) == (11_000_000, 5.0)
    # An epoch of 1000 samples is one second shorter: 5 s are made good by the sixth.
    assert lmdb.pays_after_reading == lmdb.pays_after_total == 6


@pytest.mark.parametrize(
    ("files", "lmdb", "cold"),
    [
        (([None] * 3, [2.0] * 3), ([None] * 3, [1.0, 1.0, 2.1]), None),
        (([20.0] * 3, [1.0] * 3), ([1.0] * 3, [2.0] * 3), 20),  # a fast first epoch alone
    ],
)
def test_a_gain_that_is_not_in_every_round_never_pays(result, files, lmdb, cold):
    lanes = [[[t and t * MS for t in times] for times in each] for each in (files, lmdb)]
    _, found = result((FILES, *lanes[0]), (LMDB, *lanes[1]))
    assert found.pays_after_reading is None
    assert (found.read_cold is None) is (cold is None)
    factor = found.read_cold_factor
    assert (factor and factor.mid) == (cold and pytest.approx(cold))


def test_what_does_not_fit_in_memory_is_judged_by_cold_reading(result: Made) -> None:
    lanes = (FILES, [4 * MS] * 3, [1 * MS] * 3), (ARRAY, [3 * MS] * 3, [0.1 * MS] * 3)
    files, array = result(*lanes, decode=[1 * MS] * 3, memory=TIGHT)
    assert (files.fits_memory, array.fits_memory) == (True, False)
    # Files 1 ms warm and 1 ms decoding against 3 ms cold: slower, however fast it would be in
    # memory.
    assert array.total_steady_factor is not None and array.total_warm_factor is not None
    assert array.total_steady_factor.mid == pytest.approx(2 / 3)
    assert array.total_warm_factor.mid == pytest.approx(20)
    text = list(sentences((files, array), PICTURES, 0.5, 0.8, TIGHT))
    assert "does not fit in memory (20.0 MB at most)" in text[-1]
    assert "140 MB" in text[-1]


def test_the_sentence_of_workload_c(result: Made) -> None:
    warm = {FILES: 0.04, LMDB: 0.02, ARRAY: 0.02}
    lanes = [(kind, [1 * MS] * 3, [ms * MS] * 3) for kind, ms in warm.items()]
    found = result(*lanes, decode=[0.96 * MS] * 3)
    text = list(sentences(found, PICTURES, 0.04, 0.51, ROOMY))
    assert "Reading from the page cache is 4.0 % of the time per sample" in text[0]
    assert "decoding 96 %: no layout that keeps pictures encoded gains more than ×1.04" in text[0]
    assert text[1].startswith(
        "No layout of the same bytes is clearly faster than the files: the closest is LMDB, ×1.02"
    )
    # 20 s to convert; the first epoch saves 0.96 s, each later one 0.98 s.
    for words in ("×50", "12 times the space", "pays after 21 epochs"):
        assert words in text[2]


def test_missing_layouts_are_told(result: Made) -> None:
    why = "samples decode to different shapes"
    lane = (FILES, [None] * 2, [1 * MS] * 2)
    files, array = result(lane, decode=[1 * MS] * 2, missing=[Sized("array", 0, reason=why)])
    assert (array.reason, array.samples, array.bytes) == (why, 0, None)
    text = list(sentences((files, array), PICTURES, 0.5, None, ROOMY))
    assert text[1:] == [
        "No other layout of the same bytes could be tried: see the reasons below.",
        f"Decoded samples were not tried: {why}.",
    ]
    without = list(sentences((replace(files, read_warm=None),), PICTURES, None, None, ROOMY))
    assert without == ["Nothing could be timed: raise --seconds."]


seconds = st.integers(0, 50).map(float)


@given(seconds, st.tuples(seconds, seconds), st.tuples(seconds, seconds))
def test_it_is_the_first_epoch_after_which_less_time_was_spent(convert, before, after):
    old_s, new_s = ([first + n * later for n in range(200)] for first, later in (before, after))
    counted = next((n for n in range(1, 200) if convert + new_s[n - 1] < old_s[n - 1]), None)
    assert pays_after(convert, before, after) == counted


def test_what_would_pay_after_all_time_never_pays() -> None:
    assert pays_after(1e9, (2, 2), (1, 1)) is None
    assert pays_after(MAX_EPOCHS - 0.5, (2, 2), (1, 1)) == MAX_EPOCHS
