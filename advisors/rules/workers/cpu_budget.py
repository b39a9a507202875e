"""More workers than this process has CPUs.

What it looks for
    More workers than effective CPUs (affinity and container quota, divided by the ranks on this
    host), while fetching computes and all those CPUs are in use, or while the container is
    throttled more than 5 % of the time (THROTTLED).

Why it matters
    Beyond the CPUs there are, workers only take each other's time, and the training process's: its
    own Python code then runs late. A container's quota is enforced by stopping all its threads for
    the rest of each period. torch's own warning compares num_workers with the CPUs of the machine,
    not with the quota or the ranks.

What to change
    The number of workers that the what-if model finds fastest within the budget. Every rank on the
    host shares it.

When not to
    Where fetching mostly waits (for a network or a disk), more workers than CPUs are right: the
    rule num-workers says how many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...case.advice import Outcome, smallest
from ...case.case import Case
from ...case.evidence import cores, cpu_over_wall, hand_over_us, making_us, over_budget
from ...schema.figures import count, figure, percent, us
from ...schema.gains import LEAST_GAIN

NAME = "cpu-budget"
KIND = "speed"
EFFORT = "one argument"

THROTTLED = 0.05


def examine(case: Case) -> Iterator[Outcome]:
    if case.whatif is None or case.cpus is None or not over_budget(case):
        return
    making, cost = making_us(case), hand_over_us(case)
    if making is None or (cost is not None and cost > making):
        return  # then it is about handing over: the rule num-workers
    top = max(1, math.ceil(case.cpus))
    options = {
        n: case.change(num_workers=n) for n in sorted({1, max(1, top // 2), max(1, top - 1), top})
    }
    pick, best = smallest(options)
    if best < LEAST_GAIN:
        return
    now = case.num_workers
    ranks = case.process.local_world_size or 1
    evidence = {
        "workers": f"{now} a rank, {count(ranks)} rank{'s' * (ranks > 1)} on this host",
        "effective CPUs": f"{figure(case.cpus)} cores a rank",
        "making a batch": us(making),
    }
    used, share, throttled = cores(case), cpu_over_wall(case), case.system.throttled_share
    if used is not None:
        evidence["CPU used"] = f"{figure(used.workers + used.main)} cores"
    if share is not None:
        evidence["CPU over wall time of fetching"] = percent(share)
    if throttled is not None:
        evidence["throttled"] = f"{percent(throttled)} of the time"
    held = throttled is not None and throttled > THROTTLED
    why = f"{now} workers and the training process share {figure(case.cpus)} CPUs"
    why += (
        f", and the container was stopped {percent(throttled or 0)} of the time."
        if held
        else ", all in use."
    )
    yield options[pick].advise(
        title=f"Use {pick} worker{'s' * (pick > 1)}: that is what the CPUs carry",
        why=why,
        evidence=evidence,
        caveat="Workers of other loaders and of other jobs in the same container share these CPUs "
        "too.",
    )
