"""Cases for rules: of a real DataLoader (what is seen of it), of rows made up (what was measured),
and of a what-if model whose answers a test chooses; and what a rule says of a case."""

import ast
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from builders import RunBuilder, epoch_row
from loaderscope.advisors.assemble.build_report import loader_report
from loaderscope.advisors.case.advice import Advice, Outcome, Unmeasured
from loaderscope.advisors.case.case import Case
from loaderscope.advisors.code.loader_code import loader_code
from loaderscope.advisors.rules import rule
from loaderscope.advisors.schema.evidence import Figure
from loaderscope.advisors.schema.report_model import LoaderReport, Range
from loaderscope.advisors.stage_model.summary import summarise
from loaderscope.profiler.record.inspect.describe import describe_loader
from loaderscope.profiler.record.inspect.inspect_loader import inspect_loader
from loaderscope.profiler.store.run.run_reader import open_run

Rows = list[dict[str, Any]]
ANSWER = Range(1.5, 2.0, 2.5)


class FakeWhatIf:
    """Answers with a range, a factor (ten percent to each side) or what a function of the changes
    gives, and remembers what it was asked."""

    baseline_batches_per_s = 100.0
    handover_share = 1.0
    objects_share = released_share = cold_share = busy_beside = unknown_share = 0.0

    def __init__(self, answer: Range | float | Callable[..., float] = ANSWER) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []

    def predict(self, **changes: Any) -> Range:
        self.asked.append(changes)
        if isinstance(self.answer, Range):
            return self.answer
        mid = self.answer(**changes) if callable(self.answer) else self.answer
        return Range(mid * 0.9, mid, mid * 1.1)


SHUFFLED = {"shuffle": True, "sampler_plain": True}


def case_of(
    path: Path,
    *lanes: Rows,
    epochs: Iterable[Mapping[str, Any]] | None = None,
    loader: Any = None,
    config: Mapping[str, Any] | None = None,
    inspection: Mapping[str, Any] | None = None,
    whatif: FakeWhatIf | None = None,
    process: Mapping[str, Any] | None = None,
    system: Mapping[str, Any] | None = None,
    report: Callable[[LoaderReport], LoaderReport] | None = None,
) -> Case:
    """The case of the one loader in a run of these rows, one epoch a lane unless `epochs` are
    given. `loader` is looked at as a recording process would; `system` are the arguments of
    RunBuilder.system."""
    run = RunBuilder(path / "cases")
    run.process(**(process or {})).loader(
        [row for rows in lanes for row in rows],
        epochs=[epoch_row(rows) for rows in lanes] if epochs is None else epochs,
        config={**(SHUFFLED if loader is None else describe_loader(loader)), **(config or {})},
        inspection={**(inspect_loader(loader) if loader is not None else {}), **(inspection or {})},
    )
    if system is not None:
        run.system(**system)
    opened = open_run(run.path)
    recording, own = opened.processes[0], opened.loaders[0]
    summary = summarise(opened)
    found = loader_report(opened, recording, own)
    return Case(
        run=opened,
        process=recording,
        loader=own,
        report=report(found) if report else found,
        system=summary,
        host=opened.systems[0] if opened.systems else None,
        write=loader_code,
        whatif=cast("Any", whatif or FakeWhatIf()),
    )


def workers_config(workers: int = 2, **more: Any) -> dict[str, Any]:
    own = {"prefetch_factor": 2, "in_order": True, "start_method": "fork"}
    return {"num_workers": workers, **own, **more}


def outcomes(name: str, case: Case) -> list[Outcome]:
    """All that the rule says of this case. Whatever that is, its code parses, and its evidence is
    typed figures."""
    found = list(rule(name).examine(case))
    for outcome in found:
        if isinstance(outcome, Advice):
            compile(outcome.code, "advice", "exec")
            assert outcome.title and outcome.why.rstrip(")").endswith("."), outcome
            assert outcome.evidence and all(
                what and isinstance(value, Figure) and str(value)
                for what, value in outcome.evidence.items()
            ), outcome.evidence
    return found


def advice(name: str, case: Case) -> Advice:
    """The one recommendation the rule makes, beside which it says nothing."""
    found = outcomes(name, case)
    assert len(found) == 1 and isinstance(found[0], Advice) and not found[0].rejected, found
    return found[0]


def rejection(name: str, case: Case) -> Advice:
    """The one thing the rule advises against, beside which it says nothing."""
    found = outcomes(name, case)
    assert len(found) == 1 and isinstance(found[0], Advice) and found[0].rejected, found
    return found[0]


def unmeasured(name: str, case: Case) -> str:
    """Why the rule cannot say."""
    found = outcomes(name, case)
    assert len(found) == 1 and isinstance(found[0], Unmeasured), found
    return found[0].reason


def asked(case: Case) -> list[dict[str, Any]]:
    """What the rule asked the case's made-up model."""
    return cast("FakeWhatIf", case.whatif).asked


def shown(advice: Advice, *names: str) -> tuple[str, ...]:
    """These figures of the evidence, as they are printed."""
    return tuple(str(advice.evidence[name]) for name in names)


def ran(code: str, **names: Any) -> dict[str, Any]:
    """What is defined after code was pasted where these names are."""
    exec(compile(code, "<pasted>", "exec"), names)
    return names


def arguments(code: str) -> dict[str, Any]:
    """The keyword arguments of the one DataLoader call in a piece of code, as source."""
    (call,) = (
        node
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "DataLoader"
    )
    return {keyword.arg or "**": ast.unparse(keyword.value) for keyword in call.keywords}
