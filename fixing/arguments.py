"""Arguments of a call changed, added and removed, written as the call is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import libcst as cst
import libcst.matchers as m

from ..advisors.code.loader_form import NEEDS_WORKERS
from .edits import Edits
from .follow import Follower, Literal
from .nodes import is_called, is_dict, is_literal, spread_in, targets_of
from .project import CannotPatch, Project
from .sites import Site

# What DataLoader takes without a keyword, in this order.
POSITIONS = (
    *("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers"),
    *("collate_fn", "pin_memory", "drop_last", "timeout", "worker_init_fn"),
    "multiprocessing_context",
)


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
        self._replaced: set[cst.CSTNode] = set()

    def value(self, name: str) -> cst.BaseExpression | None:
        """What the call itself gives for this argument."""
        found = self._find(self._named(name) or name)
        return found.value if found is not None else None

    def set(self, name: str, value: str) -> None:
        """Raises CannotPatch where the value cannot be traced to something to change."""
        own = self._own(name)
        if name in NEEDS_WORKERS:
            value = self._with_workers_alone(value)
        new = cst.parse_expression(value)
        found = self._find(own)
        follower = Follower(self._project, own, value)
        if found is not None:
            self._put(follower.follow(self.site, found.value), value)
            return
        for spread in spread_in(self.site.call):
            entry = follower.entry(self.site, spread)
            if isinstance(entry, Literal):
                self._put(entry, value)
                return
            passed_on = isinstance(entry.node, cst.Call) and entry.node is not self.site.call
            if passed_on and not is_dict(entry.node):
                self._add(Site(entry.source, entry.node), own, new)  # type: ignore[arg-type]
                return
        self._add(self.site, own, new)

    def replace(self, name: str, value: cst.BaseExpression) -> None:
        """Put this expression in the call, whatever stands there."""
        own = self._own(name)
        found = self._find(own)
        if found is not None:
            self._edits.edit(self.site.source, found, lambda arg: arg.with_changes(value=value))
        else:
            self._add(self.site, own, value)

    def remove(self, name: str) -> None:
        """Leave this argument out, if it is given."""
        own = self._named(name) or name
        found = self._find(own)
        if found is None:
            for spread in spread_in(self.site.call):
                entry = Follower(self._project, own, "nothing").entry(self.site, spread)
                if isinstance(entry, Literal):
                    raise CannotPatch(f"{own} comes from `{self.site.source.text(spread)}`")
            return
        if found.keyword is None:
            raise CannotPatch(f"{own} is given without its name: name the arguments first")
        self._edits.edit(self.site.source, self.site.call, lambda call: _without(call, own))

    def _with_workers_alone(self, value: str) -> str:
        """The value of an option of workers, in a call whose number of workers others decide: torch
        refuses it where they say 0."""
        workers = self.value("num_workers")
        if workers is None or is_literal(workers) or workers in self._replaced:
            return value
        text = self.site.source.module.code_for_node(workers)
        return f"{text} > 0" if value == "True" else f"{value} if {text} > 0 else None"

    def _own(self, name: str) -> str:
        own = self._named(name)
        if own is None:
            raise CannotPatch(f"{self.site.callee} takes no {name}")
        return own

    def _named(self, name: str) -> str | None:
        return name if self._names is None else self._names.get(name)

    def _find(self, own: str) -> cst.Arg | None:
        plain = 0
        for arg in self.site.call.args:
            if arg.keyword is not None:
                if arg.keyword.value == own:
                    return arg
            elif arg.star == "*":
                plain += len(POSITIONS)  # nobody knows how many
            elif not arg.star:
                if plain < len(self._positions) and self._positions[plain] == own:
                    return arg
                plain += 1
        return None

    def _put(self, literal: Literal, value: str) -> None:
        texts = isinstance(literal.node, cst.SimpleString) and not value.startswith(("'", '"'))
        new = cst.parse_expression(f'"{value}"' if texts else value)
        self._edits.replace(literal.source, literal.node, new)
        self._replaced.add(literal.node)

    def _add(self, site: Site, own: str, value: cst.BaseExpression) -> None:
        self._edits.edit(site.source, site.call, lambda call: with_argument(call, own, value))


def _through_partial(site: Site) -> Site:
    """Of `make(…)` with `make = partial(DataLoader, …)`: the partial, whose arguments they are."""
    for node in site.source.find(cst.Assign):
        made = isinstance(node.value, cst.Call) and is_called(node.value, "partial")
        if made and any(site.call.func.deep_equals(each) for each in targets_of(node)):
            return site.with_call(node.value)
    return site


def with_argument(call: cst.Call, name: str, value: cst.BaseExpression) -> cst.Call:
    """The call with one more keyword, before any `**`, spaced and broken as its others are."""
    args = list(call.args)
    at = next((n for n, arg in enumerate(args) if arg.star == "**"), len(args))
    style = next((arg.equal for arg in reversed(args) if arg.keyword is not None), None)
    equal = style if isinstance(style, cst.AssignEqual) else _TIGHT
    new = cst.Arg(value, keyword=cst.Name(name), equal=equal)
    if not args:
        return call.with_changes(args=[new])
    if at < len(args):
        new = new.with_changes(comma=_between(call, args, at))
        return call.with_changes(args=[*args[:at], new, *args[at:]])
    last = args[-1]
    comma, after = last.comma, last.whitespace_after_arg
    new = new.with_changes(comma=_uncommented(comma), whitespace_after_arg=after)
    between = _between(call, args, len(args) - 1)
    if isinstance(comma, cst.Comma):  # its comment is about the argument before
        between = _with_comment(between, comma.whitespace_after)
    else:
        between = _with_comment(between, after)
        new = new.with_changes(whitespace_after_arg=_bare(after))
    args[-1] = last.with_changes(comma=between, whitespace_after_arg=cst.SimpleWhitespace(""))
    return call.with_changes(args=[*args, new])


_TIGHT = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def _between(call: cst.Call, args: Sequence[cst.Arg], at: int) -> cst.Comma:
    """The comma that separates two arguments of this call."""
    for arg in args[:at]:
        if isinstance(arg.comma, cst.Comma) and arg is not args[-1]:
            found: cst.Comma = _uncommented(arg.comma)
            return found
    before = call.whitespace_before_args
    broken = isinstance(before, cst.ParenthesizedWhitespace)
    return cst.Comma(whitespace_after=_bare(before) if broken else cst.SimpleWhitespace(" "))


def _uncommented(comma: Any) -> Any:
    if not isinstance(comma, cst.Comma):
        return comma
    return comma.with_changes(whitespace_after=_bare(comma.whitespace_after))


def _bare(space: Any) -> Any:
    """The same break without comments and empty lines."""
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return space
    first = space.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
    return space.with_changes(first_line=first, empty_lines=[])


def _with_comment(comma: cst.Comma, space: Any) -> cst.Comma:
    """The comma with the comments of another break."""
    after = comma.whitespace_after
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return comma
    if not isinstance(after, cst.ParenthesizedWhitespace):
        if space.first_line.comment is None and not space.empty_lines:
            return comma
        return comma.with_changes(whitespace_after=space)
    kept = after.with_changes(first_line=space.first_line, empty_lines=space.empty_lines)
    return comma.with_changes(whitespace_after=kept)


def _without(call: cst.Call, name: str) -> cst.Call:
    """The call without this keyword."""
    args = list(call.args)
    at = next(n for n, arg in enumerate(args) if m.matches(arg, m.Arg(keyword=m.Name(name))))
    removed = args.pop(at)
    if at == len(args) and args:
        args[-1] = args[-1].with_changes(
            comma=removed.comma, whitespace_after_arg=removed.whitespace_after_arg
        )
    return call.with_changes(args=args)
