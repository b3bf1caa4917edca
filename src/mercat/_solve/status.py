"""Reasons why a fit ended."""

from __future__ import annotations

import enum


class Status(enum.Enum):
    """Why a fit ended. The value of a member is a sentence for users."""

    CONVERGED = "The loss stopped falling: the fit converged."
    PRECISION = "The line search found no lower loss: the fit stopped there."
    MAX_ITER = "The fit stopped at max_iter iterations, before the loss stopped falling."
    CALLBACK = "The callback asked to stop."
    SCHEDULE = "The fit ran its fixed number of iterations, as the paper's Algorithm 1 does."

    def __str__(self) -> str:
        return self.value
