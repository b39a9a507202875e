"""What the source of a method says is wrong with one of its lines, whatever the functions in it are
called: that its result is the same for every sample, that it searches, goes through values one by
one, makes more than is used, or is not needed at all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .method import (
    MOVES_ON,
    Method,
    bound_by,
    called,
    calls_in,
    draws,
    grown_by,
    names_in,
    names_of,
    nodes_read,
    parsed,
    read_by,
)
from .syntax import names

Source = Sequence[str] | Method

# Calls that training does without: what they do is done by the interpreter or torch anyway.
NOT_NEEDED = ("gc.collect", "torch.cuda.empty_cache", "torch.cuda.synchronize")
# Calls for their effect alone, which no sample needs.
_TOLD = ("print", "pprint", "flush", "fsync", "write", "debug", "info", "warning", "warn", "log")
# How objects of a multiprocessing.Manager ask its process.
_PROXY = "BaseProxy._callmethod"
_SMALLER = ("resize", "crop", "thumbnail", "interpolate", "downscale", "decimate", "subsample")
_QUERY = re.compile(r"\bSELECT\b.*\bWHERE\b", re.IGNORECASE | re.DOTALL)
_DRAWN = ("choice", "choices", "sample")  # a few of many
# The same values seen in another way: what is taken of it is taken of what it was made of.
_VIEWS = (
    *("frombuffer", "reshape", "view", "asarray", "from_numpy", "as_tensor", "transpose"),
    *("permute", "squeeze", "unsqueeze", "astype", "float", "splitlines"),
)
# Calls that search what they are of for the value that they are given.
_SEARCHES = ("index", "query", "isin", "where", "nonzero", "argwhere", "flatnonzero")
_LISTS = ("list", "tuple", "texts", "paths", "numbers", "tensor", "ndarray")
# Calls that are given all of a collection and look at a part of it, or hand it on.
_QUICK = (
    *("len", "take", "get", "getitem", "searchsorted", "index_select", "gather", "iter", "next"),
    *("enumerate", "zip", "range", "isinstance", "type", "id", "getattr", "hasattr", "partial"),
    *("bisect", "bisect_left", "bisect_right", "itemgetter", "open", "print", *_DRAWN),
)
# Methods that go through all of what they are of.
_OF_ALL = (
    *("mean", "std", "sum", "min", "max", "copy", "clone", "astype", "tolist", "to_dense"),
    *("to_numpy", "sort_values", "sort", "argsort", "unique", "groupby", "merge", "count"),
)
_WEIGHED = ("p", "weights", "cum_weights")  # by these, drawing one goes through all
# Calls whose result depends on all values that they are given: no part of it is made alone.
_OF_WHOLE = re.compile(r"\b(?:\w*unique|\w*sort|sorted|cum\w+|i?r?fft\w*|svd|eig\w*|median)\b")
# Another for each sample.
_INDEX = re.compile(r"^(?:i|idx|index|item|key|\w*(?:path|file|name|url))$")
MANY = 1000  # a collection of so many is not gone through for each sample
# Calls that make a list of all.
_LISTED = (
    *("list", "sorted", "tolist", "values", "namelist", "getnames", "listdir", "readlines"),
    *("splitlines", "split", "glob"),
)
# Each takes apart what the other has put together.
_BACK = (
    (("tensor", "as_tensor", "array", "asarray", "FloatTensor", "LongTensor"), ("tolist",)),
    (("loads",), ("dumps",)),
    (("fromarray", "to_pil_image"), ("array", "asarray", "numpy")),
    (("array", "asarray", "to_tensor"), ("fromarray", "to_pil_image")),
    (("decode", "imdecode"), ("encode", "imencode")),
)
# The kind of an attribute that methods change: what is made of it may differ.
CHANGES = "changes"
# The kind of a method that is known to change nothing.
METHOD = "method"
DEQUE = "deque"
# What the floats of a batch are, under the name "".
FLOAT32 = "float32"
_NUMPY = re.compile(r"\b(?:np|numpy|cv2)\b|from_numpy")
# What bytes are divided by, and what makes of them what NumPy does not.
_OF_BYTES, _FLOATS = ("255", "255.0", "127.5"), re.compile("float|torch|[Tt]ensor|from_numpy")
CHANCE = re.compile(r"[Rr]and|choice|shuffle|integers|uniform|normal\(|(?<![Rr]e)sample\(")
_GROWS = ("cat", "concatenate", "append", "vstack", "hstack", "concat")
# What costs a call, whatever it is for: many in a loop are one for all values.
_SMALL = (
    *("randrange", "randint", "random", "choice", "uniform", "gauss", "item", "float", "int"),
    *("bool", "round", "abs", "min", "max", "len", "range", "enumerate", "zip", "get", "add"),
    *("from_numpy", "as_tensor", "asarray", "array", "numpy", "unsqueeze", "reshape", "view"),
    *("mean", "std", "any", "all", "clip", "norm", "dot", "pow", "floor", "ceil", "median"),
    *("extend", "tensor", "sqrt", "exp", "log", "sum", "isnan", "ord", "chr", "where", *_GROWS),
)


@dataclass(frozen=True)
class Shape:
    """What is wrong with a line, as advice: a title, a continuation of "`line` takes 90 % of
    fetch", and what to do. `saves` is the part of the line's time that surely goes, `left` what
    surely stays. A line that is `costly` takes long wherever it stands. Of one that is `waste`,
    none of it need be done."""

    key: str
    title: str
    why: str
    do: str
    saves: float
    caveat: str | None = None
    costly: bool = False
    waste: bool = True
    left: float = 0.0


_OTHER_PROCESS = Shape(
    "other process",
    "Read this in the process that needs it",
    ", and each sample asks another process for it",
    "make a plain dict or array of it, before training or in each worker.",
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
    costly=True,
)
ALL = "all for one"
_ALL = Shape(
    ALL,
    "Do not scan a whole collection for each sample",
    ", and goes through all of `{}` for one sample",
    "compute once what this looks for (a set, a dict, positions by value, cumulative sums), "
    "or redraw until it fits.",
    0.95,
    waste=False,
)
_SEARCHED_BY_SQL = Shape(
    "searched by SQL",
    "Give the table an index for this query",
    ", and goes through the whole table unless the columns of its WHERE have an index",
    "CREATE INDEX for these columns, once; EXPLAIN QUERY PLAN then says SEARCH, not SCAN.",
    0.3,
)
_PART_READ = Shape(
    "whole for a part",
    "Read only the part that is used",
    ", and reads everything where only a part is used",
    "leave out the [:], and use the index while the data are open.",
    0.3,
    "If the data are chunked, the chunks that hold the part are still read in full.",
)
_FETCHED_AGAIN = Shape(
    "whole for a part",
    "Fetch this once, not for each item of a loop",
    ", and fetches `{}` again for each item taken from it",
    "fetch it once before the loop, or fetch only the items.",
    0.5,
)
_UNIQUE_ROWS = Shape(
    "unique rows",
    "Make one integer of each row, and use np.unique on these",
    ", and sorts whole rows, which takes several times as long as sorting integers",
    "give each row one integer key first: ((rows - rows.min(0)) * strides).sum(1).",
    0.4,
)
# Their work is needed, but not done so. What is done stands in the place of {}.
_PER_VALUE = Shape(
    "per value",
    "Cache this for each value of its argument",
    ", and depends only on `{}`: samples with the same value get the same result",
    "keep the results in a dict, or in a function with functools.lru_cache.",
    0.8,
    "It gains nothing if values do not repeat.",
    waste=False,
)
_UNDONE = Shape(
    "back and forth",
    "Remove a conversion that is undone right away",
    ", and converts there and back again: `{}`",
    "use the original, or a copy of it.",
    0.6,
    "Types may differ: torch.tensor turns Python floats into float32.",
    waste=False,
)
_PART_USED = Shape(
    "whole for a part",
    "Process only what is used",
    ", and only part of its result is used: `{}`",
    "take the part, or shrink the input, before this line.",
    0.5,
    "Values may differ slightly if the order of the two steps matters.",
    waste=False,
)
_FRONT = Shape(
    "front of a list",
    "Use a deque to take items from the front",
    ", and a list moves all remaining items each time",
    "use collections.deque, with popleft() or appendleft().",
    0.9,
)
_REST = Shape(
    "rest of a list",
    "Move an offset instead of copying the rest of a list",
    ", and copies all that is left each time",
    "keep the position up to which it is used, or take items from a collections.deque.",
    0.9,
)
_SUMMED = Shape(
    "summed lists",
    "Join lists with itertools.chain, not with sum()",
    ", and copies everything joined so far for each list",
    "list(itertools.chain.from_iterable(lists)).",
    0.9,
)
_WALKED = Shape(
    "deque",
    "Use a list or an array, not a deque, for access by index",
    ", and a deque is walked to reach each item",
    "use a list that overwrites its oldest item, or an array.",
    0.8,
)
# Their work is needed for those samples that stay.
_THROWN_AWAY = Shape(
    "thrown away",
    "Filter once, before samples are made",
    ", and samples that do not pass are made in vain (`{}`)",
    "find out once which samples (or positions in them) pass, and draw only from these.",
    0.3,
    "The order of samples changes.",
    waste=False,
)
_FLOAT64 = Shape(
    "float64",
    "Compute in float32 from the start",
    ", in float64: twice the bytes of the float32 that reaches the batch",
    "convert to float32 first, as in img.astype(np.float32) / 255, and mean and std too.",
    0.2,
    "Values differ in the last bits.",
    waste=False,
    left=0.25,
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


def shape_of(
    source: Source, line: str, called_below: str = "", held: Mapping[str, str] | None = None
) -> Shape | None:
    """The shape of this line of a method, and of the function that takes most of it. None where
    nothing is known to be wrong with it. `held` are the kinds of the data set's attributes, and
    under "name[]" those of their items, under "name#" the length of those of MANY items, and under
    "global name" those of its module's lists."""
    if _PROXY in called_below:
        return _OTHER_PROCESS
    call, held = not_needed(line), held or {}
    if call is not None:
        return replace(_NOT_NEEDED, costly=call in NOT_NEEDED)
    method = source if isinstance(source, Method) else Method(source)
    statement = method.at(line)
    if isinstance(statement, ast.For) and _until_met(statement, method):
        return _SEARCHED
    if statement is not None and same_for_every_sample(method, statement, held):
        return _SAME
    nested, smaller = in_nested_loops(method, statement), made_smaller(method, statement)
    if _OF_WHOLE.search(f"{called_below} {line}"):
        smaller = None
    singly = one_by_one(method, statement)
    if singly is not None and _over_range(method, statement):
        smaller = None  # a table, of which samples use all
    if nested is None and searched(method, statement, held):
        return _SEARCHED
    if (slow := _slow_container(method, statement, held)) is not None:
        return slow
    whole = taken_of_whole(statement, method) or (_all_of(statement) and smaller)
    if nested is None and whole:
        return _PART_READ
    for found, shape in (
        (fetched_again(statement, held), _FETCHED_AGAIN),
        (nested, replace(_ONE_BY_ONE, waste=True)),
        (depends_on(method, statement, held), _PER_VALUE),
        (back_and_forth(line), _UNDONE),
        (smaller, _PART_USED),
        (in_float64(method, statement, held), _FLOAT64),
        (all_for_one(statement, held), _ALL),
        (singly, _ONE_BY_ONE),
        (thrown_away(method, statement), _THROWN_AWAY),
    ):
        if found is not None:
            return replace(shape, why=shape.why.format(found[:70]))
    return None


