"""Why a figure is missing: one sentence a metric, for `host.json`."""

from __future__ import annotations


class Reasons:
    """The first reason of a metric stays; `changed` says that `host.json` is out of date."""

    def __init__(self) -> None:
        self.sentences: dict[str, str] = {}
        self.changed = False

    def add(self, sentence: str, *metrics: str) -> None:
        """`sentence` is why these fields of a lane (or a whole lane, by its name) are missing."""
        for metric in metrics:
            if metric not in self.sentences:
                self.sentences[metric] = sentence
                self.changed = True

    def drop(self, *metrics: str) -> None:
        """They can be measured after all."""
        for metric in metrics:
            if self.sentences.pop(metric, None) is not None:
                self.changed = True


def said(error: BaseException) -> str:
    """An exception as the end of a sentence."""
    text = error.strerror if isinstance(error, OSError) else str(error)
    return text or type(error).__name__
