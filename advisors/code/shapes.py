"""What the source of a method says is wrong with one of its lines, whatever the functions in it are
called: that its result is the same for every sample, that it searches, goes through values one by
one, makes more than is used, or is not needed at all."""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ...profiler.store.inspection import Part
from .method import (
    ENTRIES,
    MAY_DRAW,
    MOVES_ON,
    Method,
    bound_by,
    called,
    calls_in,
    draws,
    given_to,
    grown_by,
    names_of,
    nodes_read,
    own_function,
    read_by,
    repeated_calls,
)

# Calls that training does without, because the interpreter or torch does it anyway; and statements
# that are for their effect alone, which no sample needs.
_NEEDLESS = re.compile(
    r"^[^#]*(?<![\w.])(?:gc\.collect|torch\.cuda\.(?:empty_cache|synchronize))\(|"
    r"^(?:[\w.]+\.)?(?:p?print|flush|fsync|write|debug|info|warn(?:ing)?|log)\("
)
# How objects of a multiprocessing.Manager ask its process.
_ASKS = "BaseProxy._callmethod"
_SMALLER = re.compile("resize|crop|thumbnail|interpolate|downscale|decimate|subsample")
_DRAWN = ("choice", "choices", "sample")  # a few of many
# The same values seen in another way: what is taken of it is taken of what it was made of.
_VIEWS = (
    *("frombuffer", "reshape", "view", "asarray", "from_numpy", "as_tensor", "transpose"),
    *("permute", "squeeze", "unsqueeze", "astype", "float", "splitlines"),
)
_OTHERS = re.compile("not in|!=")  # what most are
# Calls that copy all that they are given.
_COPIES = re.compile("array|asarray|stack|tensor|list|tuple")
# Calls that search what they are of for the value that they are given.
_SEARCHES = ("index", "query", "isin", "where", "nonzero", "argwhere", "flatnonzero")
_LISTS = ("list", "tuple", "texts", "paths", "numbers", "tensor", "ndarray")
# Calls that are given all of a collection and look at a part of it, or hand it on.
_QUICK = re.compile(
    "len|take|get|getitem|searchsorted|index_select|gather|iter|next|enumerate|zip|"
    "range|isinstance|type|id|getattr|hasattr|partial|bisect|bisect_left|bisect_right|"
    "itemgetter|open|print|choice|choices|sample"
)
# Methods that go through all of what they are of.
_OF_ALL = re.compile(
    "mean|std|sum|min|max|copy|clone|astype|tolist|to_dense|to_numpy|sort_values|"
    "sort|argsort|unique|groupby|merge|count"
)
# Calls whose result depends on all values that they are given: no part of it is made alone.
_OF_WHOLE = re.compile(
    r"\b(?:\w*unique|\w*sort|sorted|cum\w+|i?r?fft\w*|svd|eig\w*|median|\w*nonzero|argwhere)\b"
)
MANY = 1000  # a collection of so many is not gone through for each sample
# Calls that make a list of all.
_LISTED = re.compile(
    "list|sorted|tolist|values|namelist|getnames|listdir|readlines|splitlines|split|glob"
)
# Calls that make something to be filled or changed.
_NEW = re.compile("zeros|copy|deepcopy|clone|dict|items|keys|values")
# After the name of an attribute that methods change, and of a method that does.
CHANGES = " changes"
# The kind of a method that is known to change nothing.
METHOD = "method"
DEQUE = "deque"
# What costs a call, whatever it is for: many in a loop are one for all values.
_SMALL = re.compile(
    "randrange|randint|random|choice|uniform|gauss|item|float|int|bool|round|abs|"
    "min|max|len|range|enumerate|zip|get|add|from_numpy|as_tensor|asarray|array|"
    "numpy|unsqueeze|reshape|view|mean|std|any|all|clip|norm|dot|pow|floor|ceil|"
    "median|tuple|seek|fromfile|unpack|unpack_from|frombuffer|calcsize|extend|tensor|"
    "sqrt|exp|log|sum|isnan|ord|chr|where|cat|concatenate|append|vstack|hstack|"
    "concat|index|pop|popleft|zeros|ones|empty|full|arange|astype|int32|int64|"
    "float32"
)


