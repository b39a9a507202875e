"""What is the same for every sample is made once; what is opened for every sample stays open."""

from __future__ import annotations

from typing import Any

import libcst as cst
import libcst.matchers as m
from libcst.helpers import parse_template_statement

from .edits import Edits
from .method import Method, block, goes_once, in_words, last_name, names_in, parsed
from .nodes import import_of, plain_names, targets_of
from .project import Source, parts_like
from .sites import enclosing

# What opens something that other processes must open for themselves.
_OPENS = (
    *("File", "ZipFile", "TarFile", "connect", "open", "ParquetFile", "Dataset", "Environment"),
    *("VideoReader", "VideoCapture", "SoundFile", "OpenSlide", "open_group"),
)
_CLOSES = ("close", "release")


def make_once(edits: Edits, method: Method, statement: cst.CSTNode) -> bool:
    """Move what this statement makes, the same for every sample, to `__init__`, or to its first
    use. Whether that can be done; nothing is edited where it cannot."""
    if method.self_name is None or method.node.name.value in ("__init__", "__len__"):
        return False
    around = _with_of(method, statement)
    if around is not None and _whole_with(edits, method, around):
        return True
    if isinstance(statement, cst.With):
        return False
    assign = assignment(statement)
    if assign is not None:
        name, value = assign
        if (
            method.depends_on_self_alone(value)
            and m.findall(value, m.Call())
            and not goes_once(value)
            and not method.changed(name)
        ):
            _keep(edits, method, statement, [name])
            return True
    return _inner(edits, method, statement)


def _whole_with(edits: Edits, method: Method, around: cst.With) -> bool:
    """All of a `with` whose body only makes the same for every sample."""
    known: set[str] = set()
    for item in around.items:
        if not method.depends_on_self_alone(item.item, known):
            return False
        known |= names_in(*filter(None, [item.asname]))
    made: list[str] = []
    for each in around.body.body:
        assign = assignment(each)
        if assign is None or not method.depends_on_self_alone(assign[1], known | {*made}):
            return False
        if goes_once(assign[1]) or method.changed(assign[0]):
            return False
        made.append(assign[0])
    names = [name for name in made if _uses_outside(method, name, around)]
    if not names:
        return False
    _keep(edits, method, around, names)
    return True


def _uses_outside(method: Method, name: str, moved: cst.CSTNode) -> list[cst.Name]:
    return [node for node in method.uses(name) if moved not in method.source.parents(node)]


def _keep(edits: Edits, method: Method, moved: cst.CSTNode, names: list[str]) -> None:
    """Move this statement; what it binds to `names` becomes attributes."""
    attributes = {name: method.free_name(name) for name in names}
    for name, attribute in attributes.items():
        new = cst.parse_expression(f"{method.self_name}.{attribute}")
        for node in _uses_outside(method, name, moved):
            edits.replace(method.source, node, new)
    _made_once(edits, method, moved, moved, attributes)


def _made_once(
    edits: Edits,
    method: Method,
    before: cst.CSTNode,
    made: cst.CSTNode,
    attributes: dict[str, str],
) -> None:
    """Put this statement, with names bound to attributes, at the end of `__init__`; without one,
    where it is used, to run the first time. `before` goes if it is the same."""
    own, init = method.self_name or "self", method.constructor
    goes = before is made
    if init is not None:
        add_to_end(edits, method, init, _rebound(made, attributes, own, plain_names(init)[0]))
        if goes:
            edits.edit(method.source, before, lambda _: cst.RemoveFromParent())
        return
    first = next(iter(attributes.values()))
    (test,) = parsed(f'if not hasattr({own}, "{first}"):\n    pass\n', method.source)
    body = _rebound(made, attributes, own, own).with_changes(leading_lines=[])
    test = test.with_changes(body=cst.IndentedBlock([body]))

    def replaced(node: Any) -> Any:
        if goes:
            return test.with_changes(leading_lines=node.leading_lines)
        return cst.FlattenSentinel([test, node])

    edits.edit(method.source, before, replaced)


def add_to_end(edits: Edits, method: Method, function: cst.CSTNode, new: Any) -> None:
    """One more statement at the end of a function."""
    edits.edit(
        method.source, function, lambda node: node.with_changes(body=block(node.body, [new]))
    )


def _rebound(statement: cst.CSTNode, attributes: dict[str, str], own: str, owner: str) -> Any:
    """The statement with these names as attributes."""
    words = {name: cst.parse_expression(f"{owner}.{new}") for name, new in attributes.items()}
    return in_words(statement.deep_clone(), {own: cst.Name(owner), **words})


