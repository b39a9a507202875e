"""Who decides on the settings of a loader, as its iterator sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .settings import Settings

if TYPE_CHECKING:
    from .turns import Turns


class Driver:
    """This one leaves everything as it is. What a driver raises is its failure, and ends
    nothing."""

    compared = 0  # batches that other settings make for a comparison before they make any

    def __init__(self, pools: int = 0) -> None:
        self.pools = pools  # made so far besides those that an untuned loader makes

    def wanted(self, own: Settings) -> Settings:
        """For an iteration that begins; `own` are those of the user's code, which may change
        them."""
        return own

    def keeps(self, settings: Settings) -> bool:
        """Whether workers with these settings are to stay, idle, for the next turn."""
        return False

    def begun(self, iterator: Turns) -> None:
        """An iteration begins."""

    def handed(self, iterator: Turns, batch: Any) -> None:
        """This batch is about to reach the loop. May switch."""

    def switched(self, iterator: Turns, settings: Settings) -> None:
        """From the next batch on, batches are made with these."""

    def ended(self, iterator: Turns) -> None:
        """The iteration has come to its end."""

    def failed(self, settings: Settings, error: BaseException) -> None:
        """These do not work with this loader; its own are in use again."""
