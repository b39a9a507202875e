"""Predicts what a change would do to the training loop."""

import math
import os
from dataclasses import replace
from typing import Any

import numpy as np

from ...profiler.base.errors import UsageError
from ...profiler.store.run.run import LoaderRun, ProcessRun, Run
from ...profiler.store.run.run_reader import open_run
from ..schema.report_model import Range
from . import costs
from .accuracy import MISFIT_SHARE, less_sure, moved, narrowed, ranged, ratio_error
from .changes import Plans, plans
from .pipeline import Contention, Outcome, drawn_rows, released, run_plan
from .recorded import TooLittle
from .sharing import Sharing
from .workload import Plan, Workload, workload_of

# Waiting for a core is fitted: the share of idle time that makes the simulated work as long as the
# measured work.
TRIES = 5
CLOSE = 0.02
# Loading cannot be faster than free: a prediction stays below that, but for the loop's own spread.
OVER_FREE = 1.02
# Below this part of a step, computing hardly matters.
COMPUTES = 0.2
# If main takes batches from workers for more than this part of the time, that limits the loop.
MOSTLY_HAND_OVER = 0.4
# Changes that alter its cost.
OF_WORKERS = frozenset({"to_workers", "from_workers", "num_workers", "prefetch_factor"})
# Where these change, it matters what workers share.
MORE_OF_THEM = frozenset({"to_workers", "num_workers"})
# Workers gain less by this part of the share of cores that other programs use: a process that
# shares a core has half of it, and is seldom moved to a free one in so short a time (measured on
# two cores with one busy, for batches of 0.5 to 60 ms: 0.75 of the gain on free cores, 0.6 to 1.0).
SHARED_CORE = 0.5
# Less is noise.
OTHERS_FROM = 0.1
# A loop that uses more cores than this computes with several threads.
SEVERAL_THREADS = 1.2


