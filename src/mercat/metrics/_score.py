"""Return types of the measures: a number with a standard error, and a table of them."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any

from .._extras import require

if TYPE_CHECKING:
    import pandas


class Score(float):
    """A float with a standard error.

    A score can be used like a float, but prints differently.

    Parameters
    ----------
    value : float
        The measure.
    standard_error : float, default=0.0
        Standard deviation of the measure over samples of the same size; 0 if all points were used.

    Examples
    --------
    >>> from mercat.metrics import Score
    >>> score = Score(0.8731, standard_error=0.0021)
    >>> print(score)
    0.8731 ± 0.0021
    >>> score > 0.85, float(score), score.standard_error
    (True, 0.8731, 0.0021)
    """

    standard_error: float

    def __new__(cls, value: float, standard_error: float = 0.0) -> Score:
        score = super().__new__(cls, value)
        score.standard_error = float(standard_error)
        return score

    def __repr__(self) -> str:
        return f"Score({float(self)!r}, standard_error={self.standard_error!r})"

    def __str__(self) -> str:
        if not self.standard_error > 0:
            return f"{float(self):.4f}"
        # Two significant digits of the error.
        digits = min(6, max(4, 1 - math.floor(math.log10(self.standard_error))))
        return f"{float(self):.{digits}f} ± {self.standard_error:.{digits}f}"


class Report(dict[str, Score]):
    """A dictionary of scores by name that prints as a table.

    Examples
    --------
    >>> from mercat.metrics import Report, Score
    >>> Report(angle_preservation=Score(0.91, 0.002), trustworthiness=Score(0.98))
    angle_preservation  0.9100 ± 0.0020
    trustworthiness     0.9800
    """

    def __repr__(self) -> str:
        width = max((len(name) for name in self), default=0)
        return "\n".join(f"{name:{width}}  {score}" for name, score in self.items())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(score))}</td></tr>"
            for name, score in self.items()
        )
        return f"<table>{rows}</table>"

    def to_frame(self) -> pandas.DataFrame:
        """Convert to a pandas DataFrame with one row per measure and the columns score and standard_error."""
        pd = require("pandas", "to_frame", "cli")
        columns: dict[str, Any] = {
            "score": [float(score) for score in self.values()],
            "standard_error": [score.standard_error for score in self.values()],
        }
        return pd.DataFrame(columns, index=pd.Index(list(self), name="measure"))
