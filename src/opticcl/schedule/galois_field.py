"""Arithmetic modulo a number, or in a finite field of order x, by tables that arrays of any shape index."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from opticcl.ir import IntArray

__all__ = ["Arithmetic", "galois_field", "integers_modulo", "is_field_order"]

# Irreducible polynomials over GF(2) of degree k, as bits. Source: any table; checked by the tests.
_IRREDUCIBLE = {1: 0b11, 2: 0b111, 3: 0b1011, 4: 0b10011, 5: 0b100101, 6: 0b1000011, 7: 0b10000011, 8: 0b100011011}


@dataclass(frozen=True, slots=True, eq=False)
class Arithmetic:
    """Addition, subtraction and multiplication on 0..order-1 by table.

    Args: order: number of elements; plus, minus, times: int32 (order, order).
    """

    order: int
    plus: IntArray
    minus: IntArray
    times: IntArray

    def add(self, a: IntArray, b: IntArray) -> IntArray:
        """a + b, element by element; the arrays broadcast."""
        return _look_up(self.plus, a, b)

    def sub(self, a: IntArray, b: IntArray) -> IntArray:
        """a - b, element by element; the arrays broadcast."""
        return _look_up(self.minus, a, b)

    def mul(self, a: IntArray, b: IntArray) -> IntArray:
        """a b, element by element; the arrays broadcast."""
        return _look_up(self.times, a, b)


def _look_up(table: IntArray, a: IntArray, b: IntArray) -> IntArray:
    """table[a, b] in the quickest way: of a column and a row, whole lines of the table."""
    if np.ndim(a) == np.ndim(b) == 2 and a.shape[1] == b.shape[0] == 1:
        return table[:, b[0]][a[:, 0]]
    if np.ndim(a) == np.ndim(b) == 2 and a.shape[0] == b.shape[1] == 1:
        return table.T[:, a[0]][b[:, 0]]
    return np.take(table, np.multiply(a, len(table)) + b)


def is_field_order(x: int) -> bool:
    """Whether a field with x elements is available: x prime, or a power of two up to 256.

    >>> [x for x in range(2, 20) if is_field_order(x)]
    [2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 19]
    """
    if x < 2:
        return False
    return (x.bit_count() == 1 and x.bit_length() - 1 in _IRREDUCIBLE) or all(x % p for p in range(2, int(x**0.5) + 1))


@cache
def integers_modulo(x: int) -> Arithmetic:
    """The ring of integers modulo x, a field if x is prime."""
    a, b = np.arange(x)[:, None], np.arange(x)[None, :]
    return Arithmetic(x, *(np.asarray(t % x, np.int32) for t in (a + b, a - b, a * b)))


@cache
def galois_field(x: int) -> Arithmetic:
    """The field with x elements, x prime or a power of two.

    For x = 2**k an element is a polynomial over GF(2), its bits the coefficients: plus and minus are XOR.
    """
    if x.bit_count() != 1 or x == 2:
        return integers_modulo(x)
    degree = x.bit_length() - 1
    a, b = np.arange(x)[:, None], np.arange(x)[None, :]
    product = np.zeros((x, x), np.int64)
    for bit in range(degree):
        product ^= np.where(b >> bit & 1, a << bit, 0)
    for bit in range(2 * degree - 2, degree - 1, -1):
        product ^= np.where(product >> bit & 1, _IRREDUCIBLE[degree] << (bit - degree), 0)
    xor = np.asarray(a ^ b, np.int32)
    return Arithmetic(x, xor, xor, product.astype(np.int32))