class WhatIf:
    """Predictions for one loader. Deterministic: the same workload and changes give the same
    range."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self._rows = drawn_rows(workload)
        self._contention = Contention()
        self._unchanged = self._fitted()

    @property
    def baseline_batches_per_s(self) -> float:
        """Batches a second as measured, epoch starts included (of the epochs after the first)."""
        return 1e9 / max(1.0, self.workload.measured_batch_ns)

    def predict(self, **changes: Any) -> Range:
        """The factor on batches a second of the whole loop, epoch starts included; 1.0 is no
        change.

        DataLoader arguments by their names (`num_workers=4`, `multiprocessing_context="spawn"`),
        factors on stages (`fetch=0.5`: half the time), `fetch_us`, `collate_us` and `index_us` as a
        new mean time a batch, and `cpus`, cores. On a device: `non_blocking` copies, copies on a
        stream of their own (`copy_stream`), and whether the end of each step is waited for
        (`synchronous`). A pair (low, high) says that the change's own effect is uncertain. A stage
        that takes no time in this run changes nothing. Raises UsageError for an unknown name or an
        invalid value.
        """
        asked = plans(self.workload, changes, self._contention.fetch)
        if not asked.kinds:
            return Range(1.0, 1.0, 1.0)
        outcome = self._run(asked.middle)
        mid = self._factor(asked.middle, outcome)
        low, high = (
            mid if plan == asked.middle else self._factor(plan, self._run(plan))
            for plan in (asked.worst, asked.best)
        )
        if asked.kinds & MORE_OF_THEM and not self.workload.sharing.certain:
            low = min(low, self._at_worst(asked.worst))
        error = ratio_error(self._unchanged.blocks_ns, outcome.blocks_ns)
        kinds = asked.kinds | self._more_kinds(asked, outcome)
        found = ranged(low, mid, high, kinds, error, self.misfit)
        top = most = self._free(asked.best)
        if self.workload.on_device is None and not asked.middle.num_workers:
            most = less_sure(top)
        return Range(min(found.low, top), min(found.mid, top), min(found.high, most))

    @property
    def misfit(self) -> float:
        """The unchanged loop's simulated speed over its measured one: 1.0 where the model fits."""
        w, found = self.workload, self._unchanged
        measured, simulated = w.measured_inner_ns, found.inner_ns
        if w.epoch_batches <= len(self._rows):  # whole epochs were simulated
            measured, simulated = w.measured_batch_ns, found.batch_ns
        return max(1e-3, measured) / max(1e-3, simulated)

    @property
    def handover_share(self) -> float:
        """Of the time of packing and unpacking, what they take by themselves: all that making
        batches, which takes the interpreter and the cores meanwhile, cannot explain."""
        w = self.workload
        measured, modelled = self._handed_ns
        beyond = min(max(0.0, measured - modelled), float(w.cpu_ns.mean()))
        return 1 - beyond / measured if measured else 1.0

    @property
    def objects_share(self) -> float:
        """Of the time of packing and unpacking, what neither tensors of that number and size nor
        making batches meanwhile can explain: objects that are pickled."""
        w = self.workload
        measured, modelled = self._handed_ns
        if not measured:
            return 0.0
        objects = max(0.0, w.pickled_bytes - costs.HANDLE_BYTES * (1 + w.tensors))
        most = costs.OBJECTS_MOST_NS_PER_BYTE * objects / measured
        return max(0.0, min(most, self.handover_share - modelled / measured))

    @property
    def _handed_ns(self) -> tuple[float, float]:
        """Packing and unpacking a batch, as measured and by the number and size of its tensors."""
        w = self.workload
        modelled = w.handover.pack_ns + w.handover.unpack_ns
        return float(w.pack_ns.mean() + w.unpack_ns.mean()), modelled

    @property
    def busy_beside(self) -> float:
        """Cores that other programs use while this loop runs without workers; 0 if that is
        noise."""
        w = self.workload
        return w.others * w.plan.cpus if w.others > OTHERS_FROM else 0.0

    def free(self, **changes: Any) -> float:
        """The factor on batches a second if loading cost nothing, and these changes were made."""
        return self._free(plans(self.workload, changes, self._contention.fetch).middle) / OVER_FREE

    @property
    def released_share(self) -> float:
        """The share of a step that the loop computes only because its batches come from workers."""
        w = self.workload
        kept, _ = released(w, replace(w.plan, num_workers=0))
        return (1.0 - kept) * self._computing_share

    @property
    def _computing_share(self) -> float:
        w = self.workload
        return float(w.compute_ns.mean()) / max(1.0, float(w.step_ns.mean()))

    def _factor(self, plan: Plan, changed: Outcome) -> float:
        now, then = self._unchanged.batch_ns, max(1e-3, changed.batch_ns)
        if not self.workload.num_workers and not plan.num_workers:
            # What the model does not explain is none of the stages that change, and stays.
            rest = max(0.0, self.misfit - 1) * now
            return (now + rest) / (then + rest)
        # What the model does not explain is hand-over, and goes entirely with the workers.
        share = 1.0 if self.workload.num_workers and not plan.num_workers else MISFIT_SHARE
        found = moved(now / then, self.misfit, share)
        if self._beside_others(plan):
            found *= 1.0 - SHARED_CORE * self.workload.others
        return found

    @property
    def unknown_share(self) -> float:
        """The share of making a batch in which it waits, and it is not known what for."""
        return self.workload.sharing.unknown * self._idle_share

    @property
    def _idle_share(self) -> float:
        w = self.workload
        idle = float(w.idle_ns.mean())
        return idle / max(1.0, idle + float(w.cpu_ns.mean()))

    def _at_worst(self, plan: Plan) -> float:
        """The factor if all that may be shared among workers is."""
        w = self.workload
        worst = w.sharing.at_worst(w.num_workers, self._idle_share)
        unchanged, changed = (self._run(each, worst) for each in (w.plan, plan))
        return self._factor(plan, changed) * unchanged.batch_ns / self._unchanged.batch_ns

    def _beside_others(self, plan: Plan) -> bool:
        """Whether there would be workers, which share cores with other programs."""
        return bool(plan.num_workers and not self.workload.num_workers and self.busy_beside)

    def _more_kinds(self, asked: Plans, outcome: Outcome) -> set[str]:
        """What else makes the change less certain."""
        w, plan, kinds = self.workload, asked.middle, set[str]()
        if self._beside_others(plan):
            kinds.add("others")
        # CPU time of fetching's threads in main counts as computing: where computing is short,
        # nothing is known of it.
        several = (w.compute_cores or 1.0) > SEVERAL_THREADS and self._computing_share > COMPUTES
        if several and plan.num_workers != w.num_workers:
            kinds.add("intra_op")
        taking = max(x.receive_ns / max(1.0, x.batch_ns) for x in (self._unchanged, outcome))
        if taking > MOSTLY_HAND_OVER and asked.kinds & OF_WORKERS:
            kinds.add("hand-over")
        return kinds

    def _run(self, plan: Plan, sharing: Sharing | None = None) -> Outcome:
        """`sharing`: by default as measured."""
        w = self.workload
        return run_plan(w, plan, self._rows, self._contention, sharing or w.sharing)

    def _free(self, plan: Plan) -> float:
        """The factor if loading cost nothing at all."""
        w = self.workload
        if w.on_device is not None and plan.together is not None:
            measured = w.measured_batch_ns
            free = w.on_device.free_ns(plan.together, plan.factor("h2d"), plan.factor("compute"))
        else:
            # Computing is averaged over all epochs, the measured time is not.
            measured = max(w.measured_batch_ns, w.measured_inner_ns)
            idle = w.compute_ns * w.compute_idle_share * self._contention.compute
            free = float((w.compute_ns * w.own_cores + idle).mean())
            free -= float(w.h2d_ns.mean()) * max(0.0, 1 - plan.factor("h2d"))
            free *= plan.factor("compute") * released(w, plan)[0]
        return OVER_FREE * measured / free if free > 0 else math.inf

    def _fitted(self) -> Outcome:
        """The outcome of the unchanged loop, with the contention that makes simulated work and
        computing as long as measured."""
        w, rows = self.workload, self._rows
        found = self._run(w.plan)
        if not w.num_workers:
            return found
        idle = float(w.idle_ns[rows].mean())
        work = idle + float(w.cpu_ns[rows].mean())
        computing = float(w.compute_ns[rows].mean())
        compute = math.inf if w.on_device is not None else computing
        # Packing keeps a worker from its next task: a part of the simulated work alone.
        own = float(np.minimum(w.pack_ns, w.handover.pack_ns)[rows].mean())
        for _ in range(TRIES):
            over_work, over_compute = found.work_ns - own - work, found.compute_ns - compute
            better = Contention(
                _less(self._contention.fetch, over_work, idle),
                _less(self._contention.compute, over_compute, computing * w.compute_idle_share),
            )
            close = over_work <= CLOSE * work and over_compute <= CLOSE * compute
            if close or better == self._contention:
                break
            self._contention = better
            found = self._run(w.plan)
        return found


