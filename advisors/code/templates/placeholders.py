"""Names in templates in place of which something is put in: functions, expressions, statements."""

from collections.abc import Callable
from typing import Any

COLLATE: Callable[[Any], Any]
LOADER: Any
ORDER: Any
OWN_INIT: Any
