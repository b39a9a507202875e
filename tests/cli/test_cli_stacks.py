"""`loaderscope stacks` on runs that ended; on live ones: tests/integration/test_stacks.py."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from builders import RUN_ID, RunBuilder
from inside_samples import CODE, NO_CODE, hostile_code
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.document.inside import stack_sections
from loaderscope.reports.text.draw import print_sections

ENDED = f"the run {RUN_ID} is finished: stacks can be taken of a live run only"


NONE = "this run holds no stacks: "


@pytest.mark.parametrize(
    ("args", "said"),
    [("", NONE), (RUN_ID, NONE), ("--seconds 2", ENDED), ("nope", ""), ("--seconds 0", "")],
)
def test_what_cannot_be_shown_is_one_sentence(run, fails, args, said):
    assert said in fails("stacks", *args.split())


@pytest.fixture
def drawn(run: RunBuilder) -> Callable[..., str]:
    """The text about a run whose loader has this code."""
    opened = open_run(run.path)
    report = build_report(opened, advice=False)

    def draw(code: object, width: int) -> str:
        loaders = (replace(report.loaders[0], code=code),)
        return print_sections(stack_sections(replace(report, loaders=loaders), opened), width)

    return draw


def test_stages_with_their_functions(drawn) -> None:
    text, wide = drawn(CODE, 80), drawn(CODE, 120)
    assert text.splitlines()[0] == "Pictures"
    hottest = "71 % (66–75 %) PIL ImageFile.load ImageFile.py:425 patches.py:41"
    assert hottest in " ".join(text.split())
    assert "innermost: PIL 73 %, your own code 16 %, libz 11 %" in text
    assert text.index("\nfetch\n") < text.index("\ncollate\n")
    assert "itself" in wide and "itself" not in text and "█" in wide


def test_no_stage_is_a_reason(drawn) -> None:
    with pytest.raises(UsageError, match="pip install py-spy"):
        drawn(NO_CODE, 80)


@pytest.mark.parametrize("width", [40, 80, 140])
def test_hostile_texts_are_only_texts(drawn, width: int) -> None:
    text = drawn(hostile_code("[red]\x1b[2J" + "x" * 200), width)
    assert all(line.isprintable() and len(line) <= width for line in text.splitlines())
