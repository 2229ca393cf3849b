"""A reader of FlatBuffers without their schema compiler: tables, vectors and numbers, every access inside the file.

::

    file   = u32 place of the root table
    table  = i32 distance back to its vtable, then its fields
    vtable = u16 its own length, u16 length of the table, u16 place of each field in the table, 0 where it is absent
    vector = u32 length, then its elements; tables, vectors and texts stand as a u32 distance ahead

Source: FlatBuffers' description of its binary format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from opticcl.reading import DamageError

__all__ = ["FlatTable", "root"]


class FlatTable:
    """One table; fields are read by their number in the schema; absent ones have their default."""

    __slots__ = ("_data", "_fields", "at")

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self.at = data, at
        vtable = at - _number(data, "<i", at)
        size = _number(data, "<H", vtable)
        if size < 4 or size % 2:
            raise DamageError(at, "a table without a vtable")
        _inside(data, vtable, size)
        self._fields = struct.unpack_from(f"<{size // 2 - 2}H", data, vtable + 4)

    def _place(self, field: int) -> int | None:
        """Byte at which a field starts; None if it is absent."""
        offset = self._fields[field] if field < len(self._fields) else 0
        return self.at + offset if offset else None

    def number(self, field: int, form: str = "<Q") -> Any:
        """A number of the given struct form, 0 where it is absent."""
        place = self._place(field)
        return 0 if place is None else _number(self._data, form, place)

    def integers(self, field: int, limit: int) -> tuple[int, ...]:
        """A vector of u64.

        Raises: DamageError: it has more than `limit`; many tables may point to one long vector.
        """
        places = self._elements(field, 8)
        if len(places) > limit:
            raise DamageError(places.start, f"a vector of {len(places):,} numbers, more than a file may have in all")
        return struct.unpack_from(f"<{len(places)}Q", self._data, places.start)

    def tables(self, field: int) -> Iterator[FlatTable]:
        """A vector of tables."""
        for place in self._elements(field, 4):
            yield FlatTable(self._data, place + _number(self._data, "<I", place))

    def _elements(self, field: int, width: int) -> range:
        """Bytes at which the elements of a vector start."""
        place = self._place(field)
        if place is None:
            return range(0)
        vector = place + _number(self._data, "<I", place)
        start, size = vector + 4, width * _number(self._data, "<I", vector)
        _inside(self._data, start, size)
        return range(start, start + size, width)


def root(data: bytes) -> FlatTable:
    """The root table of a file.

    Raises: DamageError: the file has none.
    """
    return FlatTable(data, _number(data, "<I", 0))


def _number(data: bytes, form: str, at: int) -> Any:
    _inside(data, at, struct.calcsize(form))
    return struct.unpack_from(form, data, at)[0]


def _inside(data: bytes, at: int, size: int) -> None:
    if at < 0 or at + size > len(data):
        raise DamageError(max(0, at), f"a value beyond the file, which ends at byte {len(data):,}")
