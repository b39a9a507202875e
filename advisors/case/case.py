"""What a rule looks at: the seam between the rules and the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...profiler.store.inspection import Inspection, Part
from ...profiler.store.run.run import LoaderRun, ProcessRun, Run, SystemRun
from ..schema.figures import figure
from ..schema.report_model import LoaderReport, Range, Scalar, SystemSummary
from ..whatif.changes import ARGUMENTS, NAMES
from .advice import SAME, Proposal
from .code_text import Source

if TYPE_CHECKING:
    from ..whatif import WhatIf
    from .probe_result import ProbeResult

# Of the program's lines that copy, so many are named.
MOST_LINES = 2


@dataclass(frozen=True)
class Case:
    """One loader of one process, with the run around it. `report` is complete but for the
    advice."""

    run: Run
    process: ProcessRun
    loader: LoaderRun
    report: LoaderReport
    system: SystemSummary
    host: SystemRun | None  # the columns behind `system`, None where no sampler ran
    write: Callable[..., str]  # `loader_code`: the call of this loader with changes
    whatif: (
        WhatIf | None
    )  # None where too little was measured to predict anything: see `whatif_reason`
    whatif_reason: str | None = None
    peers: tuple[tuple[ProcessRun, LoaderRun], ...] = ()  # the same loader in the run's other ranks
    probe: ProbeResult | None = None

    @property
    def cpus(self) -> float | None:
        """Effective CPUs: min(affinity, cgroup quota) / ranks on this host."""
        return self.system.effective_cpus

    @property
    def inspection(self) -> Inspection:
        return self.loader.inspection

    @property
    def dataset(self) -> Part | None:
        return self.loader.inspection.dataset

    @property
    def config(self) -> Mapping[str, Scalar]:
        return self.loader.config

    @property
    def num_workers(self) -> int:
        return self.loader.num_workers

    @property
    def batch_size(self) -> int | None:
        """The configured batch size; without one, None."""
        value = self.config.get("batch_size")
        return value if isinstance(value, int) and value > 0 else None

    @property
    def has_device(self) -> bool:
        return self.process.device is not None

    def predict(self, **changes: Any) -> Range:
        """What changes would do to the loop (see `WhatIf.predict`); only where enough was measured,
        see `whatif`."""
        assert self.whatif is not None
        return self.whatif.predict(**changes)

    def change(
        self,
        *,
        code: str | None = None,
        then: str = "",
        predicted: Range | None = None,
        **changes: Any,
    ) -> Proposal:
        """A change: what it does to the loop, the code that makes it, and the arguments it sets.

        `changes` are arguments of the loader (`num_workers=4`) and what else happens to the loop
        (`fetch=0.5`, see `WhatIf.predict`). The code is the call of the loader with these
        arguments, and `then` after it, unless `code` is given. `predicted` is for what the model
        cannot be asked. A change of which nothing can be predicted leaves the loop as fast as it
        is.
        """
        arguments = {
            name: value for name, value in changes.items() if name in ARGUMENTS or name not in NAMES
        }
        asked = {name: value for name, value in changes.items() if name in NAMES}
        if predicted is not None or self.whatif is None:
            asked = {}
        elif asked:
            predicted = self.predict(**asked)
        return Proposal(
            predicted=predicted or SAME,
            code=self.write(self, **arguments) + then if code is None else code,
            params={
                name: value for name, value in arguments.items() if not isinstance(value, Source)
            },
            asked=asked or None,
        )

    def mean_us(self, stage: str) -> float | None:
        """Mean time of a stage a batch in µs, None where it was not measured."""
        found = self.report.stages.get(stage)
        return found.mean_us if found is not None else None

    def median_us(self, stage: str) -> float | None:
        """Median time of a stage a batch in µs, which the first batches of workers do not move."""
        found = self.report.stages.get(stage)
        return found.p50_us if found is not None else None

    def share(self, stage: str) -> float | None:
        """A stage's total over the total of all steps; stages in parallel may exceed 1."""
        found = self.report.stages.get(stage)
        return found.share if found is not None else None

    @property
    def copying_share(self) -> float | None:
        """Of a step of a batch whose copies were timed (of many small ones, few are): its copies,
        on the device or in the calls that make them, whichever is longer. None where none were
        timed."""
        copying = [us for us in (self.mean_us("h2d"), self.mean_us("h2d_host")) if us is not None]
        # The program may run ahead of the device.
        by_whom = (("wait", "compute"), ("stall", "compute_device"))
        step_us = max(sum(self.mean_us(part) or 0.0 for part in parts) for parts in by_whom)
        return max(copying) / step_us if self.mean_us("h2d") is not None and step_us else None

    def copied_at(self) -> dict[str, str]:
        """As evidence: the program's lines that copy batches to the device, most copies first."""
        steps = self.loader.device_steps
        lines = sorted(steps.copies if steps is not None else (), key=lambda each: -each.a_step)
        return {
            f"copied at {each.place}": each.line or f"{figure(each.a_step)} a step"
            for each in lines[:MOST_LINES]
        }

    def waited_for(self, *causes: str) -> float:
        """Share of all waiting with these causes (see advisors.stage_model.waiting.CAUSES and
        `work`), 0 if unknown."""
        waiting = self.report.waiting
        if waiting is None:
            return 0.0
        return sum(waiting.causes[cause].share for cause in causes if cause in waiting.causes)
