"""Names in templates that stand for something else: in capitals what is put in, in small letters
what the user has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Which of several forms is pasted.
KIND = ""

# Functions, expressions and statements.
COLLATE: Callable[[Any], Any]
DATASET: Any
LOADER: Any
ORDER: Any
OWN_INIT: Any

loader: Any