@dataclass(frozen=True)
class Shape:
    """What is wrong with a line, as advice: a title, a continuation of "`line` takes 90 % of
    fetch", and what to do. `saves` is the part of the line's time that surely goes. Of a line that
    is `waste`, none of it need be done."""

    key: str
    title: str
    why: str
    do: str
    saves: float
    caveat: str | None = None
    waste: bool = True


_OTHER_PROCESS = Shape(
    "other process",
    "Use a plain dict, list or array, not a Manager's proxy",
    ", and each sample asks another process for it",
    "fill it before training, or in each worker.",
    0.9,
)
_NOT_NEEDED = Shape(
    "not needed", "Leave this out", ", and training does without it", "delete this call.", 1.0
)
_SAME = Shape(
    "same",
    "Do once what is the same for every sample",
    ", and depends only on `self`: every sample gets the same result",
    "make it once, in __init__ or at first use in each worker, and keep it in self.",
    0.97,
    "What it reads must not change while training goes on.",
)
_SEARCHED = Shape(
    "searched",
    "Look this up instead of searching for it",
    ", and searches through everything for one sample",
    "make a dict, a set, a sorted index or cumulative sums once, and look there (np.searchsorted).",
    0.9,
)
ALL = "all for one"
_ALL = Shape(
    ALL,
    "Do not scan a whole collection for each sample",
    ", and goes through all of `{}` for one sample",
    "take only what this sample needs of it, without a copy; or compute once what this looks for "
    "(a set, a dict, positions by value, cumulative sums), or redraw until it fits.",
    0.95,
    waste=False,
)
_PART_READ = Shape(
    "whole for a part",
    "Read only the part that is used",
    ", and reads everything where only a part is used",
    "leave out the [:], and use the index while the data are open.",
    0.3,
    "If the data are chunked, the chunks that hold the part are still read in full.",
)
_MADE_AGAIN = Shape(
    "again in a loop",
    "Do this once before the loop, not in each of its rounds",
    ", and `{}` gives the same in each round of a loop",
    "make it once before the loop, and use it there; or take only the items that are needed.",
    0.5,
)
# Their work is needed, but not done so. What is done stands in the place of {}.
_PART_USED = Shape(
    "whole for a part",
    "Process only what is used",
    ", and only part of its result is used: `{}`",
    "take the part, or shrink the input, before this line.",
    0.5,
    "Values may differ slightly if the order of the two steps matters.",
    waste=False,
)
_WALKED = Shape(
    "deque",
    "Use a list or an array, not a deque, for access by index",
    ", and a deque is walked to reach each item",
    "use a list that overwrites its oldest item, or an array.",
    0.8,
)
ONE_BY_ONE = "one by one"
_ONE_BY_ONE = Shape(
    ONE_BY_ONE,
    "Do this for all values at once, not one by one",
    ", in a loop, one by one (`{}`)",
    "collect in a list and join once, or use one NumPy or torch operation for all values.",
    0.85,
    waste=False,
)


@dataclass(frozen=True)
class _Line:
    """A statement of a method; `held` as for `shape_of`."""

    method: Method
    statement: ast.stmt
    held: Mapping[str, str]

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """What it reads."""
        return nodes_read(self.statement)

    @property
    def loop(self) -> ast.stmt | None:
        """The outermost loop that it stands in."""
        return self.method.loops.get(self.statement)

    @cached_property
    def changed(self) -> set[str]:
        """The names made of attributes that change."""
        makers = (each for each in self.method.statements if _changes(nodes_read(each), self.held))
        return bound_by(*makers)

    def varies(self, *nodes: ast.AST) -> bool:
        return self.method.varies(*nodes) or bool(names_of(*nodes) & self.changed)


