"""A method without the waste that its source shows, if it certainly gives the same samples."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from ..case.code_text import free_names
from .editable import Editable
from .python_text import CannotEdit, PythonText, edited
from .syntax import without_annotations
from .waste import leave_out, look_up, make_once, read_the_part

# What is done about a shape.
_EDITS = {
    "not needed": leave_out,
    "same": make_once,
    "whole for a part": read_the_part,
    "searched": look_up,
}
_IMPORTS = {
    "np": "import numpy as np",
    "numpy": "import numpy",
    "torch": "import torch",
    "math": "import math",
}


def rewritten(
    source: Sequence[str], line: str, key: str, held: Mapping[str, str], copies: bool
) -> ast.FunctionDef | None:
    """The method without the waste of this shape on this line; None if it might give others.
    `held` are the kinds of the data set's attributes; `copies`: collating copies what it gets."""
    try:
        file = PythonText("\n".join([*source, ""]))
        function = next(file.find(ast.FunctionDef))
        method = Editable(file, function, held, certain=True, copies=copies)
        statement = method.at(line)
        edit = _EDITS.get(key)
        if statement is None or edit is None or not _plain(function):
            return None
        if not edit(method, statement):
            return None
        return bare(edited(file.text, method.pieces), function.name)
    except (CannotEdit, SyntaxError, ValueError, RecursionError, StopIteration):
        return None


def bare(text: str, name: str) -> ast.FunctionDef:
    """The function in this text under another name, and without annotations."""
    (made,) = ast.parse(text).body
    assert isinstance(made, ast.FunctionDef)
    made.name = name
    return without_annotations(made)


def with_imports_of(function: ast.FunctionDef) -> str | None:
    """The code of a function below the imports it needs; None if it uses names of its module."""
    used = free_names(ast.Module([function], []))
    if not used <= _IMPORTS.keys():
        return None
    imports = [line for name, line in _IMPORTS.items() if name in used]
    return "\n".join([*imports, *["\n"] * bool(imports), ast.unparse(function)])


def _plain(function: ast.FunctionDef) -> bool:
    """Whether it is one scope, and a plain function when it stands alone."""
    scopes = (ast.FunctionDef, ast.Lambda, ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom)
    inner = [each for each in ast.walk(function) if each is not function]
    names = {each.id for each in inner if isinstance(each, ast.Name)}
    return (
        not function.decorator_list
        and not names & {"super", "__class__", "locals", "vars"}
        and not any(isinstance(each, scopes) for each in inner)
    )
