"""Others handle the run's files while training goes on: clean-up scripts, sync tools, quotas."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from torch.utils.data import DataLoader

from ..catalogue import Watch, program, say
from ..data import Rows, eat


def recorded_files() -> list[Path]:
    return [path for path in Path(os.environ["LOADERSCOPE_DIR"]).rglob("*") if path.is_file()]


def truncate() -> None:
    """Every one, to nothing."""
    for path in recorded_files():
        if path.suffix == ".seg":
            os.truncate(path, 0)


def remove() -> None:
    shutil.rmtree(os.environ["LOADERSCOPE_DIR"], ignore_errors=True)


def replace() -> None:
    for path in recorded_files():
        path.unlink(missing_ok=True)
        path.mkdir(exist_ok=True)


def forbid() -> None:
    files = recorded_files()
    for path in [*files, *{file.parent for file in files}]:
        path.chmod(0)


def overwrite() -> None:
    for path in recorded_files():
        path.write_bytes(os.urandom(64))


def declare(damage: Callable[[], None], workers: int) -> None:
    def run(watch: Watch) -> None:
        loader = watch(DataLoader(Rows(4000), batch_size=4, num_workers=workers))
        total = 0
        for count, batch in enumerate(loader):
            total += int(batch[0].sum())
            if count in (100, 300):
                damage()
        say("total", total)
        eat(watch(DataLoader(Rows(), batch_size=4, num_workers=workers)))

    name = damage.__name__.replace("_", "-")
    program(f"damage/{name}-{workers}", recorded=False, may_speak=True)(run)


for damage in (truncate, remove, replace, forbid, overwrite):
    declare(damage, 0)
for damage in (truncate, remove):
    declare(damage, 1)


@program("damage/sampler-killed", recorded=True)
def the_sampler_is_killed(watch: Watch) -> None:
    import signal

    import psutil

    loader = watch(DataLoader(Rows(pause_s=0.01), batch_size=4))
    for count, _ in enumerate(loader):
        if count in (1, 4):
            runs = os.environ["LOADERSCOPE_DIR"]
            for process in psutil.process_iter(["cmdline"]):
                if process.pid != os.getpid() and any(
                    runs in part for part in process.info["cmdline"] or ()
                ):
                    os.kill(process.pid, signal.SIGKILL)
    eat(loader)