def shape_of(
    method: Method, text: str, called_below: str = "", held: Mapping[str, str] | None = None
) -> Shape | None:
    """The shape of this line of a method, and of the function that takes most of it. None where
    nothing is known to be wrong with it. `held` are the kinds of the data set's attributes and
    methods. It has "name changes" of those that change, "name[]" for the kind of their items,
    "name#" for the length of those of MANY items, and "global name" for its module's lists."""
    if _ASKS in called_below:
        return _OTHER_PROCESS
    if _NEEDLESS.search(text):
        return _NOT_NEEDED
    if (statement := method.at(text)) is None or method.lazy:
        return None
    line = _Line(method, statement, held or {})
    if isinstance(statement, ast.For) and _until_met(statement, line):
        return _SEARCHED
    if _same_for_every_sample(line):
        return _SAME
    nested, singly = _in_nested_loops(line), _one_by_one(line)
    smaller = _made_smaller(line) or _taken_here(line, called_below)
    loops = (each.iter for each in line.nodes if isinstance(each, ast.comprehension))
    table = any(_counts(over) and not line.varies(over) for over in loops)
    # What depends on all values, or is a table of which samples use all.
    if _OF_WHOLE.search(f"{called_below} {text}") or (singly and table):
        smaller = None
    if nested is None and _searched(line):
        return _SEARCHED
    if _walks(line):
        return _WALKED
    if nested is None and (taken_of_whole(statement, method) or (smaller and _all_of(statement))):
        return _PART_READ
    for found, shape in (
        (_made_again(line, called_below), _MADE_AGAIN),
        (nested, replace(_ONE_BY_ONE, waste=True)),
        (smaller, _PART_USED),
        (_all_for_one(line), _ALL),
        (singly, _ONE_BY_ONE),
    ):
        if found is not None:
            return replace(shape, why=shape.why.format(found[:70]))
    return None


def kinds_of(part: Part) -> dict[str, str]:
    """The kinds of a data set's attributes and methods, by name, as `shape_of` takes them."""
    methods = [Method(source) for source in (part.getitem, part.getitems, part.iter, *part.helpers)]
    lengths = {each.name: each.length or (each.shape or (0,))[0] for each in part.attributes}
    return {
        **{each.name: each.kind for each in part.attributes},
        **{each.name: DEQUE for each in part.attributes if each.type.endswith(DEQUE)},
        **{f"{each.name}[]": each.items for each in part.attributes if each.items is not None},
        **{f"{name}#": f"{length:,}" for name, length in lengths.items() if length >= MANY},
        **{f"global {each.name}": each.kind for each in part.globals},
        **{each.name: METHOD for each in methods[3:] if each.name},
        **dict.fromkeys(changing(methods), ""),
    }


def _depends_only_on(names: set[str], line: _Line) -> bool:
    """Whether what this line makes depends on some of these arguments, and on nothing else that
    differs from sample to sample."""
    if not names or not isinstance(line.statement, ast.Assign) or not line.varies(*line.nodes):
        return False
    method = line.method
    others = Method(method.source, {*method.arguments} - names, method.function)
    return _is_same(line.nodes, replace(line, method=others))


def _same_for_every_sample(line: _Line) -> bool:
    """Whether this line of a `__getitem__`, or what it takes its part of (`json.load(f)[index]`),
    depends on nothing but `self` and constants: it could be made once. False if that is not
    known."""
    if isinstance(line.statement, ast.Expr):
        return False  # it makes nothing that could be kept
    parts = [line.nodes]
    for node in line.nodes if not taken_of_whole(line.statement, line.method) else ():
        match node:
            case ast.Subscript(of, key) | ast.Call(
                ast.Attribute(of, "get" | "get_group" | "xs"), [key, *_]
            ) if line.varies(key):
                made = [each for each in line.method.statements if names_of(of) & bound_by(each)]
                match made:
                    case [ast.Assign([ast.Name()], value)] if isinstance(node, ast.Call):
                        of = value  # what makes its results only when asked for them
                parts.append([*ast.walk(of)])
    return any(_is_same(part, line) for part in parts)


def same_each_time(method: Method, held: Mapping[str, str]) -> Shape | None:
    """Whether all that this function does depends on nothing but `self` and constants."""
    if method.function is None or method.varying or method.name in ENTRIES:
        return None
    nodes = [*ast.walk(method.function)]
    gives = any(isinstance(each, ast.Return) for each in nodes)
    return _SAME if gives and _is_same(nodes, _Line(method, method.function, held)) else None


def repeats(method: Method, text: str, held: Mapping[str, str]) -> bool:
    """Whether this line, or this function as a whole, gives the same in every epoch. `method` is by
    what differs from one epoch to the next; what may be a transform's is not known."""
    statement = method.function if text == method.name else method.at(text)
    if statement is None or method.name in ("__iter__", "__getitems__"):
        return False
    nodes, unknown = [*ast.walk(statement)], {*method.arguments}
    held = {**held, **{each.attr: METHOD for each in nodes if isinstance(each, ast.Attribute)}}
    return (
        not any(own_function(call) in unknown for call in calls_in(statement))
        and not MAY_DRAW.search(ast.unparse(statement))
        and _is_same(nodes, _Line(method, statement, held))
    )


