"""The call that decides a loader's arguments, the user's own or the options of a framework, and its
arguments changed, added and removed, written as the call is."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from itertools import takewhile

from ..advisors.code.dialects import DIALECTS
from ..advisors.code.loader_code import POSITIONS
from ..advisors.code.loader_form import NEEDS_WORKERS
from ..profiler.base.metadata import clean
from ..profiler.store.making import Making
from .edits import Argument, Edits, without_argument
from .follow import Follower, Place
from .nodes import Site, is_literal, site_of, spread_in
from .project import CannotPatch, Project

# What timm's create_loader takes without keywords.
_OF_TIMM = ("dataset", "input_size", "batch_size")


def change_arguments(
    project: Project,
    edits: Edits,
    making: Making,
    wanted: Mapping[str, str],
    evaluating: bool = False,
) -> None:
    """Set these arguments of DataLoader (name → source) where the loader gets them from.

    `evaluating`: the loader is not that of training. Raises CannotPatch.
    """
    arguments = arguments_of(project, edits, making, evaluating)
    for name, value in wanted.items():
        arguments.set(name, value)
    if wanted.get("num_workers") == "0":
        for name in NEEDS_WORKERS:
            if name not in wanted:
                arguments.remove(name)


def arguments_of(
    project: Project, edits: Edits, making: Making, evaluating: bool = False
) -> Arguments:
    """The arguments of the call that decides. Raises CannotPatch."""
    framework = making.through if not making.again else None
    dialect = DIALECTS.get(framework or "")
    of_trainer = framework == "transformers"
    site = _options(project, "TrainingArguments") if of_trainer else site_of(project, making)
    # Lightning wraps the constructors of loaders while it asks for them.
    if framework is None or (dialect is None and site.callee.endswith("Loader")):
        return Arguments(project, edits, site)
    if dialect is None:
        raise CannotPatch(
            f"{clean(framework, 60)} makes this loader in its {clean(making.call, 60)}(): which of "
            f"its options decides is not known ({site.source.place(site.call)})"
        )
    names = {
        name: option.replace("train_", "eval_") if evaluating else option
        for name, option in dialect.options.items()
    }
    return Arguments(project, edits, site, names, _OF_TIMM if framework == "timm" else ())


def _options(project: Project, ends: str) -> Site:
    """The only call of a class that holds options, of which this is the end of the name."""
    found = [
        Site(source, call)
        for source in project.sources()
        for call in source.find(ast.Call)
        if source.shown(call.func).endswith(ends)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise CannotPatch(
            f"{ends}(…) is called in {len(found)} places: which this loader got is not known"
        )
    raise CannotPatch(f"no {ends}(…) in the project decides it: pass the option where you start it")


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
        self._project, self._edits, self._names = project, edits, names or {}
        self._positions = positions
        self.site = site
        self._replaced: set[ast.AST] = set()

    def value(self, name: str) -> ast.expr | None:
        """What the call itself gives for this argument."""
        found = self._find(name)
        return found.value if isinstance(found, ast.keyword) else found

    def set(self, name: str, value: str) -> None:
        """Raises CannotPatch where the value cannot be traced to something to change."""
        own, found = self._own(name), self.value(name)
        if name in NEEDS_WORKERS:
            value = self._with_workers_alone(value)
        site, follower = self.site, Follower(self._project, own, value)
        if found is not None:
            self._put(follower.literal(Place(site.source, found, site)), value)
            return
        self._not_spread(own, value)
        self._edits.add_argument(site.source, site.call, own, value)

    def replace(self, name: str, value: str) -> None:
        """Put this expression in the call, whatever stands there."""
        own, found, source = self._own(name), self.value(name), self.site.source
        if found is not None:
            self._edits.replace(source, found, value)
        else:
            self._not_spread(own, value)
            self._edits.add_argument(source, self.site.call, own, value)

    def remove(self, name: str) -> None:
        """Leave this argument out, if it is given."""
        found, own, site = self._find(name), self._names.get(name, name), self.site
        if found is None:
            self._not_spread(own, "nothing")
        if isinstance(found, ast.keyword):
            self._edits.add(site.source, [without_argument(site.source, site.call, found)])
        elif found is not None:
            raise CannotPatch(f"{own} is given without its name: name the arguments first")

    def _not_spread(self, own: str, value: str) -> None:
        """Raises CannotPatch where the argument may be among those of a `**`."""
        for spread in spread_in(self.site.call):
            source = self.site.source
            raise CannotPatch(
                f"what `{source.shown(spread)}` of {source.place(spread)} holds is not known; "
                f"{own} should come to {value}"
            )

    def _with_workers_alone(self, value: str) -> str:
        """The value of an option of workers, in a call whose number of workers others decide: torch
        refuses it where they say 0."""
        workers = self.value("num_workers")
        if workers is None or is_literal(workers) or workers in self._replaced:
            return value
        text = self.site.source.of(workers)
        return f"{text} > 0" if value == "True" else f"{value} if {text} > 0 else None"

    def _own(self, name: str) -> str:
        if self._names and name not in self._names:
            raise CannotPatch(f"{self.site.callee} takes no {name}")
        return self._names.get(name, name)

    def _find(self, name: str) -> Argument | None:
        call = self.site.call
        # Behind a `*`, nobody knows which is which.
        plain = takewhile(lambda each: not isinstance(each, ast.Starred), call.args)
        given: dict[str | None, Argument] = dict(zip(self._positions, plain, strict=False))
        given |= {each.arg: each for each in call.keywords}
        return given.get(self._names.get(name, name))

    def _put(self, literal: Place, value: str) -> None:
        held = isinstance(literal.node, ast.Constant) and isinstance(literal.node.value, str)
        texts = held and not value.startswith(("'", '"'))
        self._edits.replace(literal.source, literal.node, f'"{value}"' if texts else value)
        self._replaced.add(literal.node)