def not_needed(line: str) -> str | None:
    """The call on this line that training does without; None where there is none."""
    tree = parsed(line)
    calls = [ast.unparse(each.func) for each in calls_in(tree)]
    found = next((each for each in calls if each in NOT_NEEDED), None)
    match tree:
        case ast.Module([ast.Expr(ast.Call() as call)]) if found is None and called(call) in _TOLD:
            return ast.unparse(call.func)
    return found


def depends_on(method: Method, statement: ast.stmt | None, held: Mapping[str, str]) -> str | None:
    """The one of several arguments, a number or a name, on which this line depends alone."""
    if not isinstance(statement, ast.Assign) or len(method.arguments) < 2:
        return None
    nodes, loop = nodes_read(statement), method.loops.get(statement)
    within = [each for one in method.statements for each in nodes_read(one)]
    plain = _plain(method, within)
    for name in (each for each in method.arguments if each in plain and not _INDEX.search(each)):
        others = Method(method.source, {*method.arguments} - {name})
        if method.varies(nodes) and _is_same(nodes, others, loop, held):
            return name
    return None


def _plain(method: Method, nodes: list[ast.AST]) -> set[str]:
    """Names used as no array can be: in a test, as a key, in whole divisions; never taken apart."""
    tests = [each.test for each in method.statements if isinstance(each, ast.If | ast.While)]
    found: list[ast.expr] = [each for each in tests if isinstance(each, ast.Compare)]
    apart = set[str]()
    for node in nodes:
        match node:
            case ast.Subscript(slice=key):
                found.append(key)
            case ast.BinOp(op=ast.FloorDiv()):
                found.append(node)
        match node:
            case ast.Subscript(ast.Name(name)) | ast.Attribute(ast.Name(name)):
                apart.add(name)
    return names_of(*found) - apart


