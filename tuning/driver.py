"""Who decides on the settings of a loader, as the iterator sees it that switches between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from .settings import Settings

if TYPE_CHECKING:
    from .switching import Switching


class Driver(Protocol):
    """Who decides on the settings of a loader. What it raises is its failure, and ends nothing."""

    pools: int  # made so far besides those that an untuned loader makes
    compared: (
        int  # batches that other settings make for a comparison before they make any for the loop
    )

    def wanted(self, own: Settings) -> Settings:
        """For an iteration that begins; `own` are those of the user's code, which may change
        them."""

    def keeps(self, settings: Settings) -> bool:
        """Whether workers with these settings are to stay, idle, for the next turn."""

    def begun(self, iterator: Switching) -> None:
        """An iteration begins."""

    def handed(self, iterator: Switching, batch: Any) -> None:
        """This batch is about to reach the loop. May switch."""

    def switched(self, iterator: Switching, settings: Settings) -> None:
        """From the next batch on, batches are made with these."""

    def ended(self, iterator: Switching) -> None:
        """The iteration has come to its end."""

    def failed(self, settings: Settings, error: BaseException) -> None:
        """These do not work with this loader; its own are in use again."""


class NoOpDriver:
    """Leaves everything as it is."""

    compared = 0

    def __init__(self, pools: int) -> None:
        self.pools = pools

    def wanted(self, own: Settings) -> Settings:
        return own

    def keeps(self, settings: Settings) -> bool:
        return False

    def begun(self, iterator: Switching) -> None: ...

    def handed(self, iterator: Switching, batch: Any) -> None: ...

    def switched(self, iterator: Switching, settings: Settings) -> None: ...

    def ended(self, iterator: Switching) -> None: ...

    def failed(self, settings: Settings, error: BaseException) -> None: ...
