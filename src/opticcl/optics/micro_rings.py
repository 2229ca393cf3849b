"""Combs and micro-rings: which lines of a comb a ring drops, and switches whose rings do not match their free spectral range.

A ring drops light at its resonance and again every free spectral range (FSR). If the FSR is q comb lines, it drops each
q-th line: residue classes modulo q. A switch that is to part the lines into r groups by their number modulo r therefore
needs q = r; with more, some lines are dropped by no ring, with fewer, two rings take the same line.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.files import read_toml

__all__ = [
    "dropped_lines",
    "frequency_hz",
    "lines_of_span",
    "range_for",
    "spacing_m",
    "span_hz",
    "undropped_lines",
    "wavelength_m",
]

SPEED_OF_LIGHT: float = read_toml("opticcl.optics", "constants.toml")["speed_of_light"]["value"]


def frequency_hz(wavelength_m: Any) -> Any:
    """Frequency of a wavelength in vacuum [Hz].

    >>> round(frequency_hz(1550.12e-9) / 1e9)
    193400

    Raises: ParameterError: not above 0.
    """
    if np.min(wavelength_m) <= 0:
        raise ParameterError(f"wavelength: {np.min(wavelength_m):g} m is not above 0; try 1550e-9")
    return SPEED_OF_LIGHT / wavelength_m


def wavelength_m(frequency_hz: Any) -> Any:
    """Wavelength in vacuum of a frequency [m]."""
    if np.min(frequency_hz) <= 0:
        raise ParameterError(f"frequency: {np.min(frequency_hz):g} Hz is not above 0; try 193.1e12")
    return SPEED_OF_LIGHT / frequency_hz


def spacing_m(spacing_hz: float, at_m: float) -> float:
    """Distance of neighbouring lines in wavelength, at a wavelength: df l^2 / c [m]."""
    return spacing_hz * at_m**2 / SPEED_OF_LIGHT


def span_hz(low_m: Any, high_m: Any) -> Any:
    """Distance of two wavelengths in frequency [Hz].

    >>> round(span_hz(1534.07e-9, 1548.48e-9) / 1e9, 1)
    1818.6
    """
    return frequency_hz(low_m) - frequency_hz(high_m)


def lines_of_span(span_hz: Any, spacing_hz: float) -> Any:
    """Comb lines that a span covers, a fraction where it does not match [lines].

    Raises: ParameterError: a spacing that is not above 0.
    """
    if spacing_hz <= 0:
        raise ParameterError(f"comb: a spacing of {spacing_hz:g} Hz is not above 0; try 100e9")
    return span_hz / spacing_hz


def range_for(num_rings: int, spacing_hz: float) -> float:
    """Free spectral range that a switch with r rings a bus needs: r df [Hz].

    >>> range_for(8, 201.5e9) / 1e9
    1612.0
    """
    return num_rings * spacing_hz


def dropped_lines(first: npt.ArrayLike, fsr_lines: float, num_lines: int, tolerance: float = 0.25) -> Any:
    """Which comb lines each ring drops.

    Args:
        first: line that each ring is tuned to, (rings,).
        fsr_lines: free spectral range [lines].
        num_lines: lines of the comb [count].
        tolerance: how far off a resonance a line may be to be dropped still [lines].
    Returns: bool (rings, lines).
    Raises: ParameterError: a range below one line, or a ring tuned to no line of the comb.

    >>> dropped_lines([0, 1], 9.025, 22).sum(axis=1).tolist()
    [3, 3]
    """
    tuned = np.atleast_1d(np.asarray(first, np.float64))
    if fsr_lines < 1 or num_lines < 1:
        raise ParameterError(f"ring: fsr={fsr_lines:g} lines, comb of {num_lines} lines; both are at least 1")
    outside = tuned[(tuned < 0) | (tuned >= num_lines)]
    if len(outside):
        raise ParameterError(f"ring: line {outside[0]:g} is outside the comb; try 0 to {num_lines - 1}")
    away = np.arange(num_lines) - tuned[:, None]
    off = np.abs(away - np.round(away / fsr_lines) * fsr_lines)
    dropped: npt.NDArray[np.bool_] = off <= tolerance
    return dropped


def undropped_lines(num_rings: int, fsr_lines: float, num_lines: int, tolerance: float = 0.25) -> list[int]:
    """Lines that no ring drops, of rings tuned to the first `num_rings` lines.

    Args:
        num_rings: rings of the bus [count].
        fsr_lines: free spectral range [lines].
        num_lines: lines of the comb [count].
        tolerance: distance at which a ring drops a line [lines].

    >>> undropped_lines(8, 9.025, 22), undropped_lines(9, 9.025, 22)
    ([8, 17], [])
    """
    dropped = dropped_lines(np.arange(num_rings), fsr_lines, num_lines, tolerance).any(axis=0)
    lines: list[int] = np.flatnonzero(~dropped).tolist()
    return lines