def _is_same(nodes: list[ast.AST], line: _Line) -> bool:
    """Whether all of this depends on nothing but `self` and constants, and something is called."""
    works, held = False, line.held
    if _changes(nodes, held):
        return False
    for node in nodes:
        match node:
            case ast.Call(ast.Attribute(ast.Name(), name)) if name in MOVES_ON and line.loop:
                if line.varies(line.loop):
                    return False  # how far it goes differs
                works = True
            # A method, or a function held, may give something else each time.
            case ast.Call(ast.Attribute(ast.Name("self"), name)) if held.get(name) != METHOD:
                return False
            case ast.Subscript(ast.Attribute(ast.Name("self")), ast.Attribute(ast.Name("self"))):
                works = True  # a copy
            # It goes through what this call has made; an attribute may move on as it is read.
            case ast.Call() | ast.comprehension(iter=ast.Name()):
                works = True
    return works and not line.varies(*nodes) and not any(map(draws, nodes))


def _changes(nodes: Iterable[ast.AST], held: Mapping[str, str]) -> bool:
    """Whether an attribute in these changes."""
    return any(isinstance(each, ast.Attribute) and each.attr + CHANGES in held for each in nodes)


def changing(methods: Iterable[Method]) -> set[str]:
    """The attributes that these methods change, or of which a stream takes something, and those of
    the methods that change any, or that draw; each with CHANGES."""
    found: set[str] = set()
    for function in (each.function for each in methods if each.function is not None):
        changed: set[str] = set()
        for node in ast.walk(function):
            match node:
                case ast.Attribute(_, name, ast.Store() | ast.Del()):
                    changed.add(name)
                case ast.Subscript(of, _, ast.Store() | ast.Del()) | ast.Expr(
                    ast.Call(ast.Attribute(of))
                ):
                    while isinstance(of, ast.Subscript):  # self.seen[key].append(…)
                        of = of.value
                    changed |= {of.attr} if isinstance(of, ast.Attribute) else set()
                case ast.Call(ast.Attribute(ast.Attribute(_, name))) if function.name == "__iter__":
                    changed.add(name)
        if changed or draws(function):
            found |= {*changed, function.name}
    return {name + CHANGES for name in found}


def _searched(line: _Line) -> bool:
    """Whether this line tests all of something against what differs from sample to sample, or goes
    through it until a test holds."""
    if isinstance(line.loop, ast.For) and _until_met(line.loop, line):
        return True
    for node in line.nodes:
        match node:
            case ast.Subscript(of, key) if _compares(key, line, not line.varies(of)):
                return True
            case ast.comprehension(ifs=tests) if any(
                _compares(each, line) and not _OTHERS.search(ast.unparse(each)) for each in tests
            ):
                return True
            case ast.ListComp(made, [found]) | ast.GeneratorExp(made, [found]):
                most = _OTHERS.search(ast.unparse(found))
                if not (calls_in(made) or most) and _tests_all(found, found.ifs, line):
                    return True
            case ast.Compare(left, [ast.In() | ast.NotIn()], [all_of]):
                if line.varies(left) and _is_list(all_of, line):
                    return True
            case ast.Call() if _searches(node, line):
                return True
    return False


def _all_for_one(line: _Line) -> str | None:
    """The large collection of the data set's, all of which goes into a call or an operation here:
    'self.weights (100,000)'."""
    for node in line.nodes:
        given: list[ast.expr] = []
        match node:
            case ast.Call(keywords=[*named]) if called(node) in _DRAWN:
                for keyword in named:
                    if keyword.arg in ("p", "weights", "cum_weights"):  # going through all
                        return _large(keyword.value, line) or ast.unparse(keyword.value)
            case ast.BinOp(left, _, right):
                given = [left, right]
            case ast.Compare(left, [op, *_], right) if not isinstance(op, ast.In | ast.NotIn):
                given = [left, *right]
            case ast.comprehension(iter=each):
                if _tests_all(node, node.ifs, line):
                    return ast.unparse(each)
                given = [each]
            case ast.Call(ast.Attribute(of, name)) if _OF_ALL.fullmatch(name):
                if "self" in names_of(of) and not line.varies(of):
                    return ast.unparse(of)  # whatever it holds
                given = [of]
            case ast.Call() if not _QUICK.fullmatch(called(node)):
                given = given_to(node)
        for each in given:
            if large := _large(each, line):
                return large
    return None


