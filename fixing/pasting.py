"""Advice's own code fitted into the user's file: its classes and functions above their use, its
imports once, its loader's arguments in the user's call."""

import ast
import re
from collections.abc import Iterable, Mapping

from ..advisors.code.loader_code import NOT_WITH_BATCHES
from ..advisors.code.method import names_of
from ..advisors.code.python_text import PythonText
from .deciding_call import Arguments
from .edits import Edits
from .nodes import Site, import_of
from .project import CannotPatch, Source

BY_HAND = "its code is to be fitted in by hand"
_Made = ast.ClassDef | ast.FunctionDef


def paste(edits: Edits, site: Site, arguments: Arguments, code: str) -> None:
    """Change the user's call to the loader that this code makes, with what it is made of.

    The code defines classes and functions, and its last statement is `loader = DataLoader(…)`.
    Raises CannotPatch for other code, and if the call lacks what it needs.
    """
    text, source = PythonText(code), site.source
    imports = [each for each in text.tree.body if isinstance(each, ast.Import | ast.ImportFrom)]
    made = [each for each in text.tree.body if isinstance(each, _Made)]
    match text.tree.body[len(imports) + len(made) :]:
        case [ast.Assign([ast.Name("loader")], ast.Call() as call)]:
            pass
        case _:
            raise CannotPatch(BY_HAND)
    new = {each.name: source.free_name(each.name) for each in made}
    given = _given(arguments, text, call, new)
    for name, value in given.items():
        arguments.replace(name, value)
    if "batch_sampler" in given:
        for name in NOT_WITH_BATCHES:
            arguments.remove(name)
    elif "sampler" in given:
        arguments.remove("shuffle")
    if made:
        lines = (
            re.sub(rf"\b{each.name}\b", new[each.name], text.with_names(each, new), count=1)
            for each in made
        )
        _put_above(edits, site, lines)
    used = names_of(*made, *(ast.parse(value) for value in given.values()))
    for each in imports:
        _import(edits, source, each, used)


def has_definitions(code: str) -> bool:
    """Whether it brings classes or functions of its own."""
    try:
        body = ast.parse(code).body
    except SyntaxError:
        return False
    return any(isinstance(each, _Made) for each in body)


def _given(
    arguments: Arguments, text: PythonText, call: ast.Call, new: Mapping[str, str]
) -> dict[str, str]:
    """The arguments of the advised call that the user's lacks, in the user's words."""
    dataset = arguments.value("dataset")
    if dataset is None or len(call.args) > 1:
        raise CannotPatch(BY_HAND)
    source, words, found = arguments.site.source, dict(new), dict[str, str]()
    words["dataset"] = source.of(dataset)
    for keyword in call.keywords:
        name, value = keyword.arg or "", keyword.value
        names, own = names_of(value), arguments.value(name)
        if isinstance(value, ast.Name) and value.id == "dataset":
            continue
        yours = isinstance(value, ast.Name) or name not in ("batch_size", "num_workers")
        if own is not None and (
            ast.unparse(own) == ast.unparse(value) or (yours and not names & new.keys())
        ):
            continue  # the user's own, by whatever name
        for word in names & {"generator", "sampler", "collate_fn", "batch_sampler"}:
            held = arguments.value(word)
            if held is None:
                raise CannotPatch(BY_HAND)
            words[word] = source.of(held)
        found[name] = text.with_names(value, words)
    for value in call.args:
        if ast.unparse(value) != "dataset":
            found["dataset"] = text.with_names(value, words)
    several = [node for node in ast.walk(call) if getattr(node, "id", "") == "dataset"]
    if len(several) > 1 and not isinstance(dataset, ast.Name | ast.Attribute):
        raise CannotPatch(f"{BY_HAND}: the data set has no name of its own")
    return found


def _put_above(edits: Edits, site: Site, made: Iterable[str]) -> None:
    """In front of the file's statement that holds the call."""
    source = site.source
    start = source.rows([site.call, *source.parents(site.call)][-2])[0]
    before = source.text[:start].rstrip()
    texts = [
        re.sub("(?m)^(?: {4})+", lambda found: source.indent * (len(found[0]) // 4), each)
        for each in made
    ]
    new = "\n\n\n".join([*([""] if before else []), *texts, ""])
    edits.add(source, [(len(before), start, new.replace("\n", source.newline))])


def _import(
    edits: Edits, source: Source, statement: ast.Import | ast.ImportFrom, used: set[str]
) -> None:
    """The names of this import that are used and that the file lacks."""
    names = [(alias.asname or alias.name.partition(".")[0], alias) for alias in statement.names]
    lacking = [each for name, each in names if name in used and import_of(source, name) is None]
    if lacking:
        statement.names = lacking
        edits.add(source, [source.imported(ast.unparse(statement))])
