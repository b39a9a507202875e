"""The result of a storage probe, as frozen values with units in their names, and JSON.

Rates are of one process that only loads. A figure that was not measured is None, with a reason.
"""

from dataclasses import dataclass
from typing import Literal

from ..schema.codec import dump
from ..schema.gains import LEAST_GAIN
from ..schema.report_model import Range

SCHEMA = 3

Form = Literal["encoded", "decoded"]
Order = Literal["shuffled", "in sequence"]


@dataclass(frozen=True)
class LayoutTrial:
    """One layout of the same samples. `reason` says why it was not tried, or why it has no figures.

    `cold` and `warm` are samples a second, decoding included, the median of the rounds: "cold"
    means that the storage had to bring every page, "warm" that the page cache held them. `gain` is
    paired, round by round, with the files as they are, for any epoch but the first: above 1 is
    faster, low and high are the extremes of the rounds. Each side is warm if the whole data set
    fits in memory in that form, else cold (warm on both sides where cold could not be measured).
    `whole_bytes` is for the whole data set, by extrapolation from bytes.
    """

    name: str
    label: str
    form: Form
    order: Order
    reason: str | None = None
    samples: int = 0
    whole_bytes: float | None = None  # allocated on disk
    fits_memory: bool | None = None  # the whole data set in this layout
    cold: float | None = None
    warm: float | None = None
    gain: Range | None = None


@dataclass(frozen=True)
class StorageProbe:
    """The whole probe. `layouts` begins with the files as they are.

    `reading_warm_share` and `reading_cold_share` are the part of a sample's time that is reading
    its file, the rest is decoding; None where nothing decodes it. `cold_reason` says why there are
    no cold figures. `verdict` is the result in plain sentences, `notes` explain the figures.
    """

    source: str
    suffix: str  # of the files that were probed
    whole_files: int
    whole_bytes: int
    whole_is_lower_bound: bool  # there may be more
    samples: int
    sample_bytes: int
    decode_us: float | None  # a sample
    reading_warm_share: float | None
    reading_cold_share: float | None
    cold_reason: str | None
    memory_bytes: int  # the most that can hold the data set
    file_system: str | None  # of the temporary folder
    rounds: int
    layouts: tuple[LayoutTrial, ...]
    decoder: str | None = None
    seconds: float = 0.0
    verdict: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    schema: int = SCHEMA

    def to_json(self) -> str:
        """JSON text; figures that were not measured are null."""
        return dump(self, 2)


def clear_gain(gain: Range) -> bool:
    """Whether it is a gain in every round, and large enough to matter."""
    return gain.low > 1.0 and gain.mid > LEAST_GAIN
