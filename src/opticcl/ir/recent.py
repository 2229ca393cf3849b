"""Values of functions that were computed last, bounded in bytes: the least recently used is dropped first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

__all__ = ["RECENT", "Last", "Recent"]

K = TypeVar("K")
T = TypeVar("T")

OVERHEAD_BYTES = 2048
"""Of an entry, beside its arrays."""


class Recent:
    """Values of numbered functions of an integer.

    Args: max_bytes: of all arrays of them together [bytes].
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._num_bytes, self._functions = max_bytes, 0, 0
        self._numbers: dict[Hashable, int] = {}
        self._objects: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._entries: OrderedDict[tuple[int, int], tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def clear(self) -> None:
        """Forget all values; functions compute them again."""
        with self._lock:
            self._entries.clear()
            self._num_bytes = 0

    def clear_unshared(self) -> None:
        """Forget the values of functions that have no equal."""
        with self._lock:
            shared = {*self._numbers.values(), *self._objects.values()}
            for entry in [entry for entry in self._entries if entry[0] not in shared]:
                self._num_bytes -= self._entries.pop(entry)[1]

    def number(self, key: Hashable = None) -> int:
        """A number of a function.

        Args: key: that functions with equal values have in common; None: the number is a new one.
        """
        with self._lock:
            known = None if key is None else self._numbers.get(key)
            if known is not None:
                return known
            self._functions += 1
            if key is not None:
                self._numbers[key] = self._functions
            return self._functions

    def number_of(self, function: Any) -> int:
        """The number of a function that compares by value; equal ones have the same as long as one of them lives."""
        with self._lock:
            known = self._objects.get(function)
            if known is None:
                self._functions += 1
                known = self._objects[function] = self._functions
            return known

    def value(self, number: int, i: int, generate: Callable[[int], T]) -> T:
        """Value of a function at i, from the cache if it is there.

        Args:
            number: of the function.
            i: its argument.
            generate: the function.
        """
        known: T | None = self.known(number, i)
        if known is None:
            known = generate(i)
            self.keep(number, i, known)
        return known

    def known(self, number: int, i: int) -> Any:
        """Value of a function at i that is kept; None where none is.

        Args: number, i: as of `value`.
        """
        with self._lock:
            entry = self._entries.get((number, i))
            if entry is None:
                return None
            self._entries.move_to_end((number, i))
            return entry[0]

    def keep(self, number: int, i: int, value: Any) -> None:
        """Keep a value of a function.

        Args:
            number, i: as of `value`.
            value: of the function at i.
        """
        size, key = num_bytes(value) + OVERHEAD_BYTES, (number, i)
        if size > self._max_bytes:
            return
        with self._lock:
            _, before = self._entries.pop(key, (None, 0))  # another thread was faster
            self._entries[key] = value, size
            self._num_bytes += size - before
            while self._num_bytes > self._max_bytes:
                _, (_, freed) = self._entries.popitem(last=False)
                self._num_bytes -= freed


def num_bytes(value: Any) -> int:
    """What a value, or each of a tuple of them, says of the size of its columns; 0 for one without [bytes]."""
    return sum(map(num_bytes, value)) if isinstance(value, tuple) else int(getattr(value, "num_bytes", 0))


class Last(Generic[K, T]):
    """A function of which the last value is kept, for arguments that make no difference.

    Args:
        function: of one argument.
        same: whether two arguments have the same value.
    """

    def __init__(self, function: Callable[[K], T], same: Callable[[K, K], bool]) -> None:
        self._function, self._same = function, same
        self._known: tuple[K, T] | None = None

    def __call__(self, argument: K) -> T:
        """The value."""
        if self._known is None or not self._same(self._known[0], argument):
            self._known = argument, self._function(argument)
        return self._known[1]


RECENT = Recent(1 << 26)
"""Steps and circuits that were generated last in this process: a plan that is verified and simulated generates them once."""
