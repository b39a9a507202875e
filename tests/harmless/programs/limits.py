"""Little of everything: where recording cannot go on it says so in one line, and training goes
on."""

from __future__ import annotations

from torch.utils.data import DataLoader

from ..catalogue import Watch, program, say
from ..data import Rows, eat


def long(watch: Watch, workers: int = 0) -> None:
    """Some 3,000 batches: more than a first segment holds."""
    loader = watch(DataLoader(list(range(3000)), batch_size=1, num_workers=workers))
    say("sum", sum(int(batch) for batch in loader))


def short(watch: Watch, workers: int = 0) -> None:
    eat(watch(DataLoader(Rows(), batch_size=4, num_workers=workers)))
    eat(watch(DataLoader(Rows(), batch_size=3, num_workers=workers)))


def declare(what: str, recorded: bool = False) -> None:
    def long_without_workers(watch: Watch) -> None:
        long(watch)

    def short_with_workers(watch: Watch) -> None:
        try:
            short(watch, 2)
        except (OSError, RuntimeError) as error:
            say("error", [type(error).__name__, getattr(error, "errno", None)])

    name = what.replace(" ", "-")
    # Where addresses are short, malloc makes do with many small maps, more or fewer of them by
    # chance.
    unjudged = ("end maps",) if what == "little memory" else ()
    program(
        f"limits/{name}-0", prepared=what, recorded=recorded, may_speak=True, unjudged=unjudged
    )(long_without_workers)
    if what == "few descriptors":
        return  # torch itself fails or hangs then, in another way each time
    program(f"limits/{name}-2", prepared=what, recorded=False, may_speak=True, unjudged=unjudged)(
        short_with_workers
    )


for what in (
    "few descriptors",
    "few processes",
    "little memory",
    "small files",
    "full disk",
    "no inodes",
):
    declare(what)
declare("nobody", recorded=True)


# Torch complains there, too, of modules it cannot import.
@program("limits/descriptors-run-out", recorded=False, unjudged=("stderr",))
def descriptors_run_out(watch: Watch) -> None:
    """All taken by the program itself before it trains, and given back half way."""
    import os
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    taken = []
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    say("taken", len(taken))
    eat(watch(DataLoader(Rows(), batch_size=4)))
    for fd in taken:
        os.close(fd)
    eat(watch(DataLoader(Rows(), batch_size=4)))


@program("limits/small-shm", prepared="small shm")
def small_shared_memory(watch: Watch) -> None:
    """A container's small /dev/shm is the workers' alone."""
    short(watch, 2)
