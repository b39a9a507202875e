"""A method as an edit sees it: what in it differs from sample to sample, what of its object may be
kept, and the pieces of text that change it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

from ...profiler.store.sampled_fetches import SampleField
from .method import MOVES_ON, Method, called, calls_in, draws, names_of
from .python_text import Piece, PythonText
from .shapes import CHANGES

# Results that can be gone through once only.
_MOVING = (
    *("iter", "map", "filter", "zip", "enumerate", "reversed", "reader", "DictReader"),
    *("scandir", "glob", "iglob", "rglob", "iterdir", "walk", "finditer", "items", "keys"),
    "values",
)
# What opens something that other processes must open for themselves.
OPENS = (
    *("File", "ZipFile", "TarFile", "connect", "open", "ParquetFile", "Dataset", "Environment"),
    *("VideoReader", "VideoCapture", "SoundFile", "OpenSlide", "open_group", "Client", "Session"),
    *("socket", "create_connection"),
)
_IN_PLACE = (
    *("append", "extend", "insert", "pop", "remove", "sort", "reverse", "clear", "update", "add"),
    *("setdefault", "popitem", "discard", "fill_", "add_", "mul_", "copy_", "put", "resize"),
)
# Calls and methods that only read what they are given, or what they are of.
_READS = (
    *("len", "int", "float", "str", "bool", "sorted", "list", "tuple", "set", "dict", "sum"),
    *("min", "max", "enumerate", "zip", "range", "tensor", "array", "print", "repr", "hash"),
    *("get", "get_group", "xs", "keys", "values", "items", "index", "count", "split", "find"),
    *("startswith", "endswith", "strip", "lower", "upper", "encode", "copy", "clone", "mean"),
    *("tolist", "item"),
)


class Editable(Method):
    """A function of this file; `owner` is its class. `kinds` are those of its object's attributes.

    `certain`: nobody tries the edited code, so only what surely gives the same is edited;
    `copies`: what the method returns is copied; `seen`: what the fields of samples were like.
    """

    def __init__(
        self,
        file: PythonText,
        function: ast.FunctionDef,
        kinds: Mapping[str, str] | None = None,
        certain: bool = False,
        copies: bool = False,
        seen: Mapping[str, SampleField] | None = None,
    ) -> None:
        super().__init__(file.text.splitlines(), function=function)
        self.file, self.node, self.kinds = file, function, kinds or {}
        self.certain, self.copies, self.seen = certain, copies, seen or {}
        outer = next(file.parents(function))
        self.owner = outer if isinstance(outer, ast.ClassDef) else None
        self.pieces: list[Piece] = []

    @property
    def self_name(self) -> str | None:
        """How the method calls its object; None of a plain function."""
        plain = [*self.node.args.posonlyargs, *self.node.args.args]
        decorated = {ast.unparse(each) for each in self.node.decorator_list}
        if (self.owner is None and not self.certain) or not plain:
            return None
        return None if decorated & {"staticmethod", "classmethod"} else plain[0].arg

    @property
    def constructor(self) -> ast.FunctionDef | None:
        """The class's own `__init__`, if what stands at its end always runs."""
        init = self.method("__init__")
        if init is None or any(isinstance(each, ast.Return) for each in ast.walk(init)):
            return None
        return init if init.body[0].lineno > init.lineno and init.args.args else None

    def method(self, name: str) -> ast.FunctionDef | None:
        """A method that the class itself defines."""
        for each in self.owner.body if self.owner is not None else ():
            if isinstance(each, ast.FunctionDef) and each.name == name:
                return each
        return None

    def free_name(self, wanted: str) -> str:
        """An attribute's name that nothing in the file has: the wanted one, or one like it."""
        wanted = f"_{wanted.lstrip('_')}{'_once' if self.certain else ''}"
        return self.file.free_name(wanted, "_", self.kinds)

    # What may be kept.

    @cached_property
    def _bound(self) -> set[str]:
        """Names that stand for something else where this is moved to: all that the function binds;
        those that differ from sample to sample where it stays."""
        nodes, moved = ast.walk(self.node), self.constructor is not None
        bound = {each.arg for each in nodes if isinstance(each, ast.arg)} - {self.self_name}
        if moved:
            bound |= {each for each in names_of(self.node) if self.named(each, ast.Store)}
        return {*filter(None, bound)} | self.varying | self._looped

    def is_same(self, node: ast.AST, known: Collection[str] = ()) -> bool:
        """Whether this is the same for every sample: it reads nothing but attributes of the object
        that only `__init__` sets, and names of the module. `known` are further names."""
        own = [each.target for each in ast.walk(node) if isinstance(each, ast.comprehension)]
        used = names_of(node).difference(known, names_of(*own) - self.varying)
        waits = any(isinstance(each, ast.Yield | ast.Await) for each in ast.walk(node))
        if used & self._bound or draws(node) or waits:
            return False
        if self.self_name not in used and not known and not self.certain:
            return False
        return not any(self.set_later(name) for name in self.attributes(node))

    def may_be_kept(self, value: ast.expr, known: Collection[str] = ()) -> bool:
        """Whether it is the same for every sample, and of use more than once."""
        if isinstance(value, ast.GeneratorExp) or not self.is_same(value, known):
            return False
        # What it gives can be gone through once only, or is open.
        if isinstance(value, ast.Call) and called(value) in (*_MOVING, *OPENS):
            return False
        calls = calls_in(value)
        opens = self.certain and any(called(each) in ("iter", *OPENS) for each in calls)
        return not opens and not any(self._moves_on(each, known) for each in calls)

    def _moves_on(self, call: ast.Call, known: Collection[str]) -> bool:
        """Whether it takes the next thing of what the function has opened: what is left out once
        would be given to the next that asks."""
        match call.func:
            case ast.Attribute(ast.Name(name), attribute) if name not in known:
                return attribute in MOVES_ON and bool(self.named(name, ast.Store))
        return False

    def attributes(self, node: ast.AST) -> Iterator[str]:
        for each in ast.walk(node):
            match each:
                case ast.Attribute(ast.Name(name), attribute) if name == self.self_name:
                    yield attribute

    def set_later(self, attribute: str) -> bool:
        """Whether anything in the file besides an `__init__` sets this attribute, or changes what
        it holds."""
        if attribute + CHANGES in self.kinds:
            return True
        for node in self.file.find(ast.Attribute):
            function = self.file.enclosing(node, ast.FunctionDef)
            if node.attr != attribute or (function is not None and function.name == "__init__"):
                continue
            if not isinstance(node.ctx, ast.Load) or self._changes(node):
                return True
        return False

    def _changes(self, node: ast.AST) -> bool:
        """Whether what holds this expression changes its value in place."""
        match next(self.file.parents(node)):
            case ast.Attribute(_, name):
                return name in _IN_PLACE
            case ast.Subscript(value, _, context):
                return value is node and not isinstance(context, ast.Load)
            case ast.Call(func):
                return func is not node and "shuffle" in ast.unparse(func)
        return False

    @cached_property
    def _looped(self) -> set[str]:
        """Names that stand for one value after another."""
        kinds = ast.For | ast.AugAssign
        return {
            name
            for each in ast.walk(self.node)
            if isinstance(each, kinds)
            for name in names_of(each.target)
        }

    def named(self, name: str, context: type[ast.expr_context] = ast.Load) -> list[ast.Name]:
        """Where this function reads the name, or binds it."""
        nodes = (each for each in ast.walk(self.node) if isinstance(each, ast.Name))
        return [each for each in nodes if each.id == name and isinstance(each.ctx, context)]

    def changed_in_place(self, name: str) -> bool:
        """Whether the function changes what the name is bound to, for whoever else holds it."""
        return any(map(self._changes, self.named(name)))

    def stays(self, name: str) -> bool:
        """Whether the function binds this name once, and changes nothing of what it stands for."""
        once = len(self.named(name, ast.Store)) == 1 and not self.named(name, ast.Del)
        other = name in self._looped or name in self.arguments
        if not once or other or self.changed_in_place(name):
            return False
        return not self.certain or self._only_read(name, {name})

    def _only_read(self, name: str, seen: set[str]) -> bool:
        """Whether nothing can change what this name stands for, or what is taken of it."""
        return all(self.reads(node, seen) for node in self.named(name))

    def reads(self, node: ast.AST, seen: set[str]) -> bool:
        """Whether nothing around this expression can change its value, or what is taken of it."""
        outers = self.file.parents(node)
        parent, taken = next(outers), isinstance(node, ast.Subscript)
        match parent:
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.FormattedValue():
                return True
            case ast.If() | ast.Slice():
                return True
            case ast.Subscript(value, _, ast.Load()):
                return value is not node or self.reads(parent, seen)
            case ast.Attribute(_, attribute):
                call = next(outers)
                return isinstance(call, ast.Call) and call.func is parent and attribute in _READS
            case ast.Call(_, args):
                return node in args and called(parent) in _READS
            case ast.Tuple() | ast.List() | ast.Dict():
                return taken and self.reads(parent, seen)
            case ast.Return():
                return self.copies and not isinstance(node, ast.Name)
            case ast.Assign([ast.Name(other)]) if taken:
                return other in seen or self._only_read(other, {*seen, other})
        return False

    # Edits.

    def replace(self, node: ast.AST, new: str) -> None:
        self.pieces.append(self.file.replaced(node, new))

    def wrap(self, node: ast.AST, function: str) -> None:
        """Give what this expression makes to a function."""
        start, end, _ = self.file.replaced(node, "")
        self.pieces += [(start, start, f"{function}("), (end, end, ")")]

    def add_to_end(self, function: ast.FunctionDef, text: str) -> None:
        """More statements at the end of a function."""
        end, margin = self.file.rows(function.body[-1])[1], self.file.margin(function.body[0])
        self.pieces.append(self.file.inserted(end, f"\n{text}", margin))

    def add_import(self, text: str) -> None:
        """Import a module, unless the file does."""
        name = text.rpartition(" ")[2]
        for node in self.file.find(ast.Import):
            if any((each.asname or each.name) == name for each in node.names):
                return
        self.pieces.append(self.file.imported(text))
