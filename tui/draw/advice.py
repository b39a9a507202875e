"""The second screen: each recommendation with its evidence, its gain, its code, and what would not
help."""

from __future__ import annotations

from textual.content import Content

from ...advisors.schema.report_model import LoaderReport, Recommendation
from ...reports.words.advice_words import effect_text
from ...reports.words.plan_words import PlanRow, plan_rows, plan_summary
from ...reports.words.sentences import nothing_to_change
from ...reports.words.units import bar, factor, figure
from ..snapshot import AdviceView
from .marks import DIM, FAIR, GOOD, SECOND, dim, line, lines, text
from .needs import no_advice

# What an entry stands for: advice, a rule that could not be judged, or None for a heading.
Target = Recommendation | str | None

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


def entries(advice: AdviceView) -> list[tuple[Target, Content]]:
    """What each line of the screen's list stands for, and the line."""
    if advice.report is None:
        return []
    found: list[tuple[Target, Content]] = []
    for title, style, members in (
        ("Change this", f"bold {GOOD}", advice.report.recommendations),
        ("Would not help", FAIR, advice.report.rejected),
        ("Could not be judged", DIM, tuple(advice.report.unmeasured)),
    ):
        found += [(None, line((title, "bold")))] if members else []
        for each in members:
            gain, rule = ("?", each) if isinstance(each, str) else (gain_of(each), each.rule)
            found.append((each, line((f"{gain:<11} ", style), text(rule, 30))))
    return found


def detail(advice: AdviceView, target: Target, width: int, patch: str | None = None) -> Content:
    """Everything that is known of one entry; with a `patch`, that in place of its code."""
    report = advice.report
    if report is None:
        return no_advice(advice)
    if target is None:
        return dim(conclusion(report))
    if isinstance(target, str):
        why = line(text(report.unmeasured.get(target), 2000))
        return Content("\n\n").join([line((text(target), "bold")), why, _more(target)])
    row = next((row for row in plan_rows(report) if row.advice is target), None)
    return _detail(target, row, width, patch)


def _detail(r: Recommendation, row: PlanRow | None, width: int, patch: str | None) -> Content:
    """`row`: its place in the plan; None for what would not help."""
    rows = [line((text(r.title), "bold")), _gain(r, FAIR if row is None else GOOD)]
    if row is not None:
        step = None if row.left_out else f"step {row.number}"
        effect = row.effect if row.effect != effect_text(r) else ""
        said = ", ".join(filter(None, (step, effect, row.left_out or row.effort)))
        rows.append(line(("in the plan ", DIM), said))
    rows += [line(""), line(text(r.why, 4000))]
    if r.evidence:
        rows += [line(""), line(("Evidence", "bold underline"))]
        wide = max(len(text(name, 40)) for name in r.evidence)
        rows += [
            line((f"  {text(name, 40):<{wide}}  ", DIM), text(figure(value)))
            for name, value in r.evidence.items()
        ]
    code, title, keys = r.change.code, "The change", "   c copies it, d shows it as a patch"
    if patch is not None:
        code, title, keys = (
            patch,
            "The patch, not tried",
            "   d goes back; loaderscope fix tries it",
        )
    elif row is None:
        title = "The change (it would not help)"
    if code:
        rows += [line(""), line((title, "bold underline"), (keys, DIM)), line("")]
        written = code.splitlines()
        wide = min(max(map(len, written)) + 2, max(10, width - 4))
        rows += [
            line("  ", (f" {text(each, 300):<{wide}}", f"{SECOND} on $boost")) for each in written
        ]
    if r.caveat:
        rows += [line(""), line(("Caveat  ", f"bold {FAIR}"), text(r.caveat, 2000))]
    return lines([*rows, line(""), _more(r.rule)])


def _gain(r: Recommendation, style: str) -> Content:
    if r.kind != "speed":
        return line((r.kind, f"bold {style}"), (": not about speed", DIM))
    gain = r.predicted.mid - 1
    shown = bar(gain / (_FULL - 1), 20) if gain > 0 and r.measured_range is None else ""
    return line((effect_text(r), f"bold {style}"), "  ", (shown, style))


def _more(rule: str) -> Content:
    return dim(f"loaderscope rules {text(rule, 40)} explains the rule.")
