"""Makes the case of one loader: everything the rules may look at."""

from dataclasses import replace

from ...profiler.store.run.run import LoaderRun, ProcessRun, Run
from ..case.case import Case
from ..code.loader_code import loader_code
from ..schema.report_model import LoaderReport, SystemSummary
from ..whatif import TooLittle, WhatIf, workload_of

# From this part of the time on in which the training process waits for a core beside its workers,
# what it computes would be faster if they had nothing to do.
CROWDED = 0.2


def case_of(
    run: Run,
    process: ProcessRun,
    loader: LoaderRun,
    report: LoaderReport,
    system: SystemSummary,
) -> Case:
    """The case of this loader; `report` is its report without advice, whose headroom is
    then that of free cores."""
    whatif, reason = None, None
    try:
        whatif = WhatIf(workload_of(run, process, loader))
    except TooLittle as error:
        reason = str(error)
    if whatif and report.headroom and whatif.workload.beside >= CROWDED:
        report = replace(report, headroom=max(report.headroom, whatif.free()))
    return Case(
        run=run,
        process=process,
        loader=loader,
        report=report,
        system=system,
        host=run.host_of(process),
        write=loader_code,
        whatif=whatif,
        whatif_reason=reason,
    )
