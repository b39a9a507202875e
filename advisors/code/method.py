"""A method that gives samples, as its source was recorded: its statements, and what in it differs
from sample to sample."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress

# A line that draws differs from sample to sample, whatever it depends on; so does the time.
_DRAWS = re.compile(r"rand|Random|choice|shuffle|(?<![Rr]e)sample|uniform|normal|time|next|now$")
# Methods of open files, queues, cameras and the like, which may give something else each time.
MOVES_ON = (
    *("read", "readline", "readlines", "get", "pop", "popleft", "recv"),
    *("integers", "permutation", "draw", "step", "grab", "retrieve", "fetchone", "fetchall"),
)
# Nobody of the program's own calls them, so what they get is not known.
ENTRIES = ("", "__getitem__", "__getitems__", "__iter__", "__call__")
# Names of what may give something else in each epoch.
MAY_DRAW = re.compile(
    r"rand|(?:choices?|shuffle|sample|uniform|normal)\(|transform|augment|noise|jitter|pipeline|mix|"
    "drop|perturb|epoch",
    re.I,
)
_RANDOM = re.compile(r"\brandom\b|\brng\b|\brand\w*\(|\b(?:choice|uniform|normal)\(")
_LOOPS = (ast.For, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_PASSES = 2  # a loop carries values back to its beginning


class Method:
    """`function` is None, and `name` "", where the source cannot be read. `varying` are those of
    its arguments that differ from sample to sample: all, if not given."""

    def __init__(
        self,
        source: Sequence[str],
        varying: Iterable[str] | None = None,
        function: ast.FunctionDef | None = None,
        drawing: Set[str] = frozenset(),
        anew: Set[str] = frozenset(),
    ) -> None:
        """`function`: of a source that holds others too. `drawing`: own functions that draw;
        `anew`: methods of objects that differ from sample to sample."""
        text = "\n".join(source)
        self.source = tuple(text.split("\n"))
        nodes = ast.walk(function or parsed(text))
        self.function = next((each for each in nodes if isinstance(each, ast.FunctionDef)), None)
        self.name = self.function.name if self.function is not None else ""
        self.statements: list[ast.stmt] = []
        self.varying: set[str] = set()
        self.arguments: list[str] = []
        self.steady: set[str] = set()  # those that stay the same while a loop calls it
        self.lazy = False  # what it returns does the work, for each sample
        self.loops: dict[ast.stmt, ast.stmt] = {}  # the outermost loop that a statement stands in
        if self.function is None:
            return
        if varying != set():  # of lambdas, what a function that is given more hands them
            lambdas = (each for each in ast.walk(self.function) if isinstance(each, ast.Lambda))
            self.varying |= {each.arg for made in lambdas for each in made.args.args}
        if not self.function.args.args:
            return
        self.statements = _statements_in(self.function)
        arguments = [*self.function.args.posonlyargs, *self.function.args.args]
        own = arguments[0].arg == "self" or self.name.startswith("__getitem")
        self.arguments = [each.arg for each in arguments[own:]]
        self.varying |= {*(self.arguments if varying is None else varying), *drawing}
        self.varying |= {"self"} if self.name in anew else set()
        if self.name == "__iter__" or yields(self.function):
            # What its loops hold is done for each sample.
            loops = [each for each in self.statements if isinstance(each, _LOOPS)]
            inner = {each for loop in loops for each in _statements_in(loop)[1:]}
            over = [each for each in loops if each not in inner]
            before = (each for each in self.statements if each not in inner)
            self.lazy = not over
            within = [each for loop in over for each in _statements_in(loop)[1:]]
            self.statements = within or self.statements
            calls = [call for loop in over for call in calls_in(loop) if called(call) in MOVES_ON]
            moved = names_of(*(call.func for call in calls))
            carried = bound_by(*before) & (bound_by(*self.statements) | moved)
            self.varying |= bound_by(*over) | carried
        for loop in self.statements:
            if isinstance(loop, _LOOPS):
                for each in _statements_in(loop):
                    self.loops.setdefault(each, loop)
        for _ in range(_PASSES):
            for each in self.statements:
                for node in nodes_read(each):
                    if isinstance(node, ast.comprehension) and self.varies(node.iter):
                        self.varying |= names_of(node.target)
                read = read_by(each)
                names = {own_function(call) for value in read for call in calls_in(value)}
                if self.varies(*read) or any(map(draws, read)) or names & drawing:
                    self.varying |= {*bound_by(each), *grown_by(each)}

    def at(self, line: str) -> ast.stmt | None:
        """The statement that this line is of, the first of several such lines."""
        places = [n for n, each in enumerate(self.source, 1) if each.strip() == line.strip()]
        if not places or not line.strip():
            return None
        found = [each for each in self.statements if each.lineno <= places[0] <= _last(each)]
        return found[-1] if found and not isinstance(found[-1], ast.FunctionDef) else None

    def text(self, statement: ast.stmt) -> str:
        """A statement as one line; of a block, its head."""
        lines = self.source[statement.lineno - 1 : _last(statement)]
        return " ".join(each.strip() for each in lines)

    def varies(self, *nodes: ast.AST) -> bool:
        """Whether a name in these differs from sample to sample."""
        return bool(names_of(*nodes) & self.varying)

    def after(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements below this one, without those of the other branch of an `if`."""
        other = set[ast.AST]()
        for each in self.statements:
            if isinstance(each, ast.If) and statement in ast.walk(ast.Module(each.body, [])):
                other |= {*ast.walk(ast.Module(each.orelse, []))}
        below = self.statements[self.statements.index(statement) + 1 :]
        return [each for each in below if each not in other]

    def augments(self, line: str) -> bool:
        """Whether a call on this line is given a random value besides what it is for."""
        if (statement := self.at(line)) is None:
            return False
        random = (each for each in self.statements if _RANDOM.search(self.text(each)))
        drawn = bound_by(*random)
        return any(
            _RANDOM.search(text := ast.unparse(value)) or text in drawn
            for call in calls_in(statement)
            if not re.search("load|read|open|decode", called(call))
            for value in (*call.args[1:], *(each.value for each in call.keywords))
        )

    def given(self, call: ast.Call, varying: set[str]) -> set[str]:
        """The arguments to which this call of it gives what is drawn, or made of these names."""
        if any(isinstance(each, ast.Starred) for each in call.args):
            return {*self.arguments}
        values: list[tuple[str | None, ast.expr]] = [*zip(self.arguments, call.args, strict=False)]
        values += [(each.arg, each.value) for each in call.keywords]
        found = {name for name, value in values if names_of(value) & varying or draws(value)}
        return {*self.arguments} if None in found else {name for name in found if name is not None}

    def rounds(
        self, statement: ast.stmt
    ) -> Iterator[tuple[list[ast.expr], set[str], list[ast.AST]]]:
        """Of each `for` around this statement, and of comprehensions in it: what it goes over, the
        names that differ from one round to the next, and what the statement evaluates in each."""
        for loop in self.statements:
            inside = [each for each in ast.walk(loop) if isinstance(each, ast.stmt)]
            if isinstance(loop, ast.For) and statement in inside[1:]:
                changed = bound_by(*inside).union(*map(grown_by, inside))
                yield [loop.iter], changed, nodes_read(statement)
        for made in nodes_read(statement):
            if isinstance(made, _COMPREHENSIONS):
                over = [each.iter for each in made.generators]
                head = {node for each in over for node in ast.walk(each)}
                changed = names_of(*(each.target for each in made.generators))
                yield over, changed, [node for node in ast.walk(made) if node not in head]


