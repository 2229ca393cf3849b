"""Inverse of a monotonic function: the assumption with which a model gives a printed value."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["argument_of"]


def argument_of(function: Callable[[float], float], value: float, low: float, high: float, tolerance: float) -> float:
    """The argument at which an increasing function reaches a value.

    By linear interpolation between the ends of an interval around it, which shrinks at each step. An end that stays twice has
    its value halved, so that the other side is reached (the Illinois method).

    Args:
        function: increasing from low to high.
        value: to be reached.
        low, high: ends of the interval.
        tolerance: change of the argument in the last step.
    Returns: the argument; `high` if the value is not reached, `low` if it is exceeded everywhere.

    >>> round(argument_of(lambda x: x * x, 2.0, 0.0, 2.0, 1e-4), 4)
    1.4142
    """
    below, above = function(low) - value, function(high) - value
    if below >= 0:
        return low
    if above <= 0:
        return high
    argument, kept = high, 0  # the end that stayed in the last step: -1 low, 1 high
    while True:
        last, argument = argument, low - below * (high - low) / (above - below)
        if abs(argument - last) <= tolerance:
            return argument
        error = function(argument) - value
        if error < 0:
            low, below, above = argument, error, above / 2 if kept == 1 else above
            kept = 1
        else:
            high, above, below = argument, error, below / 2 if kept == -1 else below
            kept = -1
