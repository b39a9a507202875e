"""What must not stand in one report: statements that contradict each other, or that say nothing."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from loaderscope.advisors.assemble.engine import COMPUTING, MORE_THAN_FREE, WORTH
from loaderscope.advisors.schema.gains import LEAST_GAIN
from loaderscope.advisors.schema.report_model import LoaderReport, Report
from loaderscope.reports.markdown.draw import render_markdown
from loaderscope.reports.text.text import render_brief, render_text
from loaderscope.reports.words.advice_words import may_help
from loaderscope.reports.words.inside import what_costs
from loaderscope.reports.words.sentences import headroom_sentence, nothing_to_change
from loaderscope.reports.words.units import percent

LITTLE, MUCH = 1.2, 1.3
# Advice about more than loading.
OF_THE_DEVICE = ("h2d-copies", "h2d-dtype", "pin-memory", "batch-size", "host-sync")
STEADY = 100  # batches, from which the starts of a run hardly count
NO_ADVICE = "No change is certain"


def contradictions(report: Report) -> list[str]:
    """All that is wrong with a report, by itself and as it is shown; nothing where it is right."""
    found = [
        f"{each.name}: {wrong}"
        for each in report.loaders
        for rule in _OF_A_LOADER
        for wrong in rule(each)
    ]
    for render in (render_brief, render_text, render_markdown):
        text = re.sub(r"\s+", " ", render(report))
        found += [f"{render.__name__}: {wrong}" for wrong in _of_a_text(report, text)]
    return found


def _verdict_and_headroom(loader: LoaderReport) -> Iterator[str]:
    """Much to gain, and little: whatever the words."""
    sentence, headroom = loader.basis.sentence, loader.headroom
    starts = "every start" in headroom_sentence(loader) if loader.verdict != "too-short" else False
    if headroom is None or loader.verdict == "too-short":
        return
    if re.search("little|not what limits", sentence) and headroom > MUCH and not starts:
        yield f"{sentence!r} beside a headroom of {headroom:.2f}"
    if "would speed up" in sentence and headroom < LITTLE:
        yield f"{sentence!r} beside a headroom of {headroom:.2f}"


def _no_gain_above_free_loading(loader: LoaderReport) -> Iterator[str]:
    for each in loader.recommendations:
        p = each.predicted
        if not 0 <= p.low <= p.mid <= p.high:
            yield f"{each.title}: {p} is no range"
        said = each.rule in OF_THE_DEVICE or MORE_THAN_FREE in each.why
        most = loader.headroom if loader.headroom is not None else p.high
        if each.kind == "speed" and not said and p.high > most * 1.001:
            yield f"{each.title}: {p.high:.2f} beside a headroom of {loader.headroom:.2f}"


def _plan_and_advice(loader: LoaderReport) -> Iterator[str]:
    plan = loader.plan
    if (plan is None) != (not loader.recommendations):
        yield "a plan without advice, or advice without a plan"
    if plan is None:
        return
    planned = sorted(each.advice for each in (*plan.steps, *plan.left_out))
    if planned != list(range(len(loader.recommendations))):
        yield "a recommendation is not in the plan, or twice"
    speed = [each for each in plan.steps if loader.recommendations[each.advice].kind == "speed"]
    if speed and speed[0].together != loader.recommendations[speed[0].advice].predicted:
        yield "the first step promises one thing by itself and another in the plan"
    reached = [each.together.mid for each in speed]
    if reached != sorted(reached):
        yield f"steps that take back what others gained: {reached}"
    last = speed[-1].computing_share if speed else None
    if plan.stop and last is not None:
        told = [float(each) for each in re.findall(r"([\d.]+) %", plan.stop)]
        true = (last if "computes" in plan.stop else 1 - last) * 100
        if any(abs(each - true) > 1 for each in told):
            yield f"{plan.stop!r} where the loop computes {last:.0%}"


def _computing_and_waiting(loader: LoaderReport) -> Iterator[str]:
    """'computing' said of fetching that mostly waits, and the other way round."""
    waiting = loader.waiting
    if waiting is None or waiting.fetch_idle_share is None:
        return
    idle = waiting.fetch_idle_share - (waiting.fetch_core_wait_share or 0.0)
    for each in (*loader.recommendations, *loader.rejected):
        if "to make, computing" in each.why and idle > 0.5:
            yield f"{each.title}: computing, where {idle:.0%} of fetch waits"
        if "mostly waiting" in each.why and idle < 0.5:
            yield f"{each.title}: waiting, where {idle:.0%} of fetch waits"


def _reading(loader: LoaderReport) -> Iterator[str]:
    """One share of reading and of decoding in advice and in the summary; nothing of what lies in
    memory is read."""
    storage = loader.storage
    if storage is None:
        return
    for name, share in (("reading", storage.reading_share), ("decoding", storage.decoding_share)):
        for each in (*loader.recommendations, *loader.rejected):
            if each.rule != "storage-format" or share is None:
                continue
            for told in re.findall(rf"(?i){name}(?: them)? (?:is )?([\d.<]+ %)", each.why):
                if told != percent(share):
                    yield f"{each.title}: {name} {told} beside {percent(share)}"
    read = (storage.opens_per_sample, storage.read_bytes_per_sample, storage.disk_bytes_per_sample)
    if not any((*read, storage.containers)) and (storage.reading_share or 0.0) > 0.01:
        yield f"reading is {percent(storage.reading_share)} of fetch, and nothing was read"


def _stacks(loader: LoaderReport) -> Iterator[str]:
    seen = loader.code is not None and any(stage.samples for stage in loader.code.stages.values())
    if seen and "stacks were not recorded" in loader.unmeasured.get("hot-function", ""):
        yield "stacks were not recorded, and are shown"


def _no_more_than_the_part_saved(loader: LoaderReport) -> Iterator[str]:
    """By Amdahl: without workers, what goes frees at most its part of the loop. (Much more than a
    half of it leaves a loop that has the caches for itself, and is faster than its parts were.)"""
    if loader.config.get("num_workers") != 0 or loader.headroom is None:
        return
    if loader.basis.steady_batches < STEADY:
        return
    for each in loader.findings:
        saved = min(1.0, each.waiting_share * each.share.high / max(1e-9, each.share.mid))
        most = 1 / max(1e-9, 1 - loader.lost_share * saved)
        if each.factor is not None and most < 2 and each.factor.mid > 1.1 * most:
            yield f"{each.text or each.stage}: ×{each.factor.mid:.2f} of what can bring ×{most:.2f}"


def _what_is_not_advised(loader: LoaderReport) -> Iterator[str]:
    """No gain beside a refusal, and no certain gain beside a doubt."""
    for each in loader.rejected:
        if each.kind != "speed" or each.measured_range is not None:
            continue
        if "would not help" in each.title and each.predicted.mid > LEAST_GAIN:
            yield f"{each.title}: {each.predicted}"
    candidate = may_help(loader)
    if candidate is not None and candidate.predicted.low > LEAST_GAIN:
        yield f"{NO_ADVICE}, and {candidate.title} is: {candidate.predicted}"


def _what_costs_is_named(loader: LoaderReport) -> Iterator[str]:
    """Whoever waits learns what for; and what to do, or that nothing was found."""
    asked = loader.recommendations or loader.rejected or loader.unmeasured
    if loader.verdict != "input-bound" or not asked:
        return
    if what_costs(loader) is None:
        yield "input-bound, and nothing says by what"
    if not loader.recommendations and nothing_to_change(loader) is None:
        yield "input-bound, and neither advice nor a word that there is none"


def _little_of_a_loop_that_computes(loader: LoaderReport) -> Iterator[str]:
    """A loop that computes 85 % of its time is not told to change for less than a tenth."""
    if loader.headroom is None or loader.headroom >= 1 / COMPUTING:
        return
    for each in loader.recommendations:
        untried = each.measured_range is None and each.rule not in OF_THE_DEVICE
        if each.kind == "speed" and untried and each.predicted.mid < WORTH:
            yield f"{each.title}: {each.predicted}, of a loop that computes"


def _what_still_waits(loader: LoaderReport) -> Iterator[str]:
    stop = loader.plan.stop if loader.plan is not None else None
    told = re.search(r"still waits ([\d.]+) %", stop or "")
    if told and loader.headroom is not None and loader.headroom < 2 and float(told[1]) > 90:
        yield f"{stop!r} of a loop with a headroom of {loader.headroom:.2f}"


def _waiting_adds_up(loader: LoaderReport) -> Iterator[str]:
    waiting = loader.waiting
    if waiting is not None and waiting.total_s > 0:
        total = sum(each.share for each in waiting.causes.values())
        if abs(total - 1) > 0.02:
            yield f"causes of waiting add up to {total:.0%}"


_OF_A_LOADER: tuple[Callable[[LoaderReport], Iterator[str]], ...] = (
    _verdict_and_headroom,
    _no_gain_above_free_loading,
    _plan_and_advice,
    _computing_and_waiting,
    _reading,
    _stacks,
    _waiting_adds_up,
    _no_more_than_the_part_saved,
    _what_is_not_advised,
    _what_costs_is_named,
    _little_of_a_loop_that_computes,
    _what_still_waits,
)


def _of_a_text(report: Report, text: str) -> Iterator[str]:
    for low, high in re.findall(r"\((\d+)–(\d+) %\)", text):
        if int(high) - int(low) > 75:
            yield f"a share of ({low}–{high} %) says nothing"
    alone = len(report.loaders) == 1
    if alone and NO_ADVICE in text and report.loaders[0].recommendations:
        yield f"{NO_ADVICE}, and advice"
    if "finished" in text and report.run.state == "interrupted":
        yield "finished, and interrupted"
    words = ("nan %", "inf %", "×nan", "×inf")
    yield from (f"{word} is no figure" for word in words if word in text)


def one_loader(report: Report, **changed: object) -> Report:
    """The report with its first loader changed, for tests of the lint itself."""
    first = replace(report.loaders[0], **changed)  # type: ignore[arg-type]
    return replace(report, loaders=(first, *report.loaders[1:]))
