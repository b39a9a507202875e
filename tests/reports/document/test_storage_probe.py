"""The storage probe as text: it fits, it hides nothing, and file names stay text."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from loaderscope.advisors.schema.report_model import Range
from loaderscope.advisors.storage_probe.probe_model import LayoutTrial, StorageProbe
from loaderscope.reports.document.machine import probe_sections
from loaderscope.reports.text.draw import print_sections
from screen_text import check_golden


def render_storage_probe(probe: StorageProbe, width: int = 80, **how: bool) -> str:
    return print_sections(probe_sections(probe), width, **how)


FILES = LayoutTrial(
    *("files", "files as they are", "encoded", "shuffled", None, 1500, 2.46e10),
    *(True, 1_234_567.0, 1_234_567.0),
)
TAR = replace(
    FILES,
    name="tar-shards",
    label="tar (webdataset)",
    order="in sequence",
    gain=Range(1.5, 2.0, 2.5),
)
ARRAY = replace(TAR, name="array", label="mapped array", form="decoded", order="shuffled")
MISSING = LayoutTrial(
    "lmdb", "LMDB", "encoded", "shuffled", 'needs lmdb: pip install "loaderscope[storage]"'
)
PROBE = StorageProbe(
    source="/data/[bold]train[/bold]",
    suffix=".png",
    whole_files=1_500_000,
    whole_bytes=18_600_000_000,
    whole_is_lower_bound=True,
    samples=1500,
    sample_bytes=18_600_000,
    decoder="PIL",
    decode_us=94.5,
    reading_warm_share=0.1,
    reading_cold_share=0.5,
    cold_reason=None,
    memory_bytes=10**10,
    file_system="ext4",
    rounds=5,
    seconds=20.0,
    layouts=(FILES, TAR, ARRAY, MISSING),
    verdict=("Reading is little.",),
    notes=("A note.",),
)


BARE = replace(
    PROBE,
    layouts=(replace(FILES, cold=None),),
    cold_reason="it is a tmpfs",
    decoder=None,
    decode_us=None,
)


@pytest.mark.parametrize(("name", "probe"), [("whole", PROBE), ("bare", BARE)])
def test_golden(name: str, probe: StorageProbe) -> None:
    """Every figure; what was not measured a dash with its reason."""
    check_golden(f"storage_probe_{name}.text", render_storage_probe(probe), "reports")


@pytest.mark.parametrize("width", [80, 140])
def test_it_fits_the_terminal(width: int) -> None:
    text = render_storage_probe(PROBE, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_names_are_shown_as_they_are_and_never_as_markup() -> None:
    evil = replace(PROBE, source="/x/[red]\x1b[2Jy", notes=("[link]\x07",))
    text = render_storage_probe(evil, color=True)
    assert "/x/[red]" in text and "\x1b[2J" not in text and "\x07" not in text


def test_json_has_every_figure() -> None:
    data = json.loads(PROBE.to_json())
    assert data["schema"] == 3
    assert data["layouts"][1]["gain"] == {"low": 1.5, "mid": 2.0, "high": 2.5}
    assert data["layouts"][0]["gain"] is None
