"""A run with everything in it, and a report with every kind of advice, for tests of formats."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from builders import MS, RUN_ID, T0, RunBuilder, epoch_row
from inside_samples import CODE, STORAGE, hostile_code, hostile_storage
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.evidence import in_cores, measured, us
from loaderscope.advisors.schema.report_model import Change, Range, Recommendation, Report
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run

SECOND = 10**9
WORKERS = 4
EVIL = "<script>alert('owned')</script><b>&amp;|`*x*`"
EVIL_CODE = "```\n</script><script>alert(1)</script>\n````\nprint('|')"


def pipeline(
    batches: int,
    compute_ms: float = 30.0,
    fetch_ms: float = 160.0,
    seed: int = 1,
    start_ns: int = T0,
    epoch: int = 0,
    device: bool = True,
) -> list[dict[str, Any]]:
    """Rows of a loop over WORKERS workers that run ahead: the times add up as they do in a real
    loader. Without a device, nothing is pinned."""
    random = np.random.default_rng(seed)
    free = [start_ns + (50 + 10 * w) * MS for w in range(WORKERS)]
    t, pinned_until, rows = start_ns, start_ns, []
    for n in range(batches):
        w = n % WORKERS
        fetch = round(fetch_ms * MS * random.lognormal(0, 0.25))
        collate, pack, unpack, pin = 4 * MS, 900_000, 700_000, 1_100_000 * device
        begun = free[w]
        made = begun + fetch + collate
        free[w] = max(made, t - WORKERS * 40 * MS) + 50_000
        sent = made + pack
        pinned_until = max(sent, pinned_until) + unpack + pin
        handed = max(t, pinned_until) + 60_000
        compute = round(compute_ms * MS * random.normal(1, 0.02))
        row = {"t_ns": t, "wait_ns": handed - t, "samples": 32, "epoch": epoch, "index_ns": 15_000}
        row |= {"fetch_ns": fetch, "collate_ns": collate, "t_fetch_ns": begun, "pack_ns": pack}
        row |= {"queued_ns": handed - sent - unpack - pin, "unpack_ns": unpack, "task": n}
        row |= {"worker": w, "worker_pid": 4101 + w, "outstanding": 8}
        rows.append({**row, "ready": int(handed - pinned_until > 100_000)})
        if n % 16 == 0:  # looked at in detail
            rows[-1] |= {"fetch_cpu_ns": fetch // 3, "collate_cpu_ns": collate}
            rows[-1] |= {"bytes": 19_267_584, "own_ns": 6000.0}
        if device:
            copied = {"pin_ns": pin, "h2d_ns": 2 * MS, "h2d_host_ns": 60_000}
            busy = {"compute_device_ns": round(compute * 0.8)}
            rows[-1] |= {**copied, **busy, "stall_ns": round((handed - t) * 0.8)}
        t = handed + compute
    rows[-1]["compute_ns"] = compute
    return rows


def system_rows(seconds: int) -> dict[str, list[dict[str, Any]]]:
    """What the sampler of a machine with a GPU records in so many seconds."""
    found: dict[str, list[dict[str, Any]]] = {"machine": [], "process": [], "gpu": []}
    for n in range(seconds):
        t_ns = T0 + n * SECOND
        memory = {"mem_total_bytes": 64 * 10**9, "mem_available_bytes": 41 * 10**9 - n * 10**8}
        memory |= {"shm_total_bytes": 32 * 10**9, "shm_used_bytes": 310_000_000}
        memory |= {"page_cache_bytes": 9 * 10**9 + n * 10**8}
        disk = {"disk_read_bytes": n * 180_000_000, "disk_write_bytes": n * 1_000_000}
        cpu = {"cpu_idle_pct": 35.0 - n % 7, "cpu_iowait_pct": 12.0 + n % 3}
        own = {"sampler_cpu_ns": n * 9 * MS, "sampler_rss_bytes": 24_100_000}
        found["machine"].append({"t_ns": t_ns, **memory, **disk, **cpu, **own})
        used = {"cpu_user_ns": n * 600 * MS, "cpu_system_ns": n * 50 * MS}
        used |= {"read_all_bytes": n * 50_000_000, "read_disk_bytes": n * 43_000_000}
        for w in range(WORKERS + 1):
            who = {"pid": 4100 + w if w else 4000, "role": min(w, 1), "worker": w - 1}
            found["process"].append({"t_ns": t_ns, **who, **used})
        memory = {"mem_used_bytes": 31 * 10**9, "mem_total_bytes": 141 * 10**9}
        gpu = {"gpu": 0, "util_pct": 58 + n % 5, "power_mw": 310_000, **memory}
        found["gpu"].append({"t_ns": t_ns, **gpu})
    return found


def recorded(runs: Path, rows: list[dict[str, Any]], id_: str = RUN_ID, **loader: Any) -> Run:
    """A run of one loader that handed over these batches."""
    builder = RunBuilder(runs, id_)
    builder.process().loader(rows, epochs=[epoch_row(rows)], **loader)
    return open_run(builder.path)


def reported(run: Run) -> Report:
    """Its report, without advice."""
    return build_report(run, advice=False)


def absurd(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With times that no batch takes, and one of a worker that is no other's."""
    rows[3].update(t_ns=2**62, wait_ns=2**62)
    rows[4].update(fetch_ns=2**62, t_fetch_ns=5, worker=3, queued_ns=2**61)
    return rows


