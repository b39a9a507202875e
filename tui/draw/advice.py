"""The second screen: each recommendation with its evidence, its gain, its code, and what would not
help."""

from __future__ import annotations

from textual.content import Content

from ...advisors.schema.report_model import Recommendation
from ...reports.words.advice_words import effect_text
from ...reports.words.plan_words import PlanRow
from ...reports.words.units import bar, factor, figure
from ..snapshot import AdviceView
from .marks import BAD, DIM, FAIR, GOOD, SECOND, line, lines, text
from .overview import gain_of

# Gains of more than this fill the bar.
_FULL = 4.0


def entries(advice: AdviceView) -> list[tuple[str, Content]]:
    """(id, line) of everything that can be chosen, in the order of the screen; ids without a colon
    are headings."""
    found: list[tuple[str, Content]] = []
    if advice.recommendations:
        found.append(("change", line(("Change this", "bold"))))
    found += [
        (f"yes:{number}", line((f"{gain_of(each):<11} ", f"bold {GOOD}"), text(each.rule, 30)))
        for number, each in enumerate(advice.recommendations)
    ]
    if advice.rejected:
        found.append(("keep", line(("Would not help", "bold"))))
    found += [
        (f"no:{number}", line((f"{gain_of(each):<11} ", FAIR), text(each.rule, 30)))
        for number, each in enumerate(advice.rejected)
    ]
    if advice.unmeasured:
        found.append(("unknown", line(("Could not be judged", "bold"))))
    found += [
        (f"unknown:{name}", line(("?           ", DIM), text(name, 30)))
        for name in advice.unmeasured
    ]
    return found


def recommendation(advice: AdviceView, id_: str | None) -> Recommendation | None:
    """The recommendation an entry stands for; None for a heading or what could not be judged."""
    kind, _, rest = (id_ or "").partition(":")
    group = advice.recommendations if kind == "yes" else advice.rejected if kind == "no" else ()
    return group[int(rest)] if rest.isdigit() and int(rest) < len(group) else None


def detail(advice: AdviceView, id_: str | None, width: int) -> Content:
    """Everything that is known of one entry."""
    if advice.problem is not None:
        return line((text(advice.problem), BAD))
    if not advice.ready:
        return line(("Advice is being worked out…", DIM))
    found = recommendation(advice, id_)
    if found is not None:
        kind, _, rest = (id_ or "").partition(":")
        row = advice.plan[int(rest)] if kind == "yes" and int(rest) < len(advice.plan) else None
        return _detail(found, rejected=kind == "no", width=width, row=row)
    kind, _, rest = (id_ or "").partition(":")
    if kind == "unknown" and rest:
        return lines(
            [
                line((text(rest), "bold")),
                line(""),
                line(text(advice.unmeasured.get(rest, ""), 2000)),
                line(""),
                _more(rest),
            ]
        )
    return line((text(advice.summary or "Nothing is advised.", 400), DIM))


def _detail(r: Recommendation, rejected: bool, width: int, row: PlanRow | None) -> Content:
    rows = [line((text(r.title), "bold")), _gain(r, rejected)]
    if row is not None:
        told = ", ".join(filter(None, (row.effect, row.left_out or row.effort)))
        rows += (
            [line(("in the plan ", DIM), f"step {row.number}: " if not row.left_out else "", told)]
            if told
            else []
        )
    rows += [line(""), line(text(r.why, 4000))]
    if r.evidence:
        rows += [line(""), line(("Evidence", "bold underline"))]
        wide = max(len(text(name, 40)) for name in r.evidence)
        rows += [
            line((f"  {text(name, 40):<{wide}}  ", DIM), text(figure(value)))
            for name, value in r.evidence.items()
        ]
    if r.change.code:
        title = "The change (it would not help)" if rejected else "The change"
        rows += [line(""), line((title, "bold underline"), ("   c copies it", DIM)), line("")]
        code = r.change.code.splitlines()
        wide = min(max(len(each) for each in code) + 2, max(10, width - 4))
        rows += [
            line("  ", (f" {text(each, 300):<{wide}}", f"{SECOND} on $boost")) for each in code
        ]
    if r.caveat:
        rows += [line(""), line(("Mind  ", f"bold {FAIR}"), text(r.caveat, 2000))]
    rows += [line(""), _more(r.rule)]
    return lines(rows)


def _gain(r: Recommendation, rejected: bool) -> Content:
    style = FAIR if rejected else GOOD
    if r.kind != "speed":
        return line((f"{r.kind}", f"bold {style}"), (": not about speed", DIM))
    p = r.predicted
    if r.measured_range is not None:
        return line((effect_text(r), f"bold {style}"))
    shown = bar((p.mid - 1) / (_FULL - 1), 20) if p.mid > 1 else ""
    measured = f" · measured {factor(r.measured)}" if r.measured is not None else ""
    return line(
        ("predicted ", DIM),
        (factor(p.mid), f"bold {style}"),
        (f"  four times in five between {factor(p.low)} and {factor(p.high)}{measured}  ", DIM),
        (shown, style),
    )


def _more(rule: str) -> Content:
    return line((f"loaderscope rules {text(rule, 40)} explains the rule.", DIM))
