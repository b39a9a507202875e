"""Where run directories live."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "LOADERSCOPE_DIR"


def runs_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder that holds one folder a run: `LOADERSCOPE_DIR`, or `runs` in the platform's user state folder.

    Nothing is created. An empty variable counts as unset.
    """
    chosen = environ.get(VARIABLE, "")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return platformdirs.user_state_path("loaderscope", appauthor=False) / "runs"