def same_for_every_sample(
    method: Method, statement: ast.stmt | None, held: Mapping[str, str]
) -> bool:
    """Whether this line of a `__getitem__`, or what it takes its part of (`json.load(f)[index]`),
    depends on nothing but `self` and constants: it could be made once. False if that is not
    known."""
    if isinstance(statement, ast.Expr):
        return False  # it makes nothing that could be kept
    nodes = nodes_read(statement)
    loop = method.loops.get(statement) if statement is not None else None
    whole = []
    for each in nodes if not taken_of_whole(statement, method) else ():
        match each:
            case ast.Subscript(of, key) | ast.Call(
                ast.Attribute(of, "get" | "get_group" | "xs"), [key, *_]
            ) if method.varies([key]):
                whole.append(of)
    return any(_is_same([*part], method, loop, held) for part in (nodes, *map(ast.walk, whole)))


def _is_same(
    nodes: list[ast.AST], method: Method, loop: ast.stmt | None, held: Mapping[str, str]
) -> bool:
    """Whether all of this depends on nothing but `self` and constants, and something is called."""
    works = False
    for node in nodes:
        match node:
            case ast.Call(ast.Attribute(ast.Name(), name)) if name in MOVES_ON and loop is not None:
                if method.varies([loop]):
                    return False  # how far it goes differs
                works = True
            case ast.Attribute(_, name) if held.get(name) == CHANGES:
                return False
            # A method, or a function held, may give something else each time.
            case ast.Call(ast.Attribute(ast.Name("self"), name)) if held.get(name) != METHOD:
                return False
            case ast.Subscript(ast.Attribute(ast.Name("self")), ast.Attribute(ast.Name("self"))):
                works = True  # a copy
            # It goes through what this call has made; an attribute may move on as it is read.
            case ast.Call() | ast.comprehension(iter=ast.Name()):
                works = True
    return works and not method.varies(nodes) and not any(map(draws, nodes))


