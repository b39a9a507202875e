"""The cases of benchmarks/known_answers.py, by what is wrong with them."""

from __future__ import annotations

from . import (
    access,
    distributed,
    epochs,
    handover,
    healthy,
    resources,
    waits,
    waste,
    waste_making,
    waste_singly,
    workers,
)
from .case import Case

CASES: dict[str, Case] = {
    case.name: case
    for module in (
        *(access, waits, waste, waste_making, waste_singly, workers),
        *(handover, epochs, resources, distributed, healthy),
    )
    for case in module.CASES
}
