"""What a loader's waiting is made of, in words."""

from __future__ import annotations

from ...advisors.schema.report_model import Doing, Finding, LoaderReport
from ...profiler.base.metadata import clean
from .units import factor, percent

STAGES = {
    "index": "drawing indices",
    "fetch": "fetching samples",
    "collate": "collating",
    "startup": "starting workers",
}
LEAST_GAIN = 1.05  # of what would be free, to be worth saying


# What a thread does that waits, by `WAITS`; what computes says nothing of itself.
DOES = {
    "core": "waits for a core",
    "disk": "waits for the disk",
    "network": "waits for the network",
    "lock": "waits for a lock",
    "threads": "waits for threads of its own, which compute",
    "sleep": "sleeps",
    "child": "waits for a program that computes",
    "child waits": "waits for a program that waits itself",
    "gil": "waits for the interpreter (GIL)",
    "fault": "waits for memory",
    "pipe": "waits for another process (a pipe)",
    "process": "waits for another process (a socket)",
    "server": "waits for a process of this host that computes",
    "server waits": "waits for a process of this host that waits itself",
    "device": "waits for a device",
}
# The same after "waiting for".
WAITED_FOR = {kind: what.removeprefix("waits for ") for kind, what in DOES.items()}
WAITED_FOR["sleep"] = "a timer"
LEAST_DOING = 0.1  # of a finding, to be said


def doing_text(found: Doing) -> str:
    """'waits for a lock shared by 4 workers, 93 %'"""
    what = DOES.get(found.kind, found.kind)
    if found.processes > 1:
        what += f" shared by {found.processes} workers"
    if found.what is not None:
        what += f" {clean(found.what, 60)}"
    return f"{what}, {percent(found.share)}"


def finding_text(found: Finding) -> str:
    """'`gc.collect()` data.py:610, 100 % of fetch; without it ×628'"""
    if found.text is None:
        what = f"{STAGES.get(found.stage, found.stage)}, {percent(found.waiting_share)} of the wait"
    else:
        code = found.place is not None
        what = f"`{clean(found.text, 60)}`" if code else clean(found.text, 60)
        what += f" {clean(found.place, 60)}" if code else ""
        what += f" ({clean(found.call, 60)})" if found.call is not None else ""
        what += f", {percent(found.share.mid)} of {found.stage}"
    waits = [each for each in found.doing if each.kind in DOES and each.share >= LEAST_DOING]
    if waits:
        what += f" ({'; '.join(map(doing_text, waits[:2]))})"
    if found.factor is not None and found.factor.mid >= LEAST_GAIN:
        what += f"; without it {factor(found.factor.mid)}"
    return what


def what_costs(loader: LoaderReport) -> str | None:
    """'What costs: …': the leading finding. None where nothing stands out."""
    leading = loader.findings[0] if loader.findings else None
    if leading is None or (leading.text is None and len(loader.findings) == 1):
        return None  # the stages say as much
    return f"What costs: {finding_text(leading)}."