def changing(sources: Iterable[Sequence[str]]) -> set[str]:
    """The attributes that these methods change, and those of the methods that change any, or that
    draw."""
    found: set[str] = set()
    for function in (each for source in sources if (each := Method(source).function) is not None):
        own = [node for node in ast.walk(function) if isinstance(node, ast.Attribute)]
        changed = {node.attr for node in own if not isinstance(node.ctx, ast.Load)}
        for node in ast.walk(function):
            match node:
                case ast.Expr(ast.Call(ast.Attribute(ast.Attribute(_, name)))):
                    changed.add(name)  # self.seen.append(…)
                case ast.Subscript(ast.Attribute(_, name), _, ast.Store() | ast.Del()):
                    changed.add(name)
        if changed or any(draws(each) for each in ast.walk(function) if isinstance(each, ast.expr)):
            found |= {*changed, function.name}
    return found


def searched(method: Method, statement: ast.stmt | None, held: Mapping[str, str]) -> bool:
    """Whether this line tests all of something against what differs from sample to sample, or goes
    through it until a test holds."""
    loop = method.loops.get(statement) if statement is not None else None
    if isinstance(loop, ast.For) and _until_met(loop, method):
        return True
    for node in nodes_read(statement):
        match node:
            case ast.Subscript(of, key) if _compares(key, method, not method.varies([of])):
                return True
            case ast.comprehension(ifs=tests) if any(_compares(each, method) for each in tests):
                return True
            case ast.ListComp(made, [found]) | ast.GeneratorExp(made, [found]):
                if not calls_in(made) and _tests_all(found, found.ifs, method):
                    return True
            case ast.Compare(left, [ast.In() | ast.NotIn()], [all_of]):
                if method.varies([left]) and _is_list(all_of, method, held):
                    return True
            case ast.Call() if _searches(node, method):
                return True
    return False