def _less(share: float, over_ns: float, idle_ns: float) -> float:
    """The share of idle time that removes the excess."""
    return min(1.0, max(0.0, share - over_ns / idle_ns)) if idle_ns > 0 else share


def predict(
    run: Run | str | os.PathLike[str], loader: int | str | None = None, **changes: Any
) -> Range:
    """What these changes would do to a recorded loop: a factor on its batches a second, end to end.

        loaderscope.predict("latest", num_workers=4)
        loaderscope.predict(run, loader="train", fetch=0.5)

    `run` is a `Run`, or anything `open_run` takes. `loader` is a loader's name or its place in
    `run.loaders`; without it, the loader with the most batches. `changes` are those of
    `WhatIf.predict`. The true factor should lie between `low` and `high` four times in five. Raises
    UsageError for an invalid change or loader, and where too little was measured;
    RunNotFound and RunUnreadable as `open_run` does.
    """
    opened = run if isinstance(run, Run) else open_run(run)
    whatif = whatif_of(opened, *chosen_of(opened, loader))
    return narrowed(whatif.predict(**changes))


def whatif_of(run: Run, process: ProcessRun, loader: LoaderRun) -> WhatIf:
    """The model of a recorded loop. Raises UsageError where too little was measured."""
    try:
        return WhatIf(workload_of(run, process, loader.as_coded()))
    except TooLittle as error:
        raise UsageError(f"nothing can be predicted for {loader.name}: {error}") from error


def chosen_of(run: Run, which: int | str | None) -> tuple[ProcessRun, LoaderRun]:
    """The loader of this name or place, else that with the most batches. Raises UsageError."""
    found = [(process, loader) for process in run.processes for loader in process.loaders]
    if not found:
        raise UsageError("this run has recorded no loader: nothing can be predicted")
    chosen = [
        pair
        for place, pair in enumerate(found)
        if which is None or (which in (pair[1].name, place) and not isinstance(which, bool))
    ]
    if chosen:
        return max(chosen, key=lambda pair: pair[1].count)
    names = ", ".join(f"{place} ({loader.name})" for place, (_, loader) in enumerate(found[:8]))
    raise UsageError(f"there is no loader {which!r} in this run: it has {names}")
