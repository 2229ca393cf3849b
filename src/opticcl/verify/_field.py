"""The field of 2^61 - 1 elements with NumPy: what the kernels of `symmetry.py` compute, for few transfers.

A product of two elements has 122 bits. It is made of four products of halves, of 32 bits and of 29, and since 2^61 is 1 in the
field, the bits above the 61st are added to those below.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray

__all__ = ["PRIME", "Field", "evaluate", "multiply", "prefix_sums"]

PRIME = (1 << 61) - 1

Field = npt.NDArray[np.uint64]

_PRIME, _BITS, _HALF = np.uint64(PRIME), np.uint64(61), np.uint64(32)
_REST = _BITS - _HALF
_LOW, _LOW_REST = np.uint64((1 << 32) - 1), np.uint64((1 << 29) - 1)


def multiply(a: Field, b: Field) -> Field:
    """Products of elements, which broadcast.

    >>> int(multiply(np.array([1 << 60], np.uint64), np.array([6], np.uint64))[0])  # 3 times 2^61
    3
    """
    a_high, a_low, b_high, b_low = a >> _HALF, a & _LOW, b >> _HALF, b & _LOW
    low = a_low * b_low
    total = _times_half(a_high * b_low + a_low * b_high) + (a_high * b_high << np.uint64(3))  # 2^64 is 2^3
    return _element(total + (low & _PRIME) + (low >> _BITS))


def prefix_sums(values: Field) -> Field:
    """Sums of the first elements, (n + 1,)."""
    sums = np.zeros(len(values) + 1, np.uint64)
    low, high = np.cumsum(values & _LOW, dtype=np.uint64), np.cumsum(values >> _HALF, dtype=np.uint64)
    sums[1:] = _element(_times_half(high) + low)  # below 2^64, of fewer than 2^31 values
    return sums


def evaluate(
    src: IntArray,
    dst: IntArray,
    op: npt.NDArray[np.uint8],
    parts: IntArray,
    lo: IntArray,
    n: IntArray,
    a: Field,
    b: Field,
    q: Field,
    prefix: Field,
) -> int:
    """The polynomial of rows at a point.

    Args:
        src, dst, op, parts, lo, n: columns of the rows; no parts where they count for nothing.
        a: of each operation and sender, (operations, ranks).
        b: of each receiver.
        q: of each number of parts.
        prefix: sums of the values of the first chunks.
    """
    value = multiply(a[op, src], b[dst])
    if len(parts):
        value = multiply(value, q[parts])
    value = multiply(value, _element(prefix[lo + n] + _PRIME - prefix[lo]))
    return (int((value & _LOW).sum()) + (int((value >> _HALF).sum()) << 32)) % PRIME


def _times_half(values: Field) -> Field:
    """Something equal to 2^32 times each value, below 2^61 + 2^35."""
    return ((values & _LOW_REST) << _HALF) + (values >> _REST)


def _element(values: Field) -> Field:
    """The element of the field that any value below 2^64 is."""
    folded = (values & _PRIME) + (values >> _BITS)
    return np.where(folded >= _PRIME, folded - _PRIME, folded)
