"""One program, in the process it is run in."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from . import catalogue, observing, preparing


def perform(job: dict[str, Any]) -> None:
    """Runs it bare or watched; whatever it raises goes on to the interpreter."""
    catalogue.load(job["module"])
    program = catalogue.find(job["program"])
    log = os.open(
        os.path.join(job["folder"], "said"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666
    )
    os.set_inheritable(log, True)
    catalogue.say_into(log)
    reason = preparing.prepare(program.prepared, job["folder"])
    if reason:
        catalogue.say("cannot be run here", reason)
        return
    if job["way"] in (catalogue.STILL, catalogue.TUNED):
        catalogue.be_still()
    observing.begin(program)
    watch = watcher(job["way"], job["module"])
    try:
        program.function(watch)
    finally:
        observing.end(program)


def watcher(way: str, module: str) -> catalogue.Watch:
    """`watch` for this way of running a program of this module; for "bare", "still" and "run", what
    does nothing."""
    call, _, form = way.partition("-")
    if form == "pure":
        os.environ["LOADERSCOPE_PURE"] = "1"
    if call in (catalogue.TUNED, catalogue.RESTLESS, catalogue.DECIDES):
        from loaderscope.tuning.evidence import program

        program.files = lambda: [
            Path(sys.modules[f"harmless.programs.{module}"].__file__ or "")
        ]  # not all programs'
    if call in (catalogue.TUNED, catalogue.RESTLESS):
        from switch_data import restless

        return restless
    if call == catalogue.DECIDES:
        from switch_data import deciding

        return deciding
    if call == "watch":
        import loaderscope

        return loaderscope.watch
    if call == "all":
        import loaderscope

        loaderscope.watch_all()
    return lambda loader: loader
