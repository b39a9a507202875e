"""What a rule looks at: the seam between the rules and the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...profiler.base.metadata import Scalars
from ...profiler.store.inspection import Inspection, Part
from ...profiler.store.run.run import LoaderRun, ProcessRun, Run, SystemRun
from ..schema.evidence import Figure, figure
from ..schema.report_model import CodeStage, LoaderReport, Range, SystemSummary, Waiting
from ..whatif.changes import ARGUMENTS, NAMES
from .advice import SAME, Advice
from .code_text import Source

if TYPE_CHECKING:
    from ..whatif import WhatIf

# Of the program's lines that copy, so many are named.
MOST_LINES = 2
_NO_WAITING = Waiting(0, 0.0, {}, {}, None)


@dataclass(frozen=True)
class Case:
    """One loader of one process, with the run around it. `report` is complete but for advice.

    Where several stages are named, their times add up. The sum is None if the first of them was
    not measured.
    """

    run: Run
    process: ProcessRun
    loader: LoaderRun
    report: LoaderReport
    system: SystemSummary
    host: SystemRun | None  # the columns behind `system`, None where no sampler ran
    write: Callable[..., str]  # `loader_code`: the call of this loader with changes
    whatif: WhatIf | None  # None where too little was measured, see `whatif_reason`
    whatif_reason: str | None = None

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
    def config(self) -> Scalars:
        return self.loader.config

    @property
    def num_workers(self) -> int:
        return self.loader.num_workers

    @property
    def batch_size(self) -> int | None:
        """The configured batch size; None if there is none."""
        return self._number("batch_size") or None

    @property
    def dataset_len(self) -> int | None:
        return self._number("dataset_len")

    def _number(self, name: str) -> int | None:
        value = self.config.get(name)
        return value if isinstance(value, int) and value >= 0 else None

    @property
    def has_device(self) -> bool:
        return self.process.device is not None

    @property
    def compute_bound(self) -> bool:
        return self.report.verdict == "compute-bound"

    @property
    def waiting(self) -> Waiting:
        """What was waited for; without any cause if that is not known."""
        return self.report.waiting or _NO_WAITING

    def meets(self, needs: str) -> bool:
        """Whether the case has all of these (words of NEEDS): what a rule cannot do without."""
        return all(NEEDS[need](self) for need in needs.split())

    def predict(self, **changes: Any) -> Range:
        """What changes would do to the loop (see `WhatIf.predict`). Needs `whatif`."""
        assert self.whatif is not None
        return self.whatif.predict(**changes)

    def change(
        self,
        *,
        code: str | None = None,
        then: str = "",
        predicted: Range | None = None,
        **changes: Any,
    ) -> Advice:
        """A change, not yet in words: its effect, its code, and the arguments it sets.

        `changes` are arguments of the loader (`num_workers=4`) and what else happens to the loop
        (`fetch=0.5`, see `WhatIf.predict`). The code is the call of the loader with these
        arguments, and `then` after it, unless `code` is given. `predicted` is for what the model
        cannot be asked. Without a prediction, the loop stays as fast as it is.
        """
        asked, arguments = {}, {}
        for name, value in changes.items():
            if name in NAMES and predicted is None and self.whatif is not None:
                asked[name] = value
            if name in ARGUMENTS or name not in NAMES:
                arguments[name] = value
        if asked:
            predicted = self.predict(**asked)
        return Advice(
            title="",
            why="",
            evidence={},
            predicted=predicted or SAME,
            code=self.write(self, **arguments) + then if code is None else code,
            params={
                name: value for name, value in arguments.items() if not isinstance(value, Source)
            },
            asked=asked or None,
        )

    def _total(self, figure: str, stages: tuple[str, ...]) -> float | None:
        found = [getattr(self.report.stages.get(stage), figure, None) for stage in stages]
        return None if found[0] is None else sum(each or 0.0 for each in found)

    def mean_us(self, *stages: str) -> float | None:
        """Mean time of stages per batch in µs."""
        return self._total("mean_us", stages)

    def median_us(self, *stages: str) -> float | None:
        """Median time of stages per batch in µs, which the first batches of workers do not move."""
        return self._total("p50_us", stages)

    def share(self, *stages: str) -> float | None:
        """Time of stages over the time of all steps; may exceed 1 for stages in parallel."""
        return self._total("share", stages)

    @property
    def making_us(self) -> float | None:
        """Fetch and collate, mean wall time per batch in µs."""
        return self.mean_us("fetch", "collate")

    @property
    def hand_over_us(self) -> float | None:
        """What a worker's batch costs on top of being made: pack and unpack, mean µs per batch."""
        return self.mean_us("pack", "unpack")

    @property
    def copying_share(self) -> float | None:
        """Of a step of a batch whose copies were timed: its copies, on the device or in the calls
        that make them, whichever takes longer. None if none were timed."""
        copied = self.mean_us("h2d")
        # The program may run ahead of the device.
        steps = self.mean_us("wait", "compute"), self.mean_us("stall", "compute_device")
        step_us = max(each or 0.0 for each in steps)
        if copied is None or not step_us:
            return None
        return max(copied, self.mean_us("h2d_host") or 0.0) / step_us

    def copied_at(self) -> dict[str, Figure | str | None]:
        """As evidence: the program's lines that copy batches to the device, most copies first."""
        steps = self.loader.device_steps
        lines = sorted(steps.copies if steps is not None else (), key=lambda each: -each.a_step)
        return {
            f"copied at {each.place}": each.line or figure(each.a_step, "per step")
            for each in lines[:MOST_LINES]
        }

    def code_stage(self, name: str, least: int = 0) -> CodeStage | None:
        """What stack samples show of a stage; None if there are none, or fewer than `least`."""
        stage = self.report.code.stages.get(name) if self.report.code is not None else None
        return stage if stage is not None and stage.samples >= least else None

    def waited_for(self, *causes: str) -> float:
        """Share of all waiting with these causes (see stage_model.waiting.CAUSES), 0 if unknown."""
        known = self.waiting.causes
        return sum(known[cause].share for cause in causes if cause in known)


NEEDS: Mapping[str, Callable[[Case], bool]] = {
    "prediction": lambda case: case.whatif is not None,
    "workers": lambda case: case.num_workers > 0,
    "device": lambda case: case.has_device,
    "DataLoader": lambda case: case.loader.kind == "dataloader",
    "waiting": lambda case: not case.compute_bound,
    "map": lambda case: case.config.get("dataset_kind") == "map",  # a map-style data set
    "stream": lambda case: case.config.get("dataset_kind") == "iterable",
}
