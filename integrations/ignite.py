"""`LoaderscopeHandler().attach(trainer)` for an engine of Ignite."""

from __future__ import annotations

from typing import Any

from ignite.engine import Events

from .outcome import outcome, watch_all


class LoaderscopeHandler:
    """Records the loaders of a run; when it has completed says what each was bound by, and puts the
    figures among the engine's metrics, where loggers attached to `Events.COMPLETED` after this find
    them."""

    def attach(self, engine: Any) -> None:
        engine.add_event_handler(Events.STARTED, self._started)
        engine.add_event_handler(Events.COMPLETED, self._completed)

    def _started(self, engine: Any) -> None:
        watch_all()

    def _completed(self, engine: Any) -> None:
        lines, figures = outcome()
        engine.state.metrics.update(figures)
        for line in lines:
            engine.logger.info(line)
