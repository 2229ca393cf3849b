"""Vectorised sums and conversions of float16, bit by bit equal to those of NumPy, which computes them one at a time.

A half is converted to single precision, added there and rounded to the nearest half, ties to even. That is the sum of two
halves rounded once: single precision has more than twice the digits of a half, so that its own rounding changes nothing.

Source: Figueroa 1995, "When is double rounding innocuous?"; the layouts of IEEE 754 binary16 and binary32.
"""

from __future__ import annotations

import numpy as np

from opticcl.ir import IntArray
from opticcl.kernels import njit

__all__ = ["add_halves", "to_halves", "to_singles"]

SIGN, MAGNITUDE = np.uint32(0x8000), np.uint32(0x7FFF)
INFINITE, NOT_A_NUMBER = np.uint32(0x7C00), np.uint32(0x7E00)  # as halves
INFINITE_32 = np.uint32(0x7F800000)
LARGEST_32 = np.uint32((127 + 16) << 23)  # 65536 as a single: no half is as large
LEAST_NORMAL_32 = np.uint32((127 - 14) << 23)  # 2**-14 as a single: smaller halves have fewer digits
REBIAS = np.float32(2.0**112)  # between the exponents of the two layouts, 127 - 15
ALIGN_32 = np.uint32((127 - 1) << 23)  # 0.5: added to a small single, it leaves the digits of the half at the end
ALIGN = np.float32(0.5)
LOWER_BIAS = np.uint32(0xFFFFFFFF - ((127 - 15) << 23) + 1 + 0xFFF)  # takes 112 from the exponent and rounds half down


def add_halves(places: np.ndarray, to: IntArray, sent: np.ndarray) -> None:
    """places[to] += sent, for float16 (places, elements) and (rows, elements); each place at most once in `to`.

    Args:
        places: sums, changed in place.
        to: place of each row, int64 (rows,).
        sent: summands.
    """
    _add(places.view(np.uint16), to, np.ascontiguousarray(sent).view(np.uint16))


def to_singles(halves: np.ndarray) -> np.ndarray:
    """As float32, like `halves.astype(np.float32)`; one-dimensional and contiguous."""
    found = np.empty(len(halves), np.float32)
    _to_singles(halves.view(np.uint16), found)
    return found


def to_halves(singles: np.ndarray, halves: np.ndarray) -> None:
    """halves[:] = singles; float32 or small integers to float16, one-dimensional and contiguous."""
    _to_halves(singles, halves.view(np.uint16))


@njit(inline="always")
def _widen(half):  # type: ignore[no-untyped-def]
    h = np.uint32(half)
    single = np.uint32((h & MAGNITUDE) << np.uint32(13)).view(np.float32) * REBIAS
    bits = np.float32(single).view(np.uint32)
    bits = bits | INFINITE_32 if (h & MAGNITUDE) >= INFINITE else bits
    return np.uint32(bits | ((h & SIGN) << np.uint32(16))).view(np.float32)


@njit(inline="always")
def _narrow(single):  # type: ignore[no-untyped-def]
    bits = np.float32(single).view(np.uint32)
    sign = (bits >> np.uint32(16)) & SIGN
    size = np.uint32(bits & np.uint32(0x7FFFFFFF))
    odd = (size >> np.uint32(13)) & np.uint32(1)
    normal = np.uint32(size + LOWER_BIAS + odd) >> np.uint32(13)
    small = np.float32(size.view(np.float32) + ALIGN).view(np.uint32) - ALIGN_32
    special = NOT_A_NUMBER if size > INFINITE_32 else INFINITE
    found = special if size >= LARGEST_32 else (small if size < LEAST_NORMAL_32 else normal)
    return np.uint16(found | sign)


@njit
def _add(places, to, sent):  # type: ignore[no-untyped-def]
    for row in range(len(to)):
        mine, other = places[to[row]], sent[row]
        for i in range(len(other)):
            mine[i] = _narrow(_widen(mine[i]) + _widen(other[i]))


@njit
def _to_singles(halves, singles):  # type: ignore[no-untyped-def]
    for i in range(len(halves)):
        singles[i] = _widen(halves[i])


@njit
def _to_halves(singles, halves):  # type: ignore[no-untyped-def]
    for i in range(len(halves)):
        halves[i] = _narrow(np.float32(singles[i]))
