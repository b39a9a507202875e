"""What making batches waits for, by the samples of a run's bursts: whether waits overlap with those
of other workers."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ...profiler.store.run.run import LoaderRun, ProcessRun, Run

# Of fewer samples, shares say too little.
LEAST_SAMPLES = 20
_MAKING = ("fetch", "collate")
_NO_WAIT = ("compute", "core")


@dataclass(frozen=True)
class WaitKinds:
    """Of fetching and collating. `shares` are of the samples that wait for something else than a
    core, by kind (`WAITS` of the profiler's stack_samples.py); "lock" is one of the process's own,
    "shared lock" one that several workers were seen waiting for. `shared_lock` is the share of all
    samples of fetching and collating that wait for such a lock."""

    shares: Mapping[str, float]
    shared_lock: float

    def share(self, *kinds: str) -> float:
        return sum(self.shares.get(kind, 0.0) for kind in kinds)


def wait_kinds(run: Run, process: ProcessRun, loader: LoaderRun) -> WaitKinds | None:
    """None without samples of which it is known. Where several loaders make batches in one process,
    their samples count for each."""
    pids = {process.pid}
    if loader.num_workers:
        workers = process.workers
        pids = set(workers["pid"][workers["loader"] == loader.index].tolist())
    found = Counter[str]()
    for system in run.samplers_of(process):
        for burst in system.bursts:
            for stack in burst.stacks:
                if stack.pid in pids and stack.stage in _MAKING:
                    for wait, count in stack.waits.items():
                        shared = wait.kind == "lock" and wait.processes > 1
                        found["shared lock" if shared else wait.kind] += count
    total = sum(found.values())
    if total < LEAST_SAMPLES:
        return None
    waits = {kind: count for kind, count in found.items() if kind not in _NO_WAIT}
    waiting = sum(waits.values())
    shares = {kind: count / waiting for kind, count in waits.items()}
    return WaitKinds(shares, found["shared lock"] / total)