def _large(value: ast.expr, line: _Line) -> str | None:
    """An attribute that is known to hold MANY items, with their number."""
    match value:
        case ast.Attribute(ast.Name("self"), name) if many := line.held.get(f"{name}#"):
            return f"self.{name} ({many})"
    return None


def _is_list(value: ast.expr, line: _Line) -> bool:
    """Whether it is known to be a list: what it is made by, or held as."""
    match value:
        case ast.Attribute(ast.Name(), name):
            return line.held.get(name) in _LISTS
        case ast.Subscript(ast.Attribute(ast.Name(), name), key):
            return not isinstance(key, ast.Slice) and line.held.get(f"{name}[]") in _LISTS
        case ast.Call():
            return bool(_LISTED.fullmatch(called(value)))
        case ast.Name(name):
            match [each for each in line.method.statements if name in bound_by(each)]:
                case [] if name not in line.method.arguments:
                    return line.held.get(f"global {name}") in _LISTS
                case [ast.Assign([ast.Name()], ast.List([]))]:  # which is filled later
                    return True
                case [ast.Assign([ast.Name()], given)] if not isinstance(given, ast.Name):
                    return _is_list(given, line)
    return False


def _searches(call: ast.Call, line: _Line) -> bool:
    if own_function(call) and isinstance(call.func, ast.Attribute):
        return False  # a method of its own
    name, inside = called(call), given_to(call)
    made = [each for each in line.method.statements if bound_by(each) & names_of(call)]
    equal = any(_compares(each, line) for each in (*inside, *made))
    if name in _SEARCHES[:3] and line.varies(*inside):
        return True
    if name in _SEARCHES and equal and len(call.args) < 2:  # where(…, a, b) chooses
        return True
    # What is walked to the sample.
    return name == "islice" and line.varies(*inside[1:])


def _until_met(loop: ast.For, line: _Line) -> bool:
    """Whether a loop goes through what is no part of the sample until a test of it holds."""
    tests = [each.test for each in ast.walk(loop) if isinstance(each, ast.If)]
    ends = any(isinstance(each, ast.Break | ast.Return) for each in ast.walk(loop))
    return ends and _tests_all(loop, tests, line)


def _tests_all(loop: ast.For | ast.comprehension, tests: list[ast.expr], line: _Line) -> bool:
    """Whether each of what is no part of the sample is tested against what is one."""
    each = names_of(loop.target)
    for inner in getattr(loop, "body", ()):  # sums of them too
        each |= bound_by(inner) if names_of(*read_by(inner)) & each else set()
    both = any(line.varies(test) and names_of(test) & each for test in tests)
    return both and not line.varies(loop.iter)


def _walks(line: _Line) -> bool:
    """Whether it uses a queue as a list."""
    for node in line.nodes:
        match node:
            case ast.Subscript(ast.Attribute(_, name), key) if line.varies(key):
                pass
            case ast.Call(args=[ast.Attribute(_, name), *_]) if called(node) in _DRAWN:
                pass
            case _:
                continue
        if line.held.get(name) == DEQUE:
            return True
    return False


def _compares(test: ast.AST, line: _Line, ordered: bool = False) -> bool:
    """Whether this tests if something equals what varies; `ordered`: or is larger or smaller."""
    return any(
        isinstance(node, ast.Compare)
        and (ordered or isinstance(node.ops[0], ast.Eq | ast.NotEq))
        and line.varies(node)
        for node in ast.walk(test)
    )


def _one_by_one(line: _Line) -> str | None:
    """The head of the loop in which this line does little for one value after another; or the
    comprehension on it that does."""
    chain = any(isinstance(node, ast.MatMult) for node in ast.walk(line.statement))
    if line.loop is not None and _small(line.loop) and not chain:
        return line.method.text(line.loop)
    for node in line.nodes:
        if isinstance(node, ast.ListComp | ast.DictComp | ast.GeneratorExp) and _small(node):
            return ast.unparse(node)
    return None


