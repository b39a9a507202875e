"""storage-format: what packing files could gain, said before anybody packs them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader, Dataset

from builders import MS, T0
from loaderscope.advisors.case.case import Case
from rule_cases import FakeWhatIf, advice, case_of, outcomes, rejection, unmeasured
from rule_rows import rows_of
from storage_cases import pasted

NAME = "storage-format"


class Pictures(Dataset[Any]):
    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> bytes:
        return Path(self.paths[index]).read_bytes()


class Numbers(Dataset[Any]):
    def __init__(self, paths: list[str]) -> None:
        self.values = [float(len(path)) for path in paths]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> float:
        return self.values[index]


def reading(read_all: int, read_disk: int) -> dict[str, Any]:
    """A sampler that saw the training process read."""
    rows = [
        {"t_ns": T0 + n * 200 * MS, "pid": 4000, "owner_pid": 4000, "role": 0, "read_all_bytes": n * read_all // 9,
         "read_disk_bytes": n * read_disk // 9}
        for n in range(10)
    ]  # fmt: skip
    return {"process": rows}


def case(
    tmp_path: Path,
    idle: float | None,
    *,
    cls: Any = Pictures,
    fetch_ms: float = 20.0,
    **options: Any,
) -> Case:
    fetch = round(fetch_ms * MS)
    cpu = {} if idle is None else {"fetch_cpu_ns": round(fetch * (1 - idle))}
    rows, epochs = rows_of(
        wait_ms=22.0, compute_ms=options.pop("compute_ms", 5.0), fetch_ns=fetch, collate_ns=MS, samples=4,
        bytes=400_000, **cpu,
    )  # fmt: skip
    dataset = cls([f"data/{n}.png" for n in range(40)])
    return case_of(
        tmp_path, rows, epochs=epochs, loader=DataLoader(dataset, batch_size=4), **options
    )


def test_decoding_is_said_before_a_day_is_spent_converting(tmp_path: Path) -> None:
    whatif = FakeWhatIf()

    found = rejection(NAME, case(tmp_path, 0.08, whatif=whatif))

    assert whatif.asked == [{"fetch": pytest.approx(0.92, abs=0.001)}]
    assert (
        "decoding" in found.why
        and "92 %" in found.why
        and str(found.evidence["fetching waits"]) == "8.0 %"
    )


def test_files_that_are_waited_for_are_packed(tmp_path: Path) -> None:
    whatif = FakeWhatIf()

    found = advice(NAME, case(tmp_path, 0.8, whatif=whatif, system=reading(90_000_000, 60_000_000)))

    low, high = whatif.asked[0]["fetch"]
    assert low == pytest.approx(0.2, abs=0.01) and low < high < 1
    assert str(found.evidence["read by the loader"]) == "90.0 MB"
    assert str(found.evidence["of it from the disk"]) == "60.0 MB"


def test_without_a_list_that_files_can_stand_in_for_the_files_are_packed_all_the_same(
    tmp_path: Path,
) -> None:
    found = advice(NAME, case(tmp_path, 0.8, system=reading(90_000_000, 60_000_000)))
    names = []
    for n in range(5):
        names.append(str(tmp_path / f"{n}.png"))
        Path(names[-1]).write_bytes(bytes([n]) * n * 10)

    loader = pasted(found.code, Pictures(names))

    packed = loader.dataset.packed_files
    assert [packed[n].read() for n in range(5)] == [Path(name).read_bytes() for name in names]
    assert isinstance(packed[2], io.BytesIO)


@pytest.mark.parametrize(
    ("idle", "options"),
    [
        (0.08, {"cls": Numbers}),  # no files
        (0.08, {"fetch_ms": 2.0}),  # fetching is not what is waited for
        (0.08, {"compute_ms": 2000.0}),  # loading is not what limits training
        (0.3, {"system": reading(90_000_000, 0)}),  # waits a little, computes more
        (0.8, {"system": reading(1000, 0)}),  # waits, but reads nothing
    ],
)
def test_it_is_silent_one_step_away(tmp_path: Path, idle: float, options: dict[str, Any]) -> None:
    assert outcomes(NAME, case(tmp_path, idle, **options)) == []


def test_what_was_not_measured_is_not_guessed(tmp_path: Path) -> None:
    assert "system sampler" in unmeasured(NAME, case(tmp_path / "a", 0.8))
    assert "CPU time" in unmeasured(NAME, case(tmp_path / "b", None))
