"""The interface of whoever decides on a loader's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..evidence.settings import Settings

if TYPE_CHECKING:
    from .turns import Turns


class Driver:
    """This driver changes nothing. An error in a driver ends its work, and nothing else."""

    compared = 0  # batches that other settings make for a comparison before they make any

    def __init__(self, pools: int = 0) -> None:
        self.pools = pools  # made so far besides those that an untuned loader makes

    @property
    def settled(self) -> bool:
        """Whether the code's own settings make all batches from now on."""
        return False

    def wanted(self, own: Settings) -> Settings:
        """The settings for a new iteration; `own` are those of the user's code, which may change
        them."""
        return own

    def keeps(self, settings: Settings) -> bool:
        """Whether workers with these settings stay, idle, for the next turn."""
        return False

    def begun(self, iterator: Turns) -> None:
        """An iteration begins."""

    def handed(self, iterator: Turns, batch: Any) -> None:
        """This batch is about to reach the loop. May switch."""

    def switched(self, iterator: Turns, settings: Settings) -> None:
        """These settings make the batches from the next one on."""

    def ended(self, iterator: Turns) -> None:
        """The iteration has ended."""

    def failed(self, settings: Settings, error: BaseException) -> None:
        """These settings do not work with this loader; its own are in use again."""
