"""Markdown: read back by a CommonMark parser, so that a test sees what GitHub would show."""

from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from loaderscope.advisors.schema.report_model import Change, Report
from loaderscope.reports.markdown.draw import MAX_BYTES, escaped, fenced, render_markdown
from report_samples import EVIL, EVIL_CODE, advice, hostile_report

OURS = ("<details>", "</details>", "<summary>", "</summary>")


def parsed(text: str) -> list[Token]:
    """All tokens, those inside lines included."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    return [each for token in tokens for each in (token, *(token.children or ()))]


def plain(text: str) -> str:
    """The text of one line as a reader sees it."""
    shown = (each for each in parsed(text) if each.type in ("text", "text_special"))
    return "".join(each.content for each in shown)


def html(tokens: list[Token]) -> str:
    return "".join(token.content for token in tokens if token.type.startswith("html"))


def test_hostile_texts_are_shown_and_not_obeyed(report: Report) -> None:
    tokens = parsed(render_markdown(hostile_report(report)))
    kinds = {token.type for token in tokens}
    assert not kinds & {"link_open", "image", "em_open", "s_open", "code_inline", "code_block"}
    left = html(tokens)
    for tag in OURS:
        left = left.replace(tag, "")
    assert "<" not in left
    fences = [token.content for token in tokens if token.type == "fence"]
    assert fences == [EVIL_CODE + "\n"] * len(report.loaders)
    inline = [token for token in tokens if token.type == "inline"]
    texts = {"".join(child.content for child in token.children or ()) for token in inline}
    assert EVIL in texts | {token.content for token in tokens if token.type == "text"}


def test_no_title_ends_what_is_folded(report: Report) -> None:
    """An empty line would end the HTML of a title, and links would begin."""
    bad = advice("a\n\n[b](c)", rule="d\n\n[e](f)")
    loader = replace(report.loaders[0], rejected=(bad,), recommendations=())
    tokens = parsed(render_markdown(replace(report, loaders=(loader,))))
    assert not [token for token in tokens if token.type == "link_open"]


INLINE = "a | b", "*a* _b_ `c` ~~d~~", "<b>&amp;</b>", "@someone #12 GH-1", "[a](b) ![c](d)", "$x$"
BLOCKS = "# no heading", "1. no list", "- no list", "+", "= = =", "--- ", "\\| \\\\* \\", "12.5 ms"


@pytest.mark.parametrize("text", [*INLINE, *BLOCKS, "https://x.example/?a=b www.x.example"])
def test_a_cell_reads_as_it_was(text: str) -> None:
    assert plain(escaped(text)).strip() == text.strip()
    table = f"| head | other |\n| --- | --- |\n| {escaped(text)} | x |\n"
    assert [token.type for token in parsed(table)].count("td_open") == 2
    allowed = {"paragraph_open", "paragraph_close", "inline", "text", "text_special"}
    assert {token.type for token in parsed(escaped(text))} <= allowed


def test_nothing_github_would_link_is_left_and_no_code_closes_its_fence() -> None:
    for text in ("@someone", "#12", "https://x.example", "www.x.example"):
        assert text not in escaped(f"see {text} there")
    for code in ("x", "```\nx\n```", "`````", EVIL_CODE):
        (token,) = parsed(fenced(code))
        assert (token.type, token.content) == ("fence", code + "\n")


def test_a_long_report_is_cut_and_says_so(report: Report) -> None:
    many = tuple(advice(f"Advice {n}", change=Change({}, "x = 1\n" * 400)) for n in range(60))
    loader = replace(report.loaders[0], recommendations=many, code=None, storage=None)
    text = render_markdown(replace(report, loaders=(loader,)))
    assert len(text.encode()) <= MAX_BYTES
    assert "Some parts did not fit here" in text
    assert "What recording cost" in text  # what comes later and fits is there
    assert "did not fit" not in render_markdown(report)
    assert html(parsed(text)).count("<details>") == html(parsed(text)).count("</details>")
