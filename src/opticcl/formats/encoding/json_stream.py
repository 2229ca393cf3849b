"""A JSON file read in pieces: members and elements one after the other, each decoded whole, in bounded memory.

A trace is one object with a list of a million small events. The standard library decodes each event from a buffer that is
filled as needed, so a file of any length takes a few MB of memory.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, TypeVar

from opticcl.reading import DamageError

__all__ = ["MAX_VALUE", "JsonStream"]

CHUNK = 2**18  # bytes read at a time
MAX_VALUE = 2**25  # of a single value [characters]

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMA = re.compile(r"[ \t\r\n]*,[ \t\r\n]*(?=\S)")
_REACH = 2**14  # characters before the end of the buffer in which the last whole element is looked for
_SLACK = 16  # characters before the end of the buffer in which an escape, a word or a number may be cut

T = TypeVar("T")


class JsonStream:
    """Reads a JSON text from its start; every method continues where the last one ended."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._scan = json.JSONDecoder(strict=False).raw_decode
        self._text, self._ended = "", False
        self._before = self._place = self._batch = self._singly = 0

    @property
    def at(self) -> int:
        """Position of the next character, from 0."""
        return self._before + self._place

    def peek(self) -> str:
        """The next character after white space, which is skipped; "" at the end."""
        while True:
            match = _SPACE.match(self._text, self._place)
            assert match is not None  # it may be empty
            self._place = match.end()
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more():
                return ""

    def value(self) -> Any:
        """The next value, decoded whole.

        Raises: DamageError: no value, or one that is too long or nested too deeply.
        """
        if self._text[self._place : self._place + 1] in " \t\r\n":  # or at the end
            self.peek()
        while True:
            try:
                parsed, end = self._scan(self._text, self._place)
            except RecursionError:
                raise DamageError(self.at, "a value nested too deeply") from None
            except ValueError as error:
                place = getattr(error, "pos", self._place)
                if self._ended or (self._is_final(place) and "Unterminated" not in str(error)):
                    what = "no JSON: " + getattr(error, "msg", "a number with too many digits")
                    raise DamageError(self._before + place, what) from None
            else:
                if not isinstance(parsed, (int, float)) or self._is_final(end):  # 1 may be the start of 1.5e3
                    self._place = end
                    return parsed
            if not self._more():
                raise DamageError(self.at, f"a value of more than {MAX_VALUE:,} characters")

    def members(self) -> Iterator[str]:
        """Names in the next object; the caller takes the value of each before the next."""
        self._expect("{")
        if self.peek() == "}":
            return self._expect("}")
        while True:
            at, name = self.at, self.value()
            if not isinstance(name, str):
                raise DamageError(at, "a name in an object that is not text")
            self._expect(":")
            yield name
            if self.peek() == "}":
                return self._expect("}")
            self._expect(",")

    def elements(self) -> Iterator[int]:
        """Positions of the elements of the next list; the caller takes each element before the next."""
        self._expect("[")
        if self.peek() == "]":
            return self._expect("]")
        while True:
            yield self.at
            if between := _COMMA.match(self._text, self._place):  # the usual case
                self._place = between.end()
                continue
            if self.peek() == "]":
                return self._expect("]")
            self._expect(",")
            self.peek()

    def batch(self, decode: Callable[[str], Sequence[T]], end: re.Pattern[str]) -> Sequence[T]:
        """The elements at hand, decoded together, but for the last one.

        Args:
            decode: elements of a list between brackets; it returns none if it does not accept one of them.
            end: the last character of an element, with what follows, as of `resume`.
        Returns: elements, behind which the stream is at a further one; none if the next is to be taken by itself.
        """
        if self._place < self._singly:
            return ()
        commas = [
            comma
            for match in end.finditer(self._text, max(self._place, len(self._text) - _REACH))
            if (comma := _COMMA.match(self._text, match.end()))
        ]
        self._singly = commas[-1].end() if commas else len(self._text)
        values = decode(f"[{self._text[self._place : commas[-1].start()]}]") if commas else ()
        if values:
            self._batch, self._place = self._place, self._singly
        return values

    def position(self, index: int) -> int:
        """Position of an element of the last batch."""
        place = self._batch
        for _ in range(index):
            between = _COMMA.match(self._text, self._scan(self._text, place)[1])
            assert between is not None  # a further element follows
            place = between.end()
        return self._before + place

    def skip(self) -> None:
        """Skip the next value; of a list or an object, member by member."""
        first = self.peek()
        if first in ("[", "{"):
            for _ in self.elements() if first == "[" else self.members():
                self.value()
        else:
            self.value()

    def resume(self, end: re.Pattern[str]) -> bool:
        """Skip the next value although it is damaged, up to its end by a pattern.

        Args: end: the last character of the value, with what follows; what follows is not skipped.
        Returns: whether there is such an end; if not, nothing is skipped.
        """
        while True:
            match = end.search(self._text, self._place)
            if match is not None and self._is_final(match.end()):
                self._place = match.end()
                return True
            if not self._more():
                return False

    def finish(self) -> None:
        """Check that the text has ended.

        Raises: DamageError: it continues.
        """
        if self.peek():
            raise DamageError(self.at, "more text after the end of the trace")

    def _expect(self, character: str) -> None:
        here = self.peek()
        if here != character:
            shown = f"found {here!r}" if here else "the file ends"
            raise DamageError(self.at, f"expected {character!r}, {shown}")
        self._place += 1

    def _is_final(self, place: int) -> bool:
        """Whether the text goes on so far behind a place that what is not read yet cannot change what stands before it."""
        return self._ended or place + _SLACK < len(self._text)

    def _more(self) -> bool:
        """Read on, as much again as is kept; whether the file had not ended and what is kept is not too long."""
        kept = self._text[self._place :]
        if self._ended or len(kept) > MAX_VALUE:
            return False
        content = self._file.read(max(CHUNK, len(kept)))
        self._ended = not content
        self._before += self._place
        self._text = kept + self._decode(content, not content)
        self._place = self._singly = 0
        return True