def linked(sources: Iterable[Sequence[str]], fixed: Iterable[str] = ()) -> list[Method]:
    """These functions, of which an argument varies only if one of the calls among them gives it
    what does; all arguments of those that nothing here calls, unless their names are `fixed`."""
    methods = [Method(source) for source in sources]
    trees = [each.function for each in methods if each.function is not None]
    functions = [
        each for tree in trees for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)
    ]
    named = Counter(method.name for method in methods)
    called = {own_function(call) for each in functions for call in calls_in(each)}
    known = {name for name in called if named[name] == 1 and name not in ENTRIES}
    given = {name: set[str]() for name in (*fixed, *known)}
    drawing = {each.name for each in functions if draws(each)}
    anew = set[str]()
    while True:
        before = {name: {*found} for name, found in given.items()}, {*anew}, {*drawing}
        drawing |= {
            each.name
            for each in functions
            if any(own_function(call) in drawing for call in calls_in(each))
        }
        methods = [
            Method(each.source, given.get(each.name), each.function, drawing, anew)
            for each in methods
        ]
        own = {method.name: method for method in methods}
        for caller in methods:
            for node in ast.walk(caller.function or ast.Module([], [])):
                match node:
                    case ast.Call() if (name := own_function(node)) in given:
                        given[name] |= own[name].given(node, caller.varying)
                    case ast.Attribute(of, name) if caller.varies(of):
                        anew.add(name)
        if (given, anew, drawing) == before:
            break
    for caller in methods:
        for _, changed, nodes in (each for of in caller.statements for each in caller.rounds(of)):
            for call in (node for node in nodes if isinstance(node, ast.Call)):
                if (name := own_function(call)) in given:
                    own[name].steady |= {*own[name].arguments} - own[name].given(call, changed)
    return methods


