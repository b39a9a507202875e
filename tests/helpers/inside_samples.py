"""Hot functions and storage made up for the tests of what shows them."""

from dataclasses import replace
from typing import Any

from loaderscope.advisors.schema.report_model import (
    Code,
    CodeStage,
    Container,
    EpochReads,
    FileKind,
    FlameNode,
    HotSpot,
    Mount,
    StorageSummary,
)

OWN = "/home/someone/patches.py"
SITE = "/venv/lib/python3.12/site-packages"
IMAGE, IMAGE_FILE = f"{SITE}/PIL/Image.py", f"{SITE}/PIL/ImageFile.py"
LIBZ = "/lib/x86_64-linux-gnu/libz.so.1"
FROM_PIL: dict[str, Any] = {"library": "PIL", "called_from": "patches.py:41"}
OPENED: dict[str, Any] = {**FROM_PIL, "called_from": "patches.py:40", "low": 0.04, "high": 0.08}


def spot(function: str, file: str, line: int, share: float, total: float, **more: Any) -> HotSpot:
    unknown = {"library": None, "own": False}
    given = {**unknown, "low": total - 0.05, "high": min(1.0, total + 0.04), **more}
    return HotSpot(function, file, line, share=share, total_share=total, **given)


FETCH = CodeStage(
    samples=1_204,
    gil_share=0.31,
    hot=(
        spot("ImageFile.load", IMAGE_FILE, 425, 0.70, 0.71, **FROM_PIL),
        spot("inflate", LIBZ, 0, 0.11, 0.12, **{**FROM_PIL, "library": "libz"}),
        spot("Patches.__getitem__", OWN, 41, 0.08, 0.98, own=True, text="    image.load()"),
        spot("normalise", OWN, 52, 0.07, 0.09, own=True, text="    x = (x - MEAN) / STD"),
        spot("Image.open", IMAGE, 3500, 0.03, 0.06, **OPENED),
        spot("forget", IMAGE, 1, 0.001, 0.001, library="PIL", low=0.0, high=0.005),
    ),
    lines=(
        spot("Patches.__getitem__", OWN, 41, 0.01, 0.74, own=True, text="    image.load()"),
        spot("normalise", OWN, 52, 0.07, 0.09, own=True, text="    x = (x - MEAN) / STD"),
        spot("Patches.__getitem__", OWN, 40, 0.0, 0.06, own=True, low=0.05, high=0.08),
    ),
    libraries={"PIL": 0.73, "libz": 0.11, "": 0.16},
    flame=(
        FlameNode("Patches.__getitem__", OWN, 41, True, -1, 1_180),
        FlameNode("ImageFile.load", IMAGE_FILE, 425, False, 0, 855),
        FlameNode("inflate", LIBZ, 0, False, 1, 140),
        FlameNode("Image.open", IMAGE, 3500, False, 0, 72),
        FlameNode("normalise", OWN, 52, True, 0, 110),
    ),
)
TORCH = f"{SITE}/torch/utils/data/_utils/collate.py"
COLLATE = CodeStage(
    samples=90,
    gil_share=None,
    hot=(spot("collate_tensor_fn", TORCH, 285, 0.9, 0.9, library="torch"),),
    lines=(),
    libraries={"torch": 0.9},
    flame=(FlameNode("default_collate", TORCH, 398, False, -1, 90),),
)
CODE = Code(2, 2_410, 16.0, 25.0, stages={"collate": COLLATE, "fetch": FETCH})
NO_CODE = Code(0, 0, 0.0, None, {}, reason="py-spy is not installed: pip install py-spy")

PER_SAMPLE = {"opens": 1.0, "read_bytes": 13_100.0, "disk_bytes": 131.0, "read_calls": 3.0}
SHARES = {"reopened": 0.0, "reading": 0.03, "decoding": 0.95, "other": 0.02}
STORAGE = StorageSummary(
    samples=640,
    wait_us_per_open=40.0,
    directories=12,
    kinds=(FileKind(".png", 640, 13_000.0, 15_100), FileKind("", 2, None, None)),
    mounts=(Mount("/", "overlay", "overlay", 600), Mount("/data", "nfs4", "network", 40)),
    containers=(
        Container("lmdb", "/data/masks.lmdb", 2_100_000_000),
        Container("npz", "/data/meta.npz", None),
    ),
    epochs=(EpochReads(0, 320, 13_100.0, 12_900.0, 0.5), EpochReads(1, 320, 13_100.0, 0.0, None)),
    dataset_bytes=15_600_000.0,
    memory_bytes=12_000_000_000,
    reasons={"wait_us_per_open": "the kernel counts no I/O waiting here"},
    **{f"{name}_per_sample": value for name, value in PER_SAMPLE.items()},
    **{f"{name}_share": value for name, value in SHARES.items()},
)


def hostile_code(evil: str) -> Code:
    """Every name and path of it made of markup."""
    names = dict.fromkeys(("function", "library", "called_from", "text"), evil)
    bad = replace(FETCH.hot[0], file=f"/{evil}/{evil}", **names)
    stage = replace(
        FETCH,
        hot=(bad,),
        lines=(replace(bad, own=True, library=None),),
        libraries={evil: 1.0},
        flame=tuple(replace(node, function=evil, file=evil) for node in FETCH.flame),
    )
    return replace(CODE, stages={"fetch": stage, evil: stage}, reason=evil)


def hostile_storage(evil: str) -> StorageSummary:
    return replace(
        STORAGE,
        kinds=(FileKind(evil, 3, 4.0, 5),),
        mounts=(Mount(evil, evil, evil, 2),),
        containers=(Container(evil, evil, 1),),
        reasons={evil: evil},
    )
