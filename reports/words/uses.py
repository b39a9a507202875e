"""What a loader is for, and where and how its run went, in a few words."""

from __future__ import annotations

from ...advisors.code.dialects import NAMES
from ...advisors.schema.report_model import LoaderReport, RunInfo, Scalar
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import LoaderRun


def use_of(loader: LoaderReport | LoaderRun) -> str | None:
    """'training (train.py:41), Lightning, made at data.py:12', as far as it is known."""
    phase, place, framework = (loader.config.get(name) for name in ("phase", "place", "framework"))
    said = [clean(phase, 60)] if isinstance(phase, str) else []
    said += [f"({clean(place, 60)})"] if place else []
    by = NAMES.get(framework) if isinstance(framework, str) else None
    at = loader.made_at if isinstance(loader, LoaderReport) else loader.made.place
    made = f"made at {clean(at, 60)}" if at else None
    return ", ".join(filter(None, (" ".join(said), by, made))) or None


def run_facts(run: RunInfo) -> dict[str, Scalar]:
    """What two runs may differ in besides their loaders."""
    return {
        "command": " ".join(run.argv) or None,
        "host": run.host,
        "devices": ", ".join(run.devices) or None,
        "processes": run.processes,
        "world size": run.world_size,
        "platform": run.platform,
        "Python": run.python,
        "torch": run.torch,
        "Loaderscope": run.loaderscope,
    }