def own_function(call: ast.Call) -> str:
    """The name of the function of the same module, or method of the same object, that it is of."""
    match call.func:
        case ast.Name(name) | ast.Attribute(ast.Name("self"), name):
            return name
    return ""


def _statements_in(tree: ast.AST) -> list[ast.stmt]:
    found = [each for each in ast.walk(tree) if isinstance(each, ast.stmt)]
    return sorted(found, key=lambda each: each.lineno)


def parsed(source: str) -> ast.AST:
    """The source as a tree, of the head of a block too; an empty one if it cannot be read."""
    for text in (source.strip(), f"{source.strip()} pass"):
        with suppress(SyntaxError, ValueError, RecursionError):
            return ast.parse(text)
    return ast.Module([], [])


def read_by(statement: ast.stmt) -> list[ast.expr]:
    """The expressions that this statement itself evaluates, not those of its body."""
    found = []
    for name, value in ast.iter_fields(statement):
        for each in value if isinstance(value, list) else [value]:
            read = getattr(each, "context_expr", each)
            if isinstance(read, ast.expr) and name not in ("targets", "target"):
                found.append(read)
    return found


def nodes_read(statement: ast.stmt) -> list[ast.AST]:
    """All nodes of these expressions."""
    return [node for each in read_by(statement) for node in ast.walk(each)]


def bound_by(*statements: ast.stmt) -> set[str]:
    """The names that these give a value, or into which they write."""
    targets = []
    for each in statements:
        targets += [*getattr(each, "targets", ()), getattr(each, "target", None)]
        targets += [item.optional_vars for item in getattr(each, "items", ())]
    return names_of(*filter(None, targets))


def calls_in(tree: ast.AST) -> list[ast.Call]:
    return [each for each in ast.walk(tree) if isinstance(each, ast.Call)]


def yields(tree: ast.AST) -> bool:
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(tree))


def called(call: ast.Call) -> str:
    """'collect' of `gc.collect()`."""
    return ast.unparse(call.func).rpartition(".")[2]


def given_to(call: ast.Call) -> list[ast.expr]:
    """The values of its arguments."""
    return [*call.args, *(each.value for each in call.keywords)]


def repeated_calls(loop: ast.AST) -> list[ast.Call]:
    """Those in a loop or comprehension that are made again for each value that it goes over."""
    heads = [loop, *getattr(loop, "generators", ())]
    once = {call for each in heads if hasattr(each, "iter") for call in calls_in(each.iter)}
    return [call for call in calls_in(loop) if call not in once]


def draws(tree: ast.AST) -> bool:
    """Whether a call in it may give something else each time, whatever it depends on."""
    functions = (ast.unparse(call.func) for call in calls_in(tree))
    return any(
        "random" in function
        or _DRAWS.search(name := function.rpartition(".")[2])
        or (function.startswith("self.") and name in MOVES_ON)
        for function in functions
    )


def names_of(*nodes: ast.AST) -> set[str]:
    """The names in these nodes, not those behind dots or of keywords."""
    return {each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)}


def grown_by(statement: ast.stmt) -> Iterator[str]:
    """What a method is called of, as `found.append(…)` is."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name)))):
            yield name


def _last(statement: ast.stmt) -> int:
    """The last line of a statement; of a block, of its head."""
    body = getattr(statement, "body", None)
    return body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
