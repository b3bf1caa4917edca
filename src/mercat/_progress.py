"""Progress bars, shown only when asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Progress:
    """Bars on stderr for the phases of a fit; does nothing unless `verbose`."""

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()

    def phase(self, name: str, total: int | None, unit: str) -> None:
        """Close the bar of the last phase and begin another."""
        self._close()
        if self._verbose:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, desc=name, unit=unit, leave=True)

    def advance(self, n: int = 1, loss: float | None = None) -> None:
        """Move the bar on by n, and show the loss where there is one."""
        if self._bar is not None:
            if loss is not None:
                self._bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
            self._bar.update(n)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def reporter(
    progress: Progress, callback: Callable[[int, float, Any], Any] | None
) -> Callable[[int, float, Any], bool]:
    """What a solver calls after each iteration: moves the bar, asks the user's callback."""

    def report(iteration: int, loss: float, Y: Any) -> bool:
        progress.advance(1, loss)
        return bool(callback(iteration, loss, Y)) if callback is not None else False

    return report
