"""The second screen: each recommendation with its evidence, its gain, its code, and what would not
help."""

from __future__ import annotations

from textual.content import Content

from ...advisors.schema.report_model import LoaderReport, Recommendation
from ...reports.words.advice_words import effect_text
from ...reports.words.plan_words import plan_rows, plan_summary
from ...reports.words.sentences import nothing_to_change
from ...reports.words.units import bar, factor
from ..snapshot import AdviceView
from .marks import DIM, FAIR, GOOD, SECOND, line, lines, text
from .needs import no_advice

# A gain of this much fills the bar.
_FULL = 4.0


def conclusion(report: LoaderReport) -> str:
    """What the recommendations come to together; where nothing is advised, why."""
    said = plan_summary(report) if report.recommendations else nothing_to_change(report)
    return text(said or ("" if report.recommendations else "Nothing is advised."))


def gain_of(each: Recommendation) -> str:
    """'×1.6–1.9', or what kind of advice it is where speed is not the point."""
    if each.kind != "speed":
        return each.kind
    if each.measured is not None:
        proved = effect_text(each).startswith("proved")
        return f"{factor(each.measured)} {'proved' if proved else 'measured'}"
    low, high = factor(each.predicted.low), factor(each.predicted.high)
    return low if low == high else f"{low}–{high.removeprefix('×')}"


def entries(advice: AdviceView) -> list[tuple[str, Content]]:
    """(id, line) of everything that can be chosen, in the order of the screen; ids without a colon
    are headings."""
    report = advice.report
    if report is None:
        return []
    yes, no = report.recommendations, report.rejected
    groups = (
        ("Change this", "yes", [(str(n), r.rule, gain_of(r)) for n, r in enumerate(yes)], GOOD),
        ("Would not help", "no", [(str(n), r.rule, gain_of(r)) for n, r in enumerate(no)], FAIR),
        ("Could not be judged", "unknown", [(name, name, "?") for name in report.unmeasured], DIM),
    )
    found: list[tuple[str, Content]] = []
    for title, kind, members, style in groups:
        if members:
            found.append((kind, line((title, "bold"))))
        found += [
            (f"{kind}:{id_}", line((f"{gain:<11} ", style), text(rule, 30)))
            for id_, rule, gain in members
        ]
    return found


def recommendation(advice: AdviceView, id_: str | None) -> Recommendation | None:
    """The recommendation an entry stands for; None for a heading or what could not be judged."""
    report = advice.report
    kind, _, number = (id_ or "").partition(":")
    if report is None or kind not in ("yes", "no") or not number:
        return None
    return (report.recommendations if kind == "yes" else report.rejected)[int(number)]


def detail(advice: AdviceView, id_: str | None, width: int) -> Content:
    """Everything that is known of one entry."""
    report = advice.report
    if report is None:
        return no_advice(advice)
    kind, _, rest = (id_ or "").partition(":")
    found = recommendation(advice, id_)
    if found is not None:
        planned = []
        if kind == "yes":
            row = plan_rows(report)[int(rest)]
            step = None if row.left_out else f"step {row.number}"
            effect = row.effect if row.effect != effect_text(found) else ""
            said = ", ".join(filter(None, (step, effect, row.left_out or row.effort)))
            planned = [line(("in the plan ", DIM), said)]
        return _detail(found, kind == "no", width, planned)
    if rest:
        why = line(text(report.unmeasured.get(rest), 2000))
        return Content("\n\n").join([line((text(rest), "bold")), why, _more(rest)])
    return line((conclusion(report), DIM))


def _detail(r: Recommendation, rejected: bool, width: int, planned: list[Content]) -> Content:
    rows = [line((text(r.title), "bold")), _gain(r, rejected), *planned]
    rows += [line(""), line(text(r.why, 4000))]
    if r.evidence:
        rows += [line(""), line(("Evidence", "bold underline"))]
        wide = max(len(text(name, 40)) for name in r.evidence)
        rows += [
            line((f"  {text(name, 40):<{wide}}  ", DIM), text(value))
            for name, value in r.evidence.items()
        ]
    if r.change.code:
        title = "The change (it would not help)" if rejected else "The change"
        rows += [line(""), line((title, "bold underline"), ("   c copies it", DIM)), line("")]
        code = r.change.code.splitlines()
        wide = min(max(map(len, code)) + 2, max(10, width - 4))
        rows += [
            line("  ", (f" {text(each, 300):<{wide}}", f"{SECOND} on $boost")) for each in code
        ]
    if r.caveat:
        rows += [line(""), line(("Mind  ", f"bold {FAIR}"), text(r.caveat, 2000))]
    return lines([*rows, line(""), _more(r.rule)])


def _gain(r: Recommendation, rejected: bool) -> Content:
    style = f"bold {FAIR if rejected else GOOD}"
    if r.kind != "speed":
        return line((r.kind, style), (": not about speed", DIM))
    gain = r.predicted.mid - 1
    shown = bar(gain / (_FULL - 1), 20) if gain > 0 and r.measured_range is None else ""
    return line((effect_text(r), style), "  ", (shown, style))


def _more(rule: str) -> Content:
    return line((f"loaderscope rules {text(rule, 40)} explains the rule.", DIM))
