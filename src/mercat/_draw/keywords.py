"""Errors for unknown keyword arguments of plotting functions, which name the ones to use."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

# What to use instead of parameters of other libraries.
_EQUIVALENTS = {
    "c": "color=",
    "colors": "color=",
    "hue": "color=",
    "cmap": "palette=",
    "colormap": "palette=",
    "color_map": "palette=",
    "s": "size=",
    "markersize": "size=",
    "vmin": "limits=(low, high)",
    "vmax": "limits=(low, high)",
    "clim": "limits=(low, high)",
    "legend_loc": "legend=False, or labels=True for names on the map",
    "title": "set_title of the axes that are returned",
    "figsize": "axes of a figure of this size",
    "axes": "ax=",
    "ax": "axes=",
}


def reject_unknown_keywords(
    *options: str, instead: Mapping[str, str] | None = None
) -> Callable[[F], F]:
    """Decorator of a function: TypeErrors for unknown keyword arguments say what to use instead.

    `options` are the names that the function accepts as ``**options``, and `instead` what to use for other
    names. The signature stays the same.
    """
    equivalents = {**_EQUIVALENTS, **(instead or {})}

    def decorate(function: F) -> F:
        parameters = inspect.signature(function).parameters.values()
        names = [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]
        names += options

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            for name in kwargs:
                if name not in names:
                    close = difflib.get_close_matches(name, names, n=1)
                    hint = (
                        f"Did you mean {close[0]}=?"
                        if close
                        else f"Parameters are {', '.join(names)}."
                    )
                    hint = f"Use {equivalents[name]}." if name in equivalents else hint
                    raise TypeError(f"plot.{function.__name__} has no parameter {name!r}. {hint}")
            return function(*args, **kwargs)

        return cast(F, checked)

    return decorate
