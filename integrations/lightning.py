"""`Trainer(callbacks=[LoaderscopeCallback()])` of Lightning."""

from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch.callbacks import Callback
    from lightning.pytorch.utilities import rank_zero_info
except ImportError:  # the package of the older name
    from pytorch_lightning.callbacks import Callback
    from pytorch_lightning.utilities import rank_zero_info

from .outcome import outcome, watch_all


class LoaderscopeCallback(Callback):  # type: ignore[misc]
    """Records the loaders of a fit; at its end says what each was bound by, and logs the figures to
    the trainer's loggers."""

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        watch_all()

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        lines, figures = outcome()
        for line in lines:
            rank_zero_info(line)
        for logger in trainer.loggers if figures else ():
            logger.log_metrics(figures, step=trainer.global_step)
