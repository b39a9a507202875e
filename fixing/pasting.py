"""Advice's own code fitted into the user's file: its classes and functions above their use, its
imports once, its loader's arguments in the user's call."""

from __future__ import annotations

from typing import Any

import libcst as cst
import libcst.matchers as m

from .arguments import Arguments
from .edits import Edits
from .hoisting import is_import
from .method import free_name, in_words, names_in, parsed
from .nodes import is_literal
from .project import CannotPatch, Source
from .sites import Site

_BESIDE_BATCHES = ("batch_size", "shuffle", "sampler", "drop_last")
_BY_HAND = "its code is to be fitted in by hand"


def paste(edits: Edits, site: Site, arguments: Arguments, code: str) -> None:
    """Change the user's call to the loader that this code makes, with what it is made of.

    The code defines classes and functions, and its last statement is `loader = DataLoader(…)`.
    Raises CannotPatch for other code, and where what it needs of the call cannot be told.
    """
    body: list[Any] = list(cst.parse_module(code).body)
    *above, last = body or [None]
    loader = m.SimpleStatementLine([m.Assign([m.AssignTarget(m.Name("loader"))], m.Call())])
    made = [each for each in above if not is_import(each)]
    if not m.matches(last, loader) or not all(
        isinstance(each, cst.ClassDef | cst.FunctionDef) for each in made
    ):
        raise CannotPatch(_BY_HAND)
    source, names = site.source, [each.name.value for each in made]
    new = {name: cst.Name(free_name(source, name)) for name in names}
    given = _given(arguments, last.body[0].value, set(names))
    for name, value in given.items():
        arguments.replace(name, in_words(value, new))
    if "batch_sampler" in given:
        for name in _BESIDE_BATCHES:
            arguments.remove(name)
    elif "sampler" in given:
        arguments.remove("shuffle")
    used = names_in(*given.values(), *made)
    _put_above(edits, site, [in_words(each, new) for each in made])
    for each in above:
        if is_import(each):
            _import(edits, source, each, used)


def has_definitions(code: str) -> bool:
    """Whether it brings classes or functions of its own."""
    try:
        body = cst.parse_module(code).body
    except cst.ParserSyntaxError:
        return False
    return any(isinstance(each, cst.ClassDef | cst.FunctionDef) for each in body)


def _given(arguments: Arguments, call: cst.Call, made: set[str]) -> dict[str, cst.BaseExpression]:
    """The arguments of the advised call that the user's lacks, in the user's words."""
    dataset = arguments.value("dataset")
    if dataset is None:
        raise CannotPatch(_BY_HAND)
    found: dict[str, cst.BaseExpression] = {}
    words: dict[str, cst.BaseExpression] = {"dataset": dataset}
    for at, arg in enumerate(call.args):
        name = arg.keyword.value if arg.keyword is not None else "dataset"
        names = names_in(arg.value)
        own = arguments.value(name)
        if at and arg.keyword is None:
            raise CannotPatch(_BY_HAND)
        if m.matches(arg.value, m.Name("dataset")):
            continue
        yours = isinstance(arg.value, cst.Name) and not is_literal(arg.value)
        yours = yours or name not in ("batch_size", "num_workers")
        if own is not None and (own.deep_equals(arg.value) or (yours and not names & made)):
            continue  # the user's own, by whatever name
        for word in names & {"generator", "sampler", "collate_fn", "batch_sampler"}:
            value = arguments.value(word)
            if value is None:
                raise CannotPatch(_BY_HAND)
            words[word] = value
        found[name] = in_words(arg.value, words)
    several = sum(len(m.findall(arg.value, m.Name("dataset"))) for arg in call.args)
    if several > 1 and not isinstance(dataset, cst.Name | cst.Attribute):
        raise CannotPatch(f"{_BY_HAND}: the data set has no name of its own")
    return found


def _put_above(edits: Edits, site: Site, made: list[Any]) -> None:
    """In front of the file's statement that holds the call."""
    if not made:
        return
    source = site.source
    outermost = [site.call, *site.source.parents(site.call)][-2]
    blank = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
    indent = source.module.default_indent
    written = [parsed(cst.Module([each], default_indent=indent).code, source)[0] for each in made]
    new = [each.with_changes(leading_lines=blank) for each in written]

    def above(node: Any) -> Any:
        kept = [line for line in node.leading_lines if line.comment is not None]
        return cst.FlattenSentinel([*new, node.with_changes(leading_lines=[*blank, *kept])])

    edits.edit(source, outermost, above)


def _import(edits: Edits, source: Source, statement: Any, used: set[str]) -> None:
    """The names of this import that are used and that the file lacks."""
    node = statement.body[0]
    bound = _bound(source)
    aliases = [
        each
        for each in node.names
        if (name := (each.evaluated_alias or each.evaluated_name).partition(".")[0]) in used
        and name not in bound
    ]
    if not aliases:
        return
    aliases[-1] = aliases[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    new = statement.with_changes(body=[node.with_changes(names=aliases)], leading_lines=[])

    def added(tree: cst.Module) -> cst.Module:
        body: list[Any] = list(tree.body)
        places = [n for n, each in enumerate(body) if is_import(each)]
        at = places[-1] + 1 if places else (1 if tree.get_docstring() else 0)
        return tree.with_changes(body=[*body[:at], new, *body[at:]])

    edits.edit(source, source.module, added)


def _bound(source: Source) -> set[str]:
    """Names that the file imports."""
    found = set()
    for node in source.find(cst.Import, cst.ImportFrom):
        if not isinstance(node.names, cst.ImportStar):
            for each in node.names:
                found.add((each.evaluated_alias or each.evaluated_name).partition(".")[0])
    return found
