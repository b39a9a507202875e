"""`%load_ext loaderscope`, then `%%loaderscope` as first line of a cell: its loaders are recorded,
and the report is shown below.

IPython runs the cell as any other: the first line is emptied before the cell is compiled, and
recording starts and ends around it. So errors look the same, the last value is shown, `await`
works, and lines keep their numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..advisors.assemble.build_report import report
from ..advisors.schema.report_model import Report
from ..profiler.record.iterate.watch import watch_all_for_now
from ..profiler.record.session import session as sessions

MAGIC = "%%loaderscope"
NOTHING = "loaderscope: no DataLoader was iterated over in this cell"
NO_ARGUMENTS = (
    f"{MAGIC} takes no arguments: write it alone on the first line, and the cell below it"
)

_loaded: dict[int, _Cells] = {}


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext loaderscope`."""
    _loaded[id(shell)] = _Cells(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Called by `%unload_ext loaderscope`."""
    _loaded.pop(id(shell)).unload()


def without_magic(lines: list[str]) -> list[str]:
    """The cell without our line. Another cell magic below it becomes the first line."""
    if not lines or lines[0].strip() != MAGIC:
        return lines
    return lines[1:] if len(lines) > 1 and lines[1].startswith("%%") else ["\n", *lines[1:]]


class _Cells:
    """The magic in one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        # The cell being recorded, the iterations begun before it, and what ends recording. The cell
        # may run other cells.
        self._recording: tuple[Any, dict[int, int], Callable[[], None]] | None = None
        shell.input_transformers_cleanup.append(without_magic)
        # For completion and help, and for a line with arguments.
        shell.register_magic_function(_with_arguments, "cell", MAGIC.lstrip("%"))
        shell.events.register("pre_run_cell", self._begin)
        shell.events.register("post_run_cell", self._show)

    def unload(self) -> None:
        self._shell.input_transformers_cleanup.remove(without_magic)
        self._shell.magics_manager.magics["cell"].pop(MAGIC.lstrip("%"), None)
        self._shell.events.unregister("pre_run_cell", self._begin)
        self._shell.events.unregister("post_run_cell", self._show)

    def _begin(self, info: Any) -> None:
        first, _, _ = str(info.raw_cell).lstrip().partition("\n")
        if first.strip() == MAGIC and self._recording is None:
            self._recording = info, _epochs(), watch_all_for_now()

    def _show(self, result: Any) -> None:
        if self._recording is None or result.info is not self._recording[0]:
            return
        (_, before, end), self._recording = self._recording, None
        try:
            found = _since(before)
        finally:
            end()
        if found is not None:
            from IPython import display

            show: Any = display.display
            show(found)
        elif result.success:
            print(NOTHING)


def _with_arguments(line: str, cell: str) -> None:
    """Record the DataLoaders that this cell iterates over, and show the report below it."""
    from IPython.core.error import UsageError

    raise UsageError(NO_ARGUMENTS)


def _epochs() -> dict[int, int]:
    """The iterations begun so far, by the number of the loader in the session."""
    session = sessions.current()
    return {each.index: each.begun for each in session.recorders} if session is not None else {}


def _since(before: dict[int, int]) -> Report | None:
    """The report of the loaders that were iterated over since then; None if there are none."""
    now = {index for index, begun in _epochs().items() if begun > before.get(index, 0)}
    if not now:
        return None
    found = report()
    return replace(found, loaders=tuple(each for each in found.loaders if each.index in now))
