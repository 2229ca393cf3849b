"""Bits that a modulated wavelength carries."""

from __future__ import annotations

from math import log2

__all__ = ["line_rate_bits_per_s"]


def line_rate_bits_per_s(symbols_per_s: float, levels: int) -> float:
    """Rate of a wavelength whose signal has that many levels: log2(levels) bits a symbol.

    Args:
        symbols_per_s: symbol rate [1/s].
        levels: of the signal: 2 for on-off (NRZ), 4 for PAM4 [count].
    Raises: ValueError: fewer than 2 levels or a negative rate (an error of the caller).

    >>> line_rate_bits_per_s(56e9, 4)
    112000000000.0
    """
    if levels < 2 or symbols_per_s < 0:
        raise ValueError(f"{levels} levels at {symbols_per_s} symbols a second carry nothing")
    return symbols_per_s * log2(levels)