def all_for_one(statement: ast.stmt | None, held: Mapping[str, str]) -> str | None:
    """The large collection of the data set's, all of which goes into a call or an operation here:
    'self.weights (100,000)'."""
    for node in nodes_read(statement):
        given: list[ast.expr] = []
        match node:
            case ast.Call(keywords=[*named]) if called(node) in _DRAWN:
                for keyword in named:
                    if keyword.arg in _WEIGHED:
                        text = ast.unparse(keyword.value)
                        many = held.get(f"{text.removeprefix('self.')}#")
                        return f"{text} ({many})" if many else text
            case ast.BinOp(left, _, right):
                given = [left, right]
            case ast.Compare(left, [op, *_], right) if not isinstance(op, ast.In | ast.NotIn):
                given = [left, *right]
            case ast.comprehension(iter=each):
                given = [each]
            case ast.Call(ast.Attribute(of, name)) if name in _OF_ALL:
                given = [of]
            case ast.Call(args=args, keywords=named) if called(node) not in _QUICK:
                given = [*args, *(each.value for each in named)]
        for each in given:
            match each:
                case ast.Attribute(ast.Name("self"), name) if many := held.get(f"{name}#"):
                    return f"self.{name} ({many})"
    return None


def _is_list(value: ast.expr, method: Method, held: Mapping[str, str]) -> bool:
    """Whether it is known to be a list: what it is made by, or held as."""
    match value:
        case ast.Attribute(ast.Name(), name):
            return held.get(name) in _LISTS
        case ast.Subscript(ast.Attribute(ast.Name(), name), key):
            return not isinstance(key, ast.Slice) and held.get(f"{name}[]") in _LISTS
        case ast.Call():
            return called(value) in _LISTED
        case ast.Name(name):
            made = [each for each in method.statements if name in bound_by(each)]
            match made:
                case [] if name not in method.arguments:
                    return held.get(f"global {name}") in _LISTS
                case [ast.Assign([ast.Name()], given)] if not isinstance(given, ast.Name):
                    return _is_list(given, method, held)
    return False


def _searches(call: ast.Call, method: Method) -> bool:
    if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "self":
        return False  # a method of its own
    name, inside = called(call), [*call.args, *(each.value for each in call.keywords)]
    equal = any(_compares(each, method) for each in inside)
    if name in _SEARCHES[:3] and (equal or method.varies(inside)):
        return True
    if name in _SEARCHES and equal and len(call.args) < 2:  # where(…, a, b) chooses
        return True
    # A generator that is walked to the sample.
    return name == "islice" and any(calls_in(each) for each in inside) and method.varies(inside)


def _until_met(loop: ast.For, method: Method) -> bool:
    """Whether a loop goes through what is no part of the sample until a test of it holds."""
    tests = [each.test for each in ast.walk(loop) if isinstance(each, ast.If)]
    ends = any(isinstance(each, ast.Break | ast.Return) for each in ast.walk(loop))
    return ends and _tests_all(loop, tests, method)


