"""Encoding of protocol buffers: messages, fields and varints, each with the byte at which it starts.

::

    message  = tag value, tag value, ...              tag = field number << 3 | wire type
    value    = 0 varint | 1 eight bytes | 2 length and that many bytes | 5 four bytes, by the wire type

Source: protobuf's description of its encoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from opticcl.reading import DamageError

__all__ = ["EIGHT_BYTES", "FOUR_BYTES", "LENGTH", "MAX_MESSAGE", "VARINT"]
__all__ += ["check_varints", "fields", "messages", "written"]

MAX_MESSAGE = 2**26  # bytes; a longer one is refused

VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5
_MASK = 2**64 - 1
_ENDLESS = re.compile(rb"[\x80-\xff]{10}|[\x80-\xff]\Z")


def messages(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The byte at which each message starts, and the message."""
    at = 0
    while prefix := file.read(1):
        while prefix[-1] > 127 and len(prefix) < 10 and (byte := file.read(1)):
            prefix += byte
        length, size = varint(prefix, 0, at)
        at += size
        if length > MAX_MESSAGE:
            raise DamageError(at, f"a message of {length:,} bytes is too long")
        message = file.read(length)
        if len(message) < length:
            raise DamageError(at, f"a message of {length:,} bytes, of which the file has {len(message):,}")
        yield at, message
        at += length


def fields(data: bytes, i: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Fields in data[i:end].

    Args:
        data: that contains them.
        i, end: first byte and the byte after the last.
    Returns: tag, varint or start of the content, and end of each.
    Raises: DamageError: a field runs beyond its message, has number 0 or an unknown wire type.
    """
    while i < end:
        start, tag = i, data[i]
        i += 1
        if tag > 127:
            tag, i = varint(data, start)
        wire = tag & 7
        if wire == LENGTH or wire == VARINT:  # noqa: SIM109
            value = data[i] if i < end else 128
            i += 1
            if value > 127:
                value, i = varint(data, i - 1)
            if wire == LENGTH:
                value, i = i, i + value
        elif wire == EIGHT_BYTES:
            value, i = i, i + 8
        elif wire == FOUR_BYTES:
            value, i = i, i + 4
        else:
            raise DamageError(start, f"there is no wire type {wire}")
        if i > end or tag < 8:
            raise DamageError(start, f"field {tag >> 3} runs beyond its message" if i > end else "a field of number 0")
        yield tag, value, i


def varint(data: bytes, i: int, at: int = 0) -> tuple[int, int]:
    """The 64-bit number that starts at data[i], and the byte after it.

    Args:
        data: that contains it.
        i: its first byte.
        at: place of data[0] in the file, for messages.
    Raises: DamageError: it does not end.
    """
    value = 0
    for k, byte in enumerate(data[i : i + 10]):
        value |= (byte & 127) << 7 * k
        if byte < 128:
            return value & _MASK, i + k + 1
    raise DamageError(at + i, "a varint that does not end")


def check_varints(data: bytes, i: int, end: int) -> None:
    """Check that bytes are a list of varints.

    Args:
        data: that contains them.
        i, end: first byte and the byte after the last.
    Raises: DamageError: one of them does not end.
    """
    if endless := _ENDLESS.search(data, i, end):
        raise DamageError(endless.start(), "a list with a varint that does not end")


def written(value: int) -> bytes:
    """The varint of a number.

    >>> written(300).hex()
    'ac02'
    """
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + written(value >> 7)
