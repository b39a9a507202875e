"""Whose code a file holds: the user's, or that of Python, of an installed package, of this one."""

from __future__ import annotations

import os
import re
import sysconfig

from ..base.own_frames import HERE

_INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]")
_STANDARD = tuple(
    os.path.join(p, "")
    for p in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    if p
)
_OURS = os.path.dirname(HERE.rstrip(os.sep)) + os.sep


def of_user(file: str) -> bool:
    """Whether code of this file is the user's; what is typed into a shell or a notebook is."""
    return not (_INSTALLED.search(file) or file.startswith((*_STANDARD, _OURS, "<frozen ")))
