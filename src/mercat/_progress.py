"""Progress bars, shown only when asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

# Called with iteration, loss and positions; returns whether to stop.
Report = Callable[[int, float, Any], bool]
_SECONDS_PER_PULSE = 0.5


class Progress:
    """Progress bars on stderr for the phases of a fit; does nothing unless `verbose`.

    A bar advances with each step of its phase. During long steps, `pulse` updates its clock after each block
    of work.
    """

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self._bar: Any = None
        self._last_refresh = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Close the bar of the last phase and start another; if `unit` is empty, it only shows a clock."""
        self._close()
        if self._verbose:
            from tqdm.auto import tqdm

            bar_format = None if unit else "{desc} [{elapsed}]"
            # miniters=1 shows every step; by default, tqdm would skip slow steps after fast ones.
            self._bar = tqdm(total=total, desc=name, unit=unit, miniters=1, bar_format=bar_format)

    def advance(self, n: int = 1, loss: float | None = None) -> None:
        """Advance the bar by n and show the loss, if given."""
        if self._bar is not None:
            if loss is not None:
                self._bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
            self._bar.update(n)

    def pulse(self) -> None:
        """Update the clock of the bar, at most twice a second."""
        if self._bar is not None and time.monotonic() - self._last_refresh > _SECONDS_PER_PULSE:
            self._last_refresh = time.monotonic()
            self._bar.refresh()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def reporter(progress: Progress, callback: Callable[[int, float, Any], Any] | None) -> Report:
    """Function that a solver calls after each iteration: it advances the bar and calls the user's callback.

    The callback receives a copy of the positions.
    """

    def report(iteration: int, loss: float, Y: Any) -> bool:
        progress.advance(1, loss)
        return bool(callback(iteration, loss, np.array(Y))) if callback is not None else False

    return report