def _tests_all(loop: ast.For | ast.comprehension, tests: list[ast.expr], method: Method) -> bool:
    """Whether each of what is no part of the sample is tested against what is one."""
    each = {*names(loop.target)}
    for inner in getattr(loop, "body", ()):  # sums of them too
        each |= bound_by(inner) if names_in(read_by(inner), each) else set()
    both = (test for test in tests if method.varies([test]) and names_in([test], each))
    return not method.varies([loop.iter]) and any(both)


def _slow_container(
    method: Method, statement: ast.stmt | None, held: Mapping[str, str]
) -> Shape | None:
    """Of a list that is used as a queue, a queue that is used as a list, lists that are summed, or
    a table that may have no index."""
    for node in nodes_read(statement):
        match node:
            case ast.Constant(str() as text) if _QUERY.search(text):
                return _SEARCHED_BY_SQL
            case ast.Call(ast.Name("sum"), [_, ast.List([])]):
                return _SUMMED
            case ast.Call(keywords=[*named]) if called(node) == "unique":
                if any(each.arg in ("axis", "dim") for each in named):
                    return _UNIQUE_ROWS
            case ast.Call(ast.Attribute(_, "pop"), [ast.Constant(0)]):
                return _FRONT
            case ast.Call(ast.Attribute(_, "insert"), [ast.Constant(0), _]):
                return _FRONT
            case ast.Subscript(ast.Name(name), ast.Slice(ast.expr(), None, None)):
                if isinstance(statement, ast.Assign) and node is statement.value:
                    return _REST
            case ast.Subscript(ast.Attribute(_, name), key) if held.get(name) == DEQUE:
                return _WALKED if method.varies([key]) else None
    return None


def thrown_away(method: Method, line: ast.stmt | None = None) -> str | None:
    """The statement of a `__getitem__` that gives another sample, after one was made; or the test
    of the loop around this line that goes on until what it draws passes."""
    for each in method.statements:
        match each:
            case ast.Return(ast.Subscript(ast.Name("self"))) | ast.Return(
                ast.Call(ast.Attribute(ast.Name("self"), "__getitem__"))
            ):
                return method.text(each)
    for loop in method.statements:
        goes_on = isinstance(loop, ast.While) or (isinstance(loop, ast.For) and _counts(loop.iter))
        if line is not None and goes_on and line in [*ast.walk(loop)]:
            test = _in_vain(loop, line)
            if test is not None:
                return method.text(test)
    return None


def _in_vain(loop: ast.stmt, line: ast.stmt) -> ast.stmt | None:
    """What ends this loop or its round, if it tests what was drawn and what this line has made."""
    jumps = (ast.Break, ast.Return, ast.Continue)[: 2 + isinstance(loop, ast.While)]
    inside = [each for each in ast.walk(loop) if isinstance(each, ast.stmt)]
    drawn, made = set[str](), bound_by(line)
    for each in sorted(inside, key=lambda each: each.lineno) * 2:
        read, bound = read_by(each), bound_by(each)
        by_chance = names_in(read, drawn) or any(CHANCE.search(ast.unparse(one)) for one in read)
        adds = names_in(read, bound) or isinstance(each, ast.AugAssign)
        drawn |= bound if by_chance and not adds else set()
        made |= bound if names_in(read, made) else set()
        ends = any(isinstance(one, jumps) for one in ast.walk(each)) or isinstance(each, ast.While)
        test = each.test if isinstance(each, ast.If | ast.While) and ends else ast.Constant(True)
        if names_in([test], drawn) and (each is line or names_in([test], made)):
            return each
    return None


