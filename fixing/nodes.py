"""What the source says of names and calls: where they are assigned, passed and imported, and which
call is on a recorded line."""

import ast
from dataclasses import dataclass, replace

from ..profiler.store.making import Line, Making
from .project import CannotPatch, Project, Source


@dataclass(frozen=True)
class Site:
    """A call in the source; `outer` are the lines that led to it."""

    source: Source
    call: ast.Call
    outer: tuple[Line, ...] = ()

    @property
    def callee(self) -> str:
        """'DataLoader', 'torch.utils.data.DataLoader', 'super().__init__'."""
        return self.source.shown(self.call.func)


def site_of(project: Project, making: Making) -> Site:
    """The user's own call that led to a loader. Raises CannotPatch."""
    if not making.lines:
        raise CannotPatch(
            "the run did not see where this loader was made: record it with `loaderscope run`"
        )
    site = site_at(project, making.lines)
    return _made_before(site) if making.watched else site


def site_at(project: Project, lines: tuple[Line, ...]) -> Site:
    """The call of the first of these lines, which the others led to. Raises CannotPatch."""
    line = lines[0]
    source = project.source(line.file)
    calls = [node for node in source.find(ast.Call) if node.lineno <= line.line <= node.end_lineno]
    if not calls:
        raise CannotPatch(f"{line.place} holds no call")

    def fit(node: ast.Call) -> tuple[bool, ...]:
        exact = (node.end_lineno, node.col_offset, node.end_col_offset) == (
            *(line.end_line, line.column, line.end_column),
        )
        # Without columns (before Python 3.11): the line is where the call begins, or its name ends.
        begins, loader = node.lineno == line.line, "oader" in source.shown(node.func)
        return begins and exact, begins and loader, loader, begins

    best = max(map(fit, calls))
    found = [node for node in calls if fit(node) == best]
    if len(found) > 1:
        raise CannotPatch(
            f"{line.place} holds several calls, and which made the loader is not known"
        )
    return Site(source, found[0], lines[1:])


def _made_before(site: Site) -> Site:
    """The call that made what `watch(…)` was given. Raises CannotPatch."""
    match site.call.args:
        case [ast.Call() as given, *_]:
            return replace(site, call=given)
        case [ast.Name(name), *_]:
            assigned = (node for node in site.source.find(ast.Assign) if sets(node, name))
            made = [node.value for node in assigned if isinstance(node.value, ast.Call)]
            if len(made) == 1:
                return Site(site.source, made[0])
    raise CannotPatch(
        "where the watched loader was made is not known: record it with `loaderscope run`"
    )


def is_literal(node: ast.AST) -> bool:
    """A number, a text, True, False or None."""
    try:
        value = ast.literal_eval(node)
    except (TypeError, ValueError):
        return False
    return value is None or isinstance(value, int | float | str)


def text_of(node: ast.AST | None) -> str | None:
    """The value of a plain string."""
    match node:
        case ast.Constant(str(text)):
            return text
    return None


def passed_as(call: ast.Call, name: str | None) -> ast.expr | None:
    """The value of this keyword in a call."""
    return next((each.value for each in call.keywords if each.arg == name), None)


def spread_in(call: ast.Call) -> list[ast.expr]:
    """What it passes as `**`."""
    return [each.value for each in call.keywords if each.arg is None]


def calls_of(project: Project, *names: str) -> list[Site]:
    """The calls of these in the whole project."""
    return [
        Site(source, call)
        for source in project.sources()
        for call in source.find(ast.Call)
        if getattr(call.func, "attr", getattr(call.func, "id", "")) in names
    ]


def sets(node: ast.AST, name: str) -> bool:
    """Whether an assignment binds this name, or an attribute ("self.name")."""
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    return name in map(ast.unparse, filter(None, targets))


def assigned_to(source: Source, name: str, function: ast.FunctionDef | None) -> list[ast.expr]:
    """The values that this name is assigned in a function, or at module level."""
    return [
        node.value
        for node in source.find(ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign)
        if sets(node, name) and source.enclosing(node, ast.FunctionDef) is function
        if function is not None or source.enclosing(node, ast.ClassDef) is None
        if node.value is not None
    ]


def plain_names(function: ast.FunctionDef) -> list[str]:
    """Its parameters that may be passed by position."""
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args)]


def defaults_of(function: ast.FunctionDef) -> dict[str, ast.expr | None]:
    """Its parameters and their defaults; those of `*` and `**` are none."""
    given, plain = function.args, plain_names(function)
    defaults = [*[None] * (len(plain) - len(given.defaults)), *given.defaults]
    names = [*plain, *(each.arg for each in given.kwonlyargs)]
    return dict(zip(names, [*defaults, *given.kw_defaults], strict=True))


def passed_for(call: ast.Call, function: ast.FunctionDef, name: str) -> ast.expr | None:
    """What this call passes for a parameter of the function, by name or by position."""
    plain = [each for each in call.args if not isinstance(each, ast.Starred)]
    names = plain_names(function)
    by_place = zip(names[names[:1] in (["self"], ["cls"]) :], plain, strict=False)
    return passed_as(call, name) or dict(by_place).get(name)


def import_of(source: Source, name: str) -> tuple[str, str] | None:
    """(module, name in it) that an import binds this name to; the second is "" for a module."""
    for node in source.find(ast.ImportFrom, ast.Import):
        for alias in node.names:
            if (alias.asname or alias.name) == name:
                if isinstance(node, ast.Import):
                    return alias.name, ""
                return "." * node.level + (node.module or ""), alias.name
    return None


def option_of(call: ast.Call) -> str | None:
    """Where argparse and click put the value of this option."""
    dest = passed_as(call, "dest")
    if dest is not None:
        return text_of(dest)
    first = max(flags_of(call), key=lambda flag: flag.startswith("--"), default="")
    return first.lstrip("-").replace("-", "_")


def flags_of(call: ast.Call) -> list[str]:
    """'-j' and '--workers' of an option."""
    return [flag for flag in map(text_of, call.args) if flag and flag.startswith("-")]
