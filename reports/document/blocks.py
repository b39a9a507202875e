"""The blocks that documents are made of. Every format draws each kind, or skips it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ...advisors.schema.report_model import Recommendation

Style = Literal["", "lead", "strong", "dim", "good", "bad", "warning", "code", "own"]


class Styled(NamedTuple):
    """A cell with a style of its own."""

    text: str
    style: str


class Bar(NamedTuple):
    """A cell that text draws as a bar. Other formats leave its column out."""

    share: float | None
    style: str = "bar"


Cell = str | Styled | Bar


@dataclass(frozen=True)
class Block:
    @property
    def kind(self) -> str:
        """The name by which templates find how to draw it."""
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Sentence(Block):
    """A paragraph. With `fit`, text cuts it to one line."""

    text: str
    style: Style = ""
    fit: bool = False


@dataclass(frozen=True)
class Bullets(Block):
    lines: Sequence[str]


@dataclass(frozen=True)
class Pairs(Block):
    """Names and what is said of them. With `inline`, text writes all of them as one paragraph."""

    rows: Sequence[tuple[str, str]]
    label: str = ""
    inline: bool = False


@dataclass(frozen=True)
class Code(Block):
    """Lines to paste. They are never wrapped."""

    text: str
    label: str = ""


Kind = Literal["name", "number", "text", "dim", "line", "gloss", "bar"]


class Column(NamedTuple):
    """`kind`: a "name" and a "number" are never cut, a "text" wraps, a "line" ends in an ellipsis;
    "dim" and "gloss" are a text and a line for those who want to know more.

    Text shows the column in terminals of `least` columns and more.
    """

    head: str
    kind: Kind = "text"
    least: int = 0

    @property
    def whole(self) -> bool:
        """Whether text never cuts it."""
        return self.kind in ("name", "number", "bar")

    @property
    def everywhere(self) -> bool:
        """Whether formats without a width show it."""
        return self.kind != "bar"


@dataclass(frozen=True)
class Table(Block):
    """Rows of as many cells as there are columns; a row that is a string heads a group of rows."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell] | str]
    label: str = ""


@dataclass(frozen=True)
class Card(Block):
    """One piece of advice. `ending`: the effort it takes, or why the plan does without it."""

    advice: Recommendation
    effect: str
    ending: str
    body: Sequence[Block] = ()
    number: int | None = None
    left_out: bool = False
    fit: bool = False


@dataclass(frozen=True)
class Folded(Block):
    """Details that formats with folding show behind a title. Text leaves them out."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Plots(Block):
    """The place of plots that HTML makes by themselves."""

    key: str


@dataclass(frozen=True)
class Part:
    blocks: Sequence[Block]
    title: str = ""


@dataclass(frozen=True)
class Section:
    """`verdict` is that of a loader's section; `key` is unique in its document."""

    title: str
    parts: Sequence[Part]
    key: str = ""
    verdict: str = ""

    @property
    def empty(self) -> bool:
        return not self.verdict and not any(part.blocks for part in self.parts)


_KINDS: dict[str, Kind] = {"t": "text", "n": "number", "w": "name", "d": "dim"}


def table(
    heads: Sequence[str], rows: Sequence[Sequence[Cell]], kinds: str = "", label: str = ""
) -> list[Block]:
    """A table that every width shows whole; nothing without rows. `kinds` has a letter a column:
    text, number, word (never cut) or dim; all are text by default."""
    letters = kinds or "t" * len(heads)
    columns = [Column(head, _KINDS[kind]) for head, kind in zip(heads, letters, strict=True)]
    return [Table(columns, rows, label)] if rows else []


def section(blocks: Iterable[Block], title: str = "", key: str = "") -> Section:
    """A section of one part."""
    return Section(title, (Part(tuple(blocks)),), key)


def bullets(lines: Sequence[str]) -> list[Block]:
    """A list of what there is."""
    return [Bullets(lines)] if lines else []


def sentences(texts: Iterable[str | None], style: Style = "", fit: bool = False) -> list[Block]:
    """A paragraph for each text that there is."""
    return [Sentence(text, style, fit) for text in texts if text]