def _in_nested_loops(line: _Line) -> str | None:
    """The head of the outermost of two loops or more whose variables this line, or one beside it,
    uses as subscripts of the same thing: it goes through a table element by element."""
    around = [
        each
        for each in line.method.statements
        if isinstance(each, ast.For) and line.statement in ast.walk(each) and _counts(each.iter)
    ]
    for node in ast.walk(around[-1]) if len(around) > 1 else ():
        keys, of = list[ast.expr](), node
        while isinstance(of, ast.Subscript):  # [y, x] of `table[y][x]`
            keys.append(of.slice)
            of = of.value
        if sum(bool(names_of(*keys) & bound_by(each)) for each in around) > 1:
            return line.method.text(around[0])
    return None


def _counts(over: ast.expr) -> bool:
    return isinstance(over, ast.Call) and called(over) in ("range", "enumerate", "ndindex")


def _small(loop: ast.AST) -> bool:
    """Whether all that it calls is small, or takes one element of a table."""
    return all(_SMALL.fullmatch(called(call).lower()) for call in repeated_calls(loop))


def _made_again(line: _Line, called_below: str) -> str | None:
    """What is the same in each round of a loop or comprehension around it, and has to be made each
    time: `self.load(name)` of `[self.load(name)[i] for i in places]`; or this line, of a function
    that a loop calls."""
    if _depends_only_on(line.method.steady, line) and not any(
        _moves(call, line) for call in calls_in(line.statement)
    ):
        return ast.unparse(line.nodes[0])
    slow = {*re.findall(r"\w+", called_below)} & {*map(called, calls_in(line.statement))}
    for _, changed, nodes in line.method.rounds(line.statement):
        for node in nodes:
            match node:
                case ast.Subscript(ast.Attribute(_, name), _, ast.Load()):
                    made = line.held.get(name, "list") not in (*_LISTS, "dict", "memmap")
                case ast.Call():  # that which takes the time, where that is known
                    made = _makes(node, line) and slow <= {called(node)}
                case _:
                    continue
            if made and not names_of(node) & changed:
                return ast.unparse(node)
    return None


def _makes(call: ast.Call, line: _Line) -> bool:
    """Whether it is known to work, and to give the same for the same arguments."""
    own = isinstance(call.func, ast.Attribute) and own_function(call)
    if own and (line.held.get(own) != METHOD or own + CHANGES in line.held):
        return False
    small = _SMALL.fullmatch(called(call).lower()) or _NEW.fullmatch(called(call))
    return line.varies(call) and not (small or draws(call) or _moves(call, line))


def _moves(call: ast.Call, line: _Line) -> bool:
    """Whether it may give something else each time, as methods of readers do."""
    of = names_of(call.func) & {*line.method.varying, "self"}
    return bool(of) and called(call).startswith((*MOVES_ON, "next", "fetch", "pull", "take"))


def _made_smaller(line: _Line) -> str | None:
    """The later line that makes what this line makes smaller: it takes a part of it, resizes or
    crops it. None where there is none: this line then works on no more than is used."""
    method, statement = line.method, line.statement
    if not isinstance(statement, ast.Assign) or any(map(draws, read_by(statement))):
        return None  # what is drawn is cheap to draw: what it is drawn from takes the time
    if line.loop is not None and isinstance(statement.targets[0], ast.Subscript):
        return None  # an element of what is used in part
    made, ends = bound_by(statement), set[str]()
    for each in method.after(statement):
        nodes, bound = nodes_read(each), bound_by(each)
        compared = [node for node in nodes if isinstance(node, ast.Compare)]
        masks = [
            node.slice
            for node in nodes
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name)
        ]
        written = [to for to in getattr(each, "targets", ()) if isinstance(to, ast.Subscript)]
        if names_of(*masks, *written) & made:
            return None  # all of a mask is used, and of what parts are written into
        if any(_is_smaller(node, made) and not names_of(node) & ends for node in nodes):
            around = {over[0] for over, *_ in method.rounds(statement)}
            rounds = (
                names_of(*nodes) & changed
                for over, changed, _ in method.rounds(each)
                if over[0] not in around
            )
            whole = any(rounds) or _used_whole(method, each, made)
            return None if whole else method.text(each)
        if any(_is_length(node, made) for node in nodes) or names_of(*compared) & made:
            # What ends there is nearly all of it; a mask of it takes a part not known before.
            ends |= bound
        match each:
            case ast.Assign(_, value) if names_of(value) & made and all(
                called(call) in _VIEWS for call in calls_in(value)
            ):
                made |= bound
            case ast.Expr(value) if names_of(value) & made:
                made |= {*grown_by(each)}
            case _:  # something else from here on
                made -= bound
    return None


