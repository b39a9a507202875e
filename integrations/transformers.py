"""`Trainer(callbacks=[LoaderscopeCallback()])` of Hugging Face's transformers."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback
from transformers.utils import logging

from .outcome import outcome, watch_all


class LoaderscopeCallback(TrainerCallback):  # type: ignore[misc]
    """Records the Trainer's loaders; at the end of training says what each was bound by, and adds
    the figures to the Trainer's log (`state.log_history`)."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        watch_all()

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        lines, figures = outcome()
        if figures:
            state.log_history.append({**figures, "step": state.global_step})
        if state.is_world_process_zero:
            logger = logging.get_logger(__name__)
            for line in lines:
                logger.warning(line)  # what the Trainer shows unless it is told otherwise