def full_run(runs: Path, id_: str = RUN_ID, batches: int = 300, **pipeline_facts: Any) -> Run:
    """Training with workers, a pin thread and a device, then a short validation without workers."""
    builder = RunBuilder(runs, id_)
    rows = pipeline(batches, **pipeline_facts)
    config = {"num_workers": WORKERS, "prefetch_factor": 2, "pin_memory": True, "batch_size": 32}
    epochs = [epoch_row(rows, startup_ms=1400)]
    process = builder.process(device="NVIDIA H200", affinity=16)
    process.loader(rows, epochs=epochs, name="ImageNet", config=config)
    gpus = [{"index": 0, "name": "NVIDIA H200"}]
    builder.system(**system_rows(20), gpus=gpus, cores_logical=16, affinity=16)
    return open_run(builder.path)


def advice(title: str = "Use 8 workers", **changed: Any) -> Recommendation:
    code = "loader = DataLoader(\n    dataset,\n    num_workers=8,\n)"
    made = Recommendation(
        rule="num-workers",
        title=title,
        why="Fetching takes 160 ms a batch and four workers make 24 batches/s; the loop could "
        "use 33.",
        evidence=measured({"fetch": us(160_000, "a batch"), "effective CPUs": in_cores(16)}),
        predicted=Range(1.22, 1.35, 1.41),
        measured=None,
        change=Change({"num_workers": 8}, code),
        caveat="Each worker holds 120 MB.",
        doc="loaderscope rules num-workers",
    )
    return replace(made, **changed)


def full_report(run: Run) -> Report:
    """The run's report with advice of every kind put in by hand."""
    report, none = build_report(run, advice=False), Range(1.0, 1.0, 1.0)
    part: dict[str, Any] = {"rule": "distributed-sampler", "kind": "correctness"}
    part |= {"predicted": none, "caveat": None, "doc": None}
    room = {"rule": "shared-memory", "kind": "safety", "predicted": none, "measured": 1.02}
    ahead = {"rule": "prefetch-factor", "predicted": Range(0.98, 1.0, 1.01)}
    unknown = {"page-cache": "whether reads came from disk: no samples of the worker processes"}
    loader = replace(
        report.loaders[0],
        recommendations=(
            advice(),
            advice("Give every rank its own part", **part),
            advice("Leave room in /dev/shm", **room),
        ),
        rejected=(advice("Raise prefetch_factor", **ahead),),
        unmeasured=unknown,
        code=CODE,
        storage=STORAGE,
    )
    return replace(report, loaders=(loader, *report.loaders[1:]))


def hostile_report(report: Report) -> Report:
    """Every text that may come from elsewhere made of markup."""
    texts: dict[str, Any] = dict.fromkeys(("rule", "why", "caveat", "doc"), EVIL)
    change = Change({EVIL: EVIL}, EVIL_CODE)
    bad = advice(EVIL, evidence=measured({EVIL: EVIL}), change=change, **texts)
    loaders = tuple(
        replace(
            each,
            name=EVIL,
            config={**each.config, EVIL: EVIL, "dataset": "<script>"},
            notes=(EVIL, f"- {EVIL}\n# x"),
            recommendations=(bad,),
            rejected=(bad,),
            unmeasured={EVIL: EVIL},
            basis=replace(each.basis, sentence=EVIL),
            code=hostile_code(EVIL),
            storage=hostile_storage(EVIL),
        )
        for each in report.loaders
    )
    names = dict.fromkeys(("id", "host", "platform"), EVIL)
    run = replace(report.run, argv=(EVIL, "@someone", "#1"), devices=(EVIL,), **names)
    system = replace(report.system, reasons={"system": EVIL, "gpus": EVIL})
    return replace(report, loaders=loaders, run=run, system=system, notes=(EVIL,))
