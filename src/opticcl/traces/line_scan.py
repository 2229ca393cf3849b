"""Lines of whole numbers in long files, as columns; a compiled scan reads the usual lines, the caller all others as text.

::

    L2L;bytes;layer;direction;source;destination|ms      numbers between separators, perhaps a duration
    AR;bytes;0,1,2,3|ms                                  a number, then a text
    0,32,33,125000                                       numbers alone

The scan accepts what every line reader would accept in the same way and leaves everything else to the caller: signs, spaces,
fractions, comments, numbers beyond 18 digits. So a file has the same meaning and the same errors with and without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.reading import MAX_LINE, DamageError, whole_lines

__all__ = ["NUMBERS", "OTHER", "TEXT", "Lines", "line_blocks"]

BLOCK = 2**20  # read at a time [bytes]
SMALL = 2**15  # blocks below are not worth loading the compiler for [bytes]
OTHER, NUMBERS, TEXT = 0, 1, 2  # what the scan found in a line


class Lines(NamedTuple):
    """Lines of a part of a file.

    Args:
        first: number of the first line, from 1.
        data: the lines.
        start, end: of each line, its end mark excluded [bytes from the start of `data`].
        text_start, text_end: of the text of a TEXT line [bytes from the start of `data`].
        found: NUMBERS, TEXT or OTHER.
        numbers: those of each line.
        took_ms: number after |; 0 if there is none [ms].
    """

    first: int
    data: bytes
    start: IntArray
    end: IntArray
    text_start: IntArray
    text_end: IntArray
    found: IntArray
    numbers: IntArray
    took_ms: npt.NDArray[np.float64]

    def line(self, line: int) -> str:
        """A line without a byte order mark and surrounding space."""
        return self.data[self.start[line] : self.end[line]].decode("utf-8", "replace").lstrip("\ufeff").strip()

    def text(self, line: int) -> str:
        """The text of a TEXT line."""
        return self.data[self.text_start[line] : self.text_end[line]].decode("utf-8", "replace")


def line_blocks(file: BinaryIO, tagged: bool, separator: str, count: int) -> Iterator[Lines]:
    """The lines of a file, many at a time.

    Args:
        file: open, at its start.
        tagged: whether numbers follow `L2L;`, and a number and a text follow `AR;`.
        separator: of the numbers.
        count: numbers of a line.
    Raises: DamageError: a line longer than any log has.
    """
    for first, data in whole_lines(file, size=BLOCK):
        lines = _scanned(first, data, (tagged, separator, count))
        if (long := np.flatnonzero(lines.end - lines.start > MAX_LINE)).size:
            raise DamageError(first + int(long[0]), f"a line of more than {MAX_LINE:,} bytes")
        yield lines


def _scanned(first: int, data: bytes, form: tuple[bool, str, int]) -> Lines:
    """Lines of whole lines."""
    tagged, separator, count = form
    buffer = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(buffer == ord("\n"))
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    start = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)
    lines = len(start)
    end, matched = ends.astype(np.int64), np.zeros(lines, np.int8)
    numbers, took_ms = np.zeros((lines, count), np.int64), np.zeros(lines)
    text_start, text_end = np.zeros(lines, np.int64), np.zeros(lines, np.int64)
    if len(data) > SMALL:
        from opticcl.traces._line_kernel import scan

        scan(buffer, tagged, ord(separator), start, end, text_start, text_end, matched, numbers, took_ms)
    return Lines(first, data, start, end, text_start, text_end, matched, numbers, took_ms)
