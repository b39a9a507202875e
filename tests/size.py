"""How much a reader of the product has to carry: its tokens, its longest functions and classes.

    python tests/size.py

Prints the lines of tests, and the tokens of each room and in all, as Python's `tokenize` counts names, operators, numbers
and strings. Exit code 1: a bound is exceeded. Tests and benchmarks have no tokens to count.
"""

import ast
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
APART = ("tests", "benchmarks", "build", "dist")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COUNTED = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
MOST_TOKENS, MOST_TEST_LINES = 300_000, 36_000
MOST_LINES, MOST_METHODS, MOST_FILES = 60, 25, 25  # of a function, of a class, of a folder


def main() -> int:
    tokens: Counter[str] = Counter()
    files: Counter[Path] = Counter()
    problems: list[str] = []
    for path in sorted(_product()):
        name = path.relative_to(ROOT)
        tokens[name.parts[0] if len(name.parts) > 1 else "top"] += _tokens(path)
        files[name.parent] += 1
        problems += [f"{name}: {problem}" for problem in _too_large(path)]
    problems += [f"{folder}: {n} files" for folder, n in files.items() if n > MOST_FILES]
    total = sum(tokens.values())
    if total > MOST_TOKENS:
        problems.append(f"{total:,} tokens, and {MOST_TOKENS:,} are allowed")
    rooms = ", ".join(f"{room} {count:,}" for room, count in sorted(tokens.items()))
    print(f"{total:,} tokens of product Python ({rooms})")
    lines = sum(path.read_bytes().count(b"\n") for path in (ROOT / "tests").rglob("*.py"))
    if lines > MOST_TEST_LINES:
        problems.append(f"{lines:,} lines of tests, and {MOST_TEST_LINES:,} are allowed")
    print(f"{lines:,} lines of tests")
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0


def _product() -> Iterator[Path]:
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).parts
        if parts[0] not in APART and not any(part.startswith(".") for part in parts):
            yield path


def _tokens(path: Path) -> int:
    with path.open("rb") as file:
        return sum(token.type in COUNTED for token in tokenize.tokenize(file.readline))


def _too_large(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, FUNCTIONS):
            lines = node.end_lineno - node.lineno + 1
            if lines > MOST_LINES:
                yield f"{node.name} has {lines} lines"
        elif isinstance(node, ast.ClassDef):
            methods = sum(isinstance(each, FUNCTIONS) for each in node.body)
            if methods > MOST_METHODS:
                yield f"{node.name} has {methods} methods"


if __name__ == "__main__":
    sys.exit(main())
