"""More workers than this process has CPUs.

What it looks for
    More workers than effective CPUs (affinity and container quota, divided by the ranks on this
    host), while fetching computes and all those CPUs are in use, or while the container is
    throttled more than 5 % of the time (THROTTLED).

Why it matters
    Beyond the number of CPUs, workers compete with each other and with the training process, whose
    own Python code then runs late. A container's quota is enforced by stopping all its threads for
    the rest of each period. torch's own warning compares num_workers with the CPUs of the machine,
    not with the quota or the ranks.

What to change
    Use the number of workers that the what-if model finds fastest within the budget. All ranks on
    the host share the budget.

When not to
    If fetching mostly waits (for a network or a disk), more workers than CPUs are right: the rule
    num-workers says how many.
"""

import math

from ...case.advice import Outcomes, smallest
from ...case.case import Case
from ...case.workers import THROTTLED, cores, crowded, making_figures, over_budget
from ...schema.evidence import count, in_cores, percent
from ...schema.gains import LEAST_GAIN

EFFORT = "one argument"
NEEDS = "prediction"


def examine(case: Case) -> Outcomes:
    making = case.making_us
    if case.cpus is None or making is None or not over_budget(case):
        return
    if (case.hand_over_us or 0.0) > making:
        return  # then the hand-over is the problem: the rule num-workers
    top = max(1, math.ceil(case.cpus))
    options = {n: case.change(num_workers=n) for n in {1, top // 2, top - 1, top} - {0}}
    pick, best = smallest(options)
    if best < LEAST_GAIN:
        return
    used, throttled = cores(case), case.system.throttled_share
    why = crowded(case)
    if (throttled or 0.0) > THROTTLED:
        why += f" The container was stopped {percent(throttled)} of the time."
    yield options[pick].advise(
        f"Use {pick} worker{'s' * (pick > 1)}: the CPUs can run no more",
        why,
        {
            "workers per rank": count(case.num_workers),
            "CPU used": in_cores(used.workers + used.main) if used is not None else None,
            "throttled": percent(throttled, "of the time"),
            **making_figures(case),
            "ranks on this host": count(case.process.local_world_size or 1),
        },
        caveat="Workers of other loaders and of other jobs in the same container share these CPUs "
        "too.",
    )
