"""What a rule looks at, and what it may answer: the seam between the rules and the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ...profiler.store.inspection import Inspection, Part
from ...profiler.store.run.run import LoaderRun, ProcessRun, Run, SystemRun
from ..schema.figures import figure
from ..schema.report_model import Change, Effort, LoaderReport, Range, Recommendation, Scalar, SystemSummary
from .code_text import with_imports

if TYPE_CHECKING:
    from ..whatif import WhatIf
    from .probe_result import ProbeResult

Kind = Literal["speed", "correctness", "safety"]

SAME = Range(1.0, 1.0, 1.0)
# Of the program's lines that copy, so many are named.
MOST_LINES = 2


@dataclass(frozen=True, eq=False)
class Predicted(Range):
    """A range, equal to any other with its figures, that knows what change it is of: so that changes can be predicted
    together."""

    changes: Mapping[str, Any] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Range) and (self.low, self.mid, self.high) == (other.low, other.mid, other.high)

    __hash__ = Range.__hash__


@dataclass(frozen=True)
class Case:
    """One loader of one process, with the run around it. `report` is complete but for the advice."""

    run: Run
    process: ProcessRun
    loader: LoaderRun
    report: LoaderReport
    system: SystemSummary
    host: SystemRun | None  # the columns behind `system`, None where no sampler ran
    whatif: WhatIf | None  # None where too little was measured to predict anything: see `whatif_reason`
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

    def predict(self, **changes: Any) -> Predicted:
        """What changes would do to the loop (see `WhatIf.predict`); only where enough was measured, see `whatif`."""
        assert self.whatif is not None
        found = self.whatif.predict(**changes)
        return Predicted(found.low, found.mid, found.high, changes)

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
        """Of a step of a batch whose copies were timed (of many small ones, few are): its copies, on the device or in
        the calls that make them, whichever is longer. None where none were timed."""
        copying = [us for us in (self.mean_us("h2d"), self.mean_us("h2d_host")) if us is not None]
        # The program may run ahead of the device.
        by_whom = (("wait", "compute"), ("stall", "compute_device"))
        step_us = max(sum(self.mean_us(part) or 0.0 for part in parts) for parts in by_whom)
        return max(copying) / step_us if self.mean_us("h2d") is not None and step_us else None

    def copied_at(self) -> dict[str, str]:
        """As evidence: the program's lines that copy batches to the device, most copies first."""
        steps = self.loader.device_steps
        lines = sorted(steps.copies if steps is not None else (), key=lambda each: -each.a_step)
        return {f"copied at {each.place}": each.line or f"{figure(each.a_step)} a step" for each in lines[:MOST_LINES]}

    def waited_for(self, *causes: str) -> float:
        """Share of all waiting with these causes (see advisors.stage_model.waiting.CAUSES and `work`), 0 if unknown."""
        waiting = self.report.waiting
        if waiting is None:
            return 0.0
        return sum(waiting.causes[cause].share for cause in causes if cause in waiting.causes)


@dataclass(frozen=True)
class Advice:
    """A rule's finding: what to change and what that does.

    `evidence` maps a name to "value unit". `predicted` is the factor on batches a second end to end (`SAME` for
    correctness and safety rules that do not change speed). `code` gets the imports it lacks. With `rejected`, the same
    words say why the change would not help, or would hurt. The engine rejects a speed finding whose gain is not certain
    enough by itself. `beside_loading` is the share of a step that the finding is about, beside loading (copies to the
    device, say): training that computes all the time may still win that.
    """

    title: str
    why: str
    evidence: Mapping[str, str]
    predicted: Range
    code: str
    params: Mapping[str, Scalar] = field(default_factory=dict)
    caveat: str | None = None
    measured: float | None = None
    rejected: bool = False
    kind: Kind | None = None  # None: the rule's own
    beside_loading: float = 0.0
    effort: Effort | None = None  # None: the rule's own

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", with_imports(self.code))

    def recommendation(self, rule: str, kind: Kind, effort: Effort | None = None) -> Recommendation:
        return Recommendation(
            rule=rule,
            title=self.title,
            why=self.why,
            evidence=dict(self.evidence),
            predicted=Range(self.predicted.low, self.predicted.mid, self.predicted.high),
            measured=self.measured,
            change=Change(dict(self.params), self.code),
            caveat=self.caveat,
            doc=f"loaderscope rules {rule}",
            kind=self.kind or kind,
            effort=self.effort or effort,
        )


@dataclass(frozen=True)
class Unmeasured:
    """The rule cannot say: what it would need to know was not measured, and how to measure it."""

    reason: str


Outcome = Advice | Unmeasured
