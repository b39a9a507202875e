"""Whether a line of a collate function works for each sample by itself."""

import ast

from .method import Method, bound_by, called, calls_in, draws, names_of, read_by

# Calls that put samples together, or cost next to nothing.
_PACKING = {
    *("tensor", "as_tensor", "from_numpy", "array", "asarray", "FloatTensor", "LongTensor"),
    *("Tensor", "stack", "cat", "concatenate", "vstack", "hstack", "pad", "pad_sequence"),
    *("copy_", "to", "clone"),
    *("zeros", "ones", "full", "new_zeros", "view", "reshape", "unsqueeze", "squeeze", "permute"),
    *("transpose", "contiguous", "long", "float", "int", "bool", "numpy", "tolist", "item", "size"),
    *("len", "append", "extend", "zip", "range", "enumerate", "max", "min", "sum", "list", "tuple"),
    *("dict", "get", "keys", "values", "items", "isinstance", "str", "copy"),
}


def done_per_sample(method: Method, line: str) -> bool:
    """Whether this line of a collate function does some work for each sample by itself, other than
    putting samples together, and draws nothing."""
    statement = method.at(line)
    if statement is None:
        return False
    # What goes over the fields of a sample is done once for each field.
    fields = bound_by(*(each for each in method.statements if _of_fields(*read_by(each))))
    return any(
        isinstance(node, ast.Call)
        and called(node) not in _PACKING
        and names_of(node) & changed
        and not draws(node)
        for over, changed, nodes in method.rounds(statement)
        if method.varies(*over) and not (_of_fields(*over) or names_of(*over) & fields)
        for node in nodes
    )


def _of_fields(*nodes: ast.AST) -> bool:
    """Whether this goes over the keys of a sample or batch."""
    return any(called(call) in ("keys", "items") for each in nodes for call in calls_in(each))
