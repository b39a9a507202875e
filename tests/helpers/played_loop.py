"""An iteration that tuning switches, without a loader: steps take what its settings' rate says."""

from typing import Any

from loaderscope.tuning.evidence.settings import Settings
from loaderscope.tuning.switch.comparison import SpotChecks


class PlayedLoop:
    """`rates`: batches a second by settings, 10 of others; `driver` decides."""

    why_never: str | None = None
    driver: Any = None

    def __init__(self, rates: dict[Any, Any]) -> None:
        self.rates, self.settings = rates, Settings(1)
        self.step, self.given, self.length, self.pids = None, 0, 10**6, ()
        self.spot_checks = SpotChecks()
        self.released, self.waited_ns = 0, None
        self.seen: list[tuple[int, Settings]] = []  # after how many batches, which

    @property
    def pool(self) -> Any:
        return self

    @property
    def pace_ns(self) -> int:
        return int(1e9 / self.rates.get(self.settings, 10.0))

    def why_not(self, settings: Settings) -> None: ...

    def release_unwanted(self) -> None:
        self.released += 1

    def hand_over(self) -> None:
        self.given += 1
        self.driver.handed(self, 0)
        if not self.seen or self.seen[-1][1] != self.settings:
            self.seen.append((self.given, self.settings))