def _inner(edits: Edits, method: Method, statement: cst.CSTNode) -> bool:
    """A call inside of the statement that is the same for every sample."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    for node in parts_like(statement, m.Call()):
        if not method.depends_on_self_alone(node):
            continue
        if goes_once(node) or last_name(node.func) in _OPENS or _only_looks_up(method, node):
            continue
        outer = next(method.source.parents(node))
        if isinstance(outer, cst.Expr):  # called for what it does
            continue
        if any(map(method.changed_in_place, names_in(*targets_of(outer)))):
            continue
        name = method.free_name(_named_after(node))
        made = parse_template_statement("made = {value}", value=node.deep_clone())
        kept = cst.parse_expression(f"{method.self_name}.{name}")
        edits.replace(method.source, node, kept)
        _made_once(edits, method, statement, made, {"made": name})
        return True
    return False


def _only_looks_up(method: Method, node: cst.Call) -> bool:
    """`len(self.x)`, `str(self.x)`: nothing that takes time."""
    return method.source.text(node.func) in (
        *("len", "str", "int", "float", "bool", "isinstance", "super", "getattr"),
    )


def _named_after(node: cst.Call) -> str:
    for each in parts_like(node, m.Attribute(m.Name("self"))):
        return f"{each.attr.value.strip('_')}_{last_name(node.func).strip('_')}".lower()
    return f"{last_name(node.func).strip('_')}_made".lower()


# Handles.


def keep_open(edits: Edits, method: Method, statement: cst.CSTNode) -> bool:
    """Open at first use in each process, and keep open, what this statement opens for each
    sample."""
    if method.self_name is None or method.method("__getstate__") is not None:
        return False
    around = _with_of(method, statement)
    if m.matches(around, m.With(items=[m.WithItem(asname=m.AsName(m.Name()))])):
        (item,) = around.items
        if _opens(method, item.item):
            _keep_handle(edits, method, around, item.asname.name.value, item.item)
            return True
    assign = assignment(statement)
    if assign is not None and _opens(method, assign[1]) and not method.changed(assign[0]):
        _keep_handle(edits, method, statement, *assign)
        return True
    return False


def _opens(method: Method, node: cst.BaseExpression) -> bool:
    if not isinstance(node, cst.Call) or last_name(node.func) not in _OPENS:
        return False
    # A file's own position would move on from sample to sample.
    return method.source.text(node.func) != "open" and method.depends_on_self_alone(node)


def _keep_handle(
    edits: Edits,
    method: Method,
    statement: Any,
    name: str,
    opened: cst.BaseExpression,
) -> None:
    source, own = method.source, method.self_name
    attribute = method.free_name(name)
    opener = method.free_name(f"{attribute}_pid")
    kept = cst.parse_expression(f"{own}.{attribute}")
    for node in method.uses(name):
        edits.replace(source, node, kept)
    for each in method.statements:
        if _closes(each, name):
            edits.edit(source, each, lambda _: cst.RemoveFromParent())
    test = parse_template_statement(
        f"if {own}.{opener} != os.getpid():  # a process opens its own\n"
        f"    {own}.{attribute}, {own}.{opener} = {{opened}}, os.getpid()\n",
        source.module.config_for_parsing,
        opened=opened.deep_clone(),
    )

    def replaced(node: Any) -> Any:
        first = test.with_changes(leading_lines=node.leading_lines)
        rest = node.body.body if isinstance(node, cst.With) else ()
        return cst.FlattenSentinel([first, *rest])

    edits.edit(source, statement, replaced)
    state = (
        f"{attribute} = {opener} = None\n",
        "def __getstate__(self):\n"
        f'    return {{**self.__dict__, "{attribute}": None, "{opener}": None}}\n',
    )
    _add_to_class(edits, method, state)
    add_import(edits, source, "os")


def _closes(statement: cst.CSTNode, name: str) -> bool:
    called = m.Call(m.Attribute(m.Name(name), m.OneOf(*(m.Name(each) for each in _CLOSES))))
    return m.matches(statement, m.SimpleStatementLine([m.Expr(called)]))


def _add_to_class(edits: Edits, method: Method, state: tuple[str, str]) -> None:
    """Attributes in front of the first method, and a method behind the last."""
    owner, source = method.owner, method.source
    assert owner is not None
    attributes, function = (parsed(text, source)[0] for text in state)
    blank = [cst.EmptyLine(indent=False)]

    def added(node: cst.ClassDef) -> cst.ClassDef:
        body: list[Any] = list(node.body.body)
        at = next((n for n, each in enumerate(body) if isinstance(each, cst.FunctionDef)), 0)
        first = attributes.with_changes(leading_lines=blank if at else [])
        body[at] = body[at].with_changes(leading_lines=body[at].leading_lines or blank)
        body = [*body[:at], first, *body[at:], function.with_changes(leading_lines=blank)]
        return node.with_changes(body=node.body.with_changes(body=body))

    edits.edit(source, owner, added)


def add_import(edits: Edits, source: Source, module: str, alias: str | None = None) -> None:
    """Import a module above the file's other imports of modules, unless it is imported."""
    if import_of(source, alias or module) == (module, ""):
        return
    text = f"import {module} as {alias}\n" if alias else f"import {module}\n"
    (new,) = parsed(text, source)

    def added(tree: cst.Module) -> cst.Module:
        body: list[Any] = list(tree.body)
        imports = [n for n, each in enumerate(body) if is_import(each)]
        at = imports[0] if imports else (1 if tree.get_docstring() else 0)
        future = [n for n in imports if "__future__" in tree.code_for_node(body[n])]
        first = new
        if future:
            at = future[-1] + 1
            first = first.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
        elif imports:
            first = first.with_changes(leading_lines=body[at].leading_lines)
            body[at] = body[at].with_changes(leading_lines=[])
        return tree.with_changes(body=[*body[:at], first, *body[at:]])

    edits.edit(source, source.module, added)


def is_import(node: cst.CSTNode) -> bool:
    """Whether it is a statement that imports."""
    return m.matches(node, m.SimpleStatementLine([m.Import() | m.ImportFrom(), m.ZeroOrMore()]))


# Statements.


def _with_of(method: Method, statement: cst.CSTNode) -> Any:
    """The statement itself, or the `with` right around it."""
    if isinstance(statement, cst.With):
        return statement
    outer = enclosing(method.source, statement, cst.With)
    if outer is not None and enclosing(method.source, outer, cst.FunctionDef) is method.node:
        return outer
    return None


def assignment(statement: Any) -> tuple[str, cst.BaseExpression] | None:
    """(name, value) of `name = value`."""
    if m.matches(statement, m.SimpleStatementLine([m.Assign([m.AssignTarget(m.Name())])])):
        assign = statement.body[0]
        return assign.targets[0].target.value, assign.value
    return None