def in_float64(method: Method, statement: ast.stmt | None, held: Mapping[str, str]) -> str | None:
    """This line, if NumPy computes in float64 there what it has made of bytes (`img / 255`)."""
    if held.get("") != FLOAT32 or not _NUMPY.search("\n".join(method.source)):
        return None
    wide, narrow = set[str](), set[str]()
    for each in method.statements:
        nodes, read, bound = nodes_read(each), read_by(each), bound_by(each)
        operations = [node for node in nodes if isinstance(node, ast.BinOp)]
        known = names_in(read, narrow)
        widens = names_in(read, wide)
        for node in operations:
            of = ast.unparse(node.left)
            if ast.unparse(node.right) in _OF_BYTES and not (known or _FLOATS.search(of)):
                own = re.match(r"self\.(\w+)", of)
                widens = widens or own is None or held.get(own[1]) != "tensor"
        if each is statement and widens:
            return method.text(each) if operations else None
        wide, narrow = wide - bound, narrow if known else narrow - bound
        if _FLOATS.search(" ".join(map(ast.unparse, read))):
            narrow |= bound
        elif widens:
            wide |= bound
    return None


def _compares(test: ast.expr, method: Method, ordered: bool = False) -> bool:
    """Whether this tests if something equals what varies; `ordered`: or is larger or smaller."""
    return any(
        isinstance(node, ast.Compare)
        and (ordered or isinstance(node.ops[0], ast.Eq | ast.NotEq))
        and method.varies([node])
        for node in ast.walk(test)
    )


def back_and_forth(line: str) -> str | None:
    """The call on this line that undoes what the call within it has done."""
    for outer in calls_in(parsed(line)):
        given = outer.args[0] if outer.args else None
        if not isinstance(given, ast.Call):
            continue
        if any(called(outer) in one and called(given) in other for one, other in _BACK):
            return ast.unparse(outer)
    return None


def one_by_one(method: Method, statement: ast.stmt | None) -> str | None:
    """The head of the loop in which this line does little for one value after another; or the
    comprehension on it that does."""
    loop = method.loops.get(statement) if statement is not None else None
    if loop is not None and _small(loop):
        return method.text(loop)
    for node in nodes_read(statement):
        if isinstance(node, ast.ListComp | ast.DictComp | ast.GeneratorExp) and _small(node):
            return ast.unparse(node)
    return None


def _over_range(method: Method, statement: ast.stmt | None) -> bool:
    """Whether it goes through the same numbers for every sample."""
    return any(
        isinstance(each, ast.comprehension)
        and _counts(each.iter)
        and not method.varies([each.iter])
        for each in nodes_read(statement)
    )


def in_nested_loops(method: Method, statement: ast.stmt | None) -> str | None:
    """The head of the outermost of two loops or more whose variables this line, or one beside it,
    uses as subscripts of the same thing: it goes through a table element by element."""
    if statement is None or statement not in method.loops:
        return None
    around = [
        each
        for each in method.statements
        if isinstance(each, ast.For) and statement in ast.walk(each) and _counts(each.iter)
    ]
    over = [bound_by(each) for each in around]
    if len(over) < 2:
        return None
    for node in ast.walk(around[-1]):
        if isinstance(node, ast.Subscript):
            keys = _subscripts(node)
            if sum(names_in(keys, names) for names in over) > 1:
                return method.text(around[0])
    return None


def _counts(over: ast.expr) -> bool:
    return isinstance(over, ast.Call) and called(over) in ("range", "enumerate", "ndindex")


def _subscripts(node: ast.expr) -> list[ast.expr]:
    """[y, x] of `table[y][x]`."""
    found = []
    while isinstance(node, ast.Subscript):
        found.append(node.slice)
        node = node.value
    return found


def _small(loop: ast.AST) -> bool:
    """Whether all that it calls is small, or takes one element of a table."""
    heads = [getattr(loop, "iter", None), *(each.iter for each in getattr(loop, "generators", ()))]
    outside = {id(call) for head in heads if head is not None for call in calls_in(head)}
    inside = [call for call in calls_in(loop) if id(call) not in outside]
    return all(called(call).lower() in _SMALL for call in inside)


