"""Values that the command line or a configuration file decides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .nodes import (
    Site,
    calls_of,
    flags_of,
    is_literal,
    last_name,
    option_of,
    passed_as,
    sets,
    text_of,
)
from .project import CannotPatch, Project, Source

_SHOWN = 3


def option_named(project: Project, name: str) -> Site | None:
    """The `add_argument(…)` whose value has this name. Raises CannotPatch where there are
    several."""
    found = [each for each in calls_of(project, "add_argument") if option_of(each.call) == name]
    if len(found) > 1:
        raise CannotPatch(f"several options are called {name}: pass the one that you use")
    return found[0] if found else None


def click_option(source: Source, function: ast.FunctionDef, name: str) -> Site | None:
    """The decorator that gives a function this parameter."""
    for call in function.decorator_list:
        match call:
            case ast.Call(func) if last_name(func) == "option" and option_of(call) == name:
                return Site(source, call)
    return None


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
    """What a field of a data class, or of a namespace, is given: where it is made, else its
    defaults."""
    fields = [
        (source, owner, node.value)
        for source in project.sources()
        for owner in source.find(ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.AnnAssign) and sets(node, name)
    ]
    makers = {owner.name for _, owner, _ in fields} or {"SimpleNamespace", "Namespace"}
    given = [
        (each.source, value)
        for each in calls_of(project, *makers)
        if (value := passed_as(each.call, name)) is not None
    ]
    return given or [(source, value) for source, _, value in fields if value is not None]


def in_configs(project: Project, key: str, value: str) -> None:
    """Raises CannotPatch if the command line (of Hydra, OmegaConf) or a YAML file of the project
    decides it."""
    for arg in project.argv:
        path, _, given = arg.partition("=")
        if given and path.lstrip("+-").rpartition(".")[2] == key:
            raise CannotPatch(f"the run was given {path}: pass {path}={value}")
    found = [
        f"{file}:{number} ({path})"
        for file, lines in project.configs()
        for path, number in _yaml_keys(lines, key)
    ]
    if found:
        where = " or ".join(found[:_SHOWN])
        raise CannotPatch(f"a configuration decides it: set {value} at {where}")


def _yaml_keys(lines: list[str], key: str) -> Iterator[tuple[str, int]]:
    """(dotted path, line) of each scalar of this key."""
    above: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        found = re.match(r"(\s*)([\w.-]+)\s*:\s*(.*)$", line)
        if found is None:
            continue
        indent = len(found[1])
        above = [each for each in above if each[0] < indent]
        if found[2] == key and found[3] and not found[3].startswith("#"):
            yield ".".join([*(name for _, name in above), key]), number
        above.append((indent, found[2]))
