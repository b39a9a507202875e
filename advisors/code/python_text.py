"""Python source as a text and its tree: where a node stands, and pieces of text put in its place.
What is not replaced stays as it is."""

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)
Piece = tuple[int, int, str]  # from, to, what stands there then


class CannotEdit(Exception):
    """The text of a node cannot be replaced alone."""


class PythonText:
    """Raises SyntaxError, ValueError or RecursionError where the text is no Python."""

    def __init__(self, text: str) -> None:
        self.text, self.tree = text, ast.parse(text)
        self._starts = [0, *(found.end() for found in re.finditer(r"\r\n?|\n", text)), len(text)]
        self._outer: dict[ast.AST, ast.AST] = {}
        self.nodes = list(self._walk(self.tree))

    def _walk(self, node: ast.AST) -> Iterator[ast.AST]:
        yield node
        for inner in ast.iter_child_nodes(node):
            self._outer[inner] = node
            yield from self._walk(inner)

    def find(self, *kinds: type[ast.AST]) -> Iterator[Any]:
        """All nodes of these kinds, in the order of the text."""
        return (node for node in self.nodes if isinstance(node, kinds))

    def parents(self, node: ast.AST) -> Iterator[Any]:
        """What holds this node, from the inside out."""
        while (outer := self._outer.get(node)) is not None:
            yield outer
            node = outer

    def enclosing(self, node: ast.AST, kind: type[Node]) -> Node | None:
        """The innermost function (or class, or `with`) around this node."""
        return next((each for each in self.parents(node) if isinstance(each, kind)), None)

    @property
    def newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    @property
    def indent(self) -> str:
        """One level of indentation, as the file has it."""
        deep = (each for each in self.find(ast.stmt) if each.col_offset)
        return next((self.margin(each) for each in deep if self.margin(each)), "    ")

    def span(self, node: Any) -> tuple[int, int]:
        """Where the text of a node begins and ends."""
        return (
            self._offset(node.lineno, node.col_offset),
            self._offset(node.end_lineno, node.end_col_offset),
        )

    def _offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._row(line).encode()[:column].decode())

    def of(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def replaced(self, node: ast.AST, new: str) -> Piece:
        """Raises CannotEdit for a node of which the parser does not say where it stands, as within
        an f-string."""
        try:
            held = ast.parse(f"({self.of(node)})", mode="eval").body
        except SyntaxError as error:
            raise CannotEdit from error
        if ast.unparse(held) != ast.unparse(node):
            raise CannotEdit
        return (*self.span(node), new)

    def with_names(self, node: ast.AST, words: Mapping[str, str]) -> str:
        """The text of a node with other words for these names."""
        start, found = self.span(node)[0], list[Piece]()
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and each.id in words:
                begin, end, new = self.replaced(each, words[each.id])
                found.append((begin - start, end - start, new))
        return edited(self.of(node), found)

    # Statements.

    def margin(self, statement: ast.AST) -> str:
        """The space in front of a statement."""
        row = self._row(first_line(statement))
        return row[: len(row) - len(row.lstrip())]

    def line_end(self, line: int) -> int:
        """Where a line ends, without its newline."""
        return self._starts[line - 1] + len(self._row(line).rstrip("\r\n"))

    def rows(self, statement: Any) -> tuple[int, int]:
        """The whole lines of a statement, with the comments above it. Raises CannotEdit where they
        hold something else."""
        first, last = first_line(statement), statement.end_lineno
        start, after = self.span(statement)
        begin, end = self._starts[first - 1], self.line_end(last)
        if self.text[begin:start].lstrip()[:1] not in ("", "@"):
            raise CannotEdit
        if self.text[after:end].lstrip()[:1] not in ("", "#"):
            raise CannotEdit
        while first > 1 and self._row(first - 1).lstrip().startswith("#"):
            first -= 1
        return self._starts[first - 1], end

    def _row(self, line: int) -> str:
        return self.text[self._starts[line - 1] : self._starts[line]]

    def inserted(self, at: int, text: str, margin: str = "") -> Piece:
        return at, at, textwrap.indent(text, margin).replace("\n", self.newline)

    def imported(self, text: str) -> Piece:
        """An import below those at the beginning of the file."""
        end, gap = 0, "\n"
        for each in self.tree.body:
            match each:
                case ast.ImportFrom("__future__") | ast.Expr(ast.Constant()):
                    gap = "\n\n"
                case ast.Import() | ast.ImportFrom():
                    gap = "\n"
                case _:
                    break
            end = self.line_end(each.end_lineno or 0)
        return self.inserted(end, f"{gap}{text}" if end else f"{text}\n")

    def free_name(self, wanted: str) -> str:
        """The wanted name, or with a number where the file has it."""
        held, number, found = {*re.findall(r"\w+", self.text)}, 2, wanted
        while found in held:
            found, number = f"{wanted}{number}", number + 1
        return found


def first_line(statement: Any) -> int:
    """The first line of a statement, decorators included."""
    above: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([each.lineno for each in above], default=int(statement.lineno))


def edited(text: str, pieces: Iterable[Piece]) -> str:
    """The text with these pieces; what is within another piece is passed over."""
    found, at = [], 0
    for start, end, new in sorted(pieces, key=lambda piece: piece[:2]):
        if start >= at:
            found += [text[at:start], new]
            at = end
    return "".join([*found, text[at:]])
