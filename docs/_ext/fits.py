"""Fits that several figures share."""

from __future__ import annotations

import functools
from typing import Any

from sklearn.datasets import load_digits

from mercat import Mercat


@functools.cache
def digits(**parameters: Any) -> tuple[Any, Mercat]:
    """Scikit-learn's digits and a model of them."""
    data = load_digits()
    return data, Mercat(random_state=0, **parameters).fit(data.data)
