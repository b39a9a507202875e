"""Values that the command line or a data class decides."""

import ast

from .nodes import (
    Site,
    calls_of,
    flags_of,
    is_literal,
    option_of,
    passed_as,
    sets,
    text_of,
)
from .project import CannotPatch, Project, Source


def option_named(project: Project, name: str) -> Site | None:
    """The `add_argument(…)` whose value has this name. Raises CannotPatch where there are
    several."""
    found = [each for each in calls_of(project, "add_argument") if option_of(each.call) == name]
    if len(found) > 1:
        raise CannotPatch(f"several options are called {name}: pass the one that you use")
    return found[0] if found else None


def default_of(project: Project, option: Site, value: str) -> ast.expr:
    """The default of an option. Raises CannotPatch where it has none, or the run was given it: the
    sentence says what to pass."""
    call, flags = option.call, flags_of(option.call)
    flag = max(flags, key=len, default="")
    if any(arg.partition("=")[0] in flags for arg in project.argv):
        raise CannotPatch(f"the run was given {flag}: pass {flag} {value}")
    if text_of(passed_as(call, "action")) == "store_true":
        raise CannotPatch(f"it is an option, off by default: pass {flag}")
    default = passed_as(call, "default")
    if default is None or not is_literal(default):
        place = option.source.place(call)
        raise CannotPatch(f"{place} has no default to change: pass {flag} {value}")
    return default


def fields_named(project: Project, name: str) -> list[tuple[Source, ast.expr]]:
    """What a field of a data class is given: where it is made, else its defaults."""
    fields = [
        (source, owner, node.value)
        for source in project.sources()
        for owner in source.find(ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.AnnAssign) and sets(node, name)
    ]
    makers = {owner.name for _, owner, _ in fields}
    given = [
        (each.source, value)
        for each in calls_of(project, *makers)
        if (value := passed_as(each.call, name)) is not None
    ]
    return given or [(source, value) for source, _, value in fields if value is not None]
