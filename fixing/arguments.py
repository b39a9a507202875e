"""Arguments of a call changed, added and removed, written as the call is."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from ..advisors.code.loader_code import POSITIONS
from ..advisors.code.loader_form import NEEDS_WORKERS
from .call_text import Argument, arguments_of, without_argument
from .edits import Edits
from .follow import Follower, Literal
from .nodes import is_dict, is_literal, last_name, spread_in
from .project import CannotPatch, Project
from .sites import Site


class Arguments:
    """Changes of one call. `names`: DataLoader's name of an argument → the call's own, None where
    they are the same."""

    def __init__(
        self,
        project: Project,
        edits: Edits,
        site: Site,
        names: Mapping[str, str] | None = None,
        positions: Sequence[str] = POSITIONS,
    ) -> None:
        self._project, self._edits, self._names = project, edits, names
        self._positions = positions
        self.site = _through_partial(site)
        self._replaced: set[ast.AST] = set()

    def value(self, name: str) -> ast.expr | None:
        """What the call itself gives for this argument."""
        return _value(self._find(self._named(name) or name))

    def set(self, name: str, value: str) -> None:
        """Raises CannotPatch where the value cannot be traced to something to change."""
        own = self._own(name)
        if name in NEEDS_WORKERS:
            value = self._with_workers_alone(value)
        found = self.value(name)
        follower = Follower(self._project, own, value)
        if found is not None:
            self._put(follower.follow(self.site, found), value)
            return
        for spread in spread_in(self.site.call):
            entry = follower.entry(self.site, spread)
            if isinstance(entry, Literal):
                self._put(entry, value)
                return
            made = entry.node
            if isinstance(made, ast.Call) and made is not self.site.call and not is_dict(made):
                self._edits.add_argument(entry.source, made, own, value)
                return
        self._edits.add_argument(self.site.source, self.site.call, own, value)

    def replace(self, name: str, value: str) -> None:
        """Put this expression in the call, whatever stands there."""
        own, found, source = self._own(name), self.value(name), self.site.source
        if found is not None:
            self._edits.replace(source, found, value)
        else:
            self._edits.add_argument(source, self.site.call, own, value)

    def remove(self, name: str) -> None:
        """Leave this argument out, if it is given."""
        own = self._named(name) or name
        found = self._find(own)
        if found is None:
            for spread in spread_in(self.site.call):
                entry = Follower(self._project, own, "nothing").entry(self.site, spread)
                if isinstance(entry, Literal):
                    raise CannotPatch(f"{own} comes from `{self.site.source.shown(spread)}`")
            return
        if not isinstance(found, ast.keyword):
            raise CannotPatch(f"{own} is given without its name: name the arguments first")
        piece = without_argument(self.site.source, self.site.call, found)
        self._edits.add(self.site.source, [piece])

    def _with_workers_alone(self, value: str) -> str:
        """The value of an option of workers, in a call whose number of workers others decide: torch
        refuses it where they say 0."""
        workers = self.value("num_workers")
        if workers is None or is_literal(workers) or workers in self._replaced:
            return value
        text = self.site.source.of(workers)
        return f"{text} > 0" if value == "True" else f"{value} if {text} > 0 else None"

    def _own(self, name: str) -> str:
        own = self._named(name)
        if own is None:
            raise CannotPatch(f"{self.site.callee} takes no {name}")
        return own

    def _named(self, name: str) -> str | None:
        return name if self._names is None else self._names.get(name)

    def _find(self, own: str) -> Argument | None:
        plain = 0
        for argument in arguments_of(self.site.call):
            if isinstance(argument, ast.keyword):
                if argument.arg == own:
                    return argument
            elif isinstance(argument, ast.Starred):
                plain += len(POSITIONS)  # nobody knows how many
            else:
                if plain < len(self._positions) and self._positions[plain] == own:
                    return argument
                plain += 1
        return None

    def _put(self, literal: Literal, value: str) -> None:
        held = isinstance(literal.node, ast.Constant) and isinstance(literal.node.value, str)
        texts = held and not value.startswith(("'", '"'))
        self._edits.replace(literal.source, literal.node, f'"{value}"' if texts else value)
        self._replaced.add(literal.node)


def _value(argument: Argument | None) -> ast.expr | None:
    return argument.value if isinstance(argument, ast.keyword) else argument


def _through_partial(site: Site) -> Site:
    """Of `make(…)` with `make = partial(DataLoader, …)`: the partial, whose arguments they are."""
    for node in site.source.find(ast.Assign):
        made = node.value
        bound = map(ast.unparse, node.targets)
        if (
            isinstance(made, ast.Call)
            and last_name(made.func) == "partial"
            and ast.unparse(site.call.func) in bound
        ):
            return site.with_call(made)
    return site
