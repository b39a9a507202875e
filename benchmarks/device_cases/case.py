"""A case of benchmarks/device.py."""

from __future__ import annotations

from dataclasses import dataclass

from known_cases.case import Case


@dataclass(frozen=True)
class OnDevice(Case):
    """`own_time`: it runs in its own time (`standin_device.OwnTime`), in which what else the
    machine does is not seen; a loop with workers or threads cannot. `held_out`: nothing was chosen
    or fitted by it. `verdict`: what must be said of the loop."""

    side: str = "device_side.py"
    own_time: bool = True
    held_out: bool = False
    verdict: str | None = None