def fetched_again(statement: ast.stmt | None, held: Mapping[str, str]) -> str | None:
    """`self.table[key]` of `[self.table[key][i] for i in places]`, where the table makes what it
    gives."""
    for node in nodes_read(statement):
        if not isinstance(node, ast.ListComp | ast.GeneratorExp):
            continue
        each = {name for part in node.generators for name in names(part.target)}
        for inner in ast.walk(node.elt):
            match inner:
                case ast.Subscript(ast.Subscript(ast.Attribute(_, name), key) as whole, at):
                    plain = (*_LISTS, "dict", "memmap")
                    again = names_in([at], each) and not names_in([key], each)
                    if again and held.get(name) not in plain:
                        return ast.unparse(whole)
    return None


def made_smaller(method: Method, statement: ast.stmt | None) -> str | None:
    """The later line that makes what this line makes smaller: it takes a part of it, resizes or
    crops it. None where there is none: this line then works on no more than is used."""
    if not isinstance(statement, ast.Assign) or any(map(draws, read_by(statement))):
        return None  # what is drawn is cheap to draw: what it is drawn from takes the time
    made, ends = bound_by(statement), set[str]()
    for each in method.after(statement):
        nodes = nodes_read(each)
        compared = [node for node in nodes if isinstance(node, ast.Compare)]
        if any(_is_smaller(node, made) and not names_in([node], ends) for node in nodes):
            return None if _used_whole(method, each, made) else method.text(each)
        if any(_is_length(node, made) for node in nodes) or names_in(compared, made):
            # What ends there is nearly all of it; a mask of it takes a part not known before.
            ends |= bound_by(each)
        if isinstance(each, ast.Assign) and names_in([each.value], made) and _is_view(each.value):
            made |= bound_by(each)
        elif isinstance(each, ast.Expr) and names_in([each.value], made):
            made |= {*grown_by(each)}
        elif made & bound_by(each):  # something else from here on
            return None
    return None


def _used_whole(method: Method, smaller: ast.stmt, made: set[str]) -> bool:
    """Whether what these names hold is used as a whole, although this line takes a part of it, or
    several parts, which together may be all."""
    again = [node for node in ast.walk(smaller) if isinstance(node, ast.Name)]
    if any(node.id in made and isinstance(node.ctx, ast.Store) for node in again):
        return False
    nodes = [node for each in (smaller, *method.after(smaller)) for node in nodes_read(each)]
    parts = [node for node in nodes if _is_smaller(node, made)]
    here = [each for each in nodes_read(smaller) if isinstance(each, ast.Subscript)]
    if len({ast.unparse(node) for node in here if node in parts}) > 1:
        return True
    lengths = [node for node in nodes if _is_length(node, made)]
    used = {node for node in nodes if isinstance(node, ast.Name) and node.id in made}
    return not used <= {each for part in (*parts, *lengths) for each in ast.walk(part)}


def taken_of_whole(statement: ast.stmt | None, method: Method) -> ast.Subscript | None:
    """`self.data[:][z]` in this statement, whose `[:]` reads all of the data."""
    for node in nodes_read(statement):
        match node:
            case ast.Subscript(ast.Subscript(of, every), key, ast.Load()) if _is_all(every):
                if not isinstance(of, ast.Name) and method.varies([key]):
                    return node
    return None


def _is_all(key: ast.expr) -> bool:
    return ast.unparse(key) in (":", "...", "()")


def _all_of(statement: ast.stmt | None) -> bool:
    """Whether it gives a name to all of what an attribute, or an entry of a file, holds."""
    match statement:
        case ast.Assign([ast.Name()], ast.Subscript(of, key)) if not isinstance(of, ast.Name):
            return _is_all(key)
    return False


def _is_smaller(node: ast.AST, made: set[str]) -> bool:
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
        return isinstance(node.value, ast.Name) and node.value.id in made
    if isinstance(node, ast.Call):
        smaller = any(word in called(node).lower() for word in _SMALLER)
        return (smaller or called(node) in _DRAWN) and names_in([node], made)
    return False


def _is_length(node: ast.AST, made: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ("shape", "size", "ndim", "dtype") and names_in([node.value], made)
    return isinstance(node, ast.Call) and called(node) == "len" and names_in(node.args, made)


def _is_view(value: ast.expr) -> bool:
    return all(called(call) in _VIEWS for call in calls_in(value))