def _taken_here(line: _Line, called_below: str) -> str | None:
    """The part that this line takes at once of what takes its time, or the length of that."""
    for node in line.nodes:
        match node:
            case ast.Subscript(ast.Call(args=[given]) as of, key) if _COPIES.fullmatch(called(of)):
                if line.varies(key) and not line.varies(of) and "self" in names_of(given):
                    return ast.unparse(node)
                continue
            case ast.Subscript(of, key):
                taken = any(
                    isinstance(each, ast.Slice) and names_of(each) for each in ast.walk(key)
                )
            case ast.Attribute(of, "shape") | ast.Call(ast.Name("len"), [of]):
                taken = True
            case _:
                continue
        made = re.findall(r"\b(?!open|memmap)[a-z]\w*(?=[(\[]|$)", ast.unparse(of))
        if taken and {*made} & {*re.findall(r"\w+", called_below)}.difference(_VIEWS):
            return ast.unparse(node)
    return None


def _used_whole(method: Method, smaller: ast.stmt, made: set[str]) -> bool:
    """Whether what these names hold is used as a whole, although this line takes a part of it, or
    several parts, which together may be all."""
    anew = bound_by(smaller) & made
    later = [] if anew else method.after(smaller)
    nodes = [node for each in (smaller, *later) for node in nodes_read(each)]
    parts = [node for node in nodes if _is_smaller(node, made)]
    slices = [each for part in parts for each in ast.walk(part) if isinstance(each, ast.Slice)]
    ends = {ast.unparse(each.upper) for each in slices if each.upper}
    if any(each.lower and ast.unparse(each.lower) in ends for each in slices):
        return True  # one goes on where another ends
    here = [each for each in nodes_read(smaller) if isinstance(each, ast.Subscript)]
    if not anew and len({ast.unparse(node) for node in here if node in parts}) > 1:
        return True
    lengths = [node for node in nodes if _is_length(node, made)]
    used = {node for node in nodes if isinstance(node, ast.Name) and node.id in made}
    return not used <= {each for part in (*parts, *lengths) for each in ast.walk(part)}


def taken_of_whole(statement: ast.stmt, method: Method) -> ast.Subscript | None:
    """`self.data[:][z]` in this statement, whose `[:]` reads all of the data."""
    for node in nodes_read(statement):
        match node:
            case ast.Subscript(ast.Subscript(of, every), key, ast.Load()) if _is_all(every):
                if not isinstance(of, ast.Name) and method.varies(key):
                    return node
    return None


def _is_all(key: ast.expr) -> bool:
    return ast.unparse(key) in (":", "...", "()")


def _all_of(statement: ast.stmt) -> bool:
    """Whether it gives a name to all of what an attribute, or an entry of a file, holds."""
    match statement:
        case ast.Assign([ast.Name()], ast.Subscript(of, key)) if not isinstance(of, ast.Name):
            return _is_all(key)
    return False


def _is_smaller(node: ast.AST, made: set[str]) -> bool:
    match node:
        case ast.Subscript(of, key) if not isinstance(key, ast.Constant):
            nearly_all = re.fullmatch(r"\d*:(?:-\d+)?", ast.unparse(key))
            return isinstance(of, ast.Name) and of.id in made and not nearly_all
        case ast.Call():
            smaller = _SMALLER.search(called(node).lower())
            return bool((smaller or called(node) in _DRAWN) and names_of(node) & made)
    return False


def _is_length(node: ast.AST, made: set[str]) -> bool:
    match node:
        case ast.Attribute(of, "shape" | "size" | "ndim" | "dtype") | ast.Call(
            ast.Name("len"), [of]
        ):
            return bool(names_of(of) & made)
    return False
