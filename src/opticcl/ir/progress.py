"""How long computations report their progress."""

from __future__ import annotations

from typing import Protocol

__all__ = ["ProgressCallback", "no_progress"]


class ProgressCallback(Protocol):
    """Function that a long computation calls now and then; an exception that it raises stops the computation."""

    def __call__(self, label: str, done: int = 0, total: int = 0, /) -> None:
        """Report that `done` of `total` units are done.

        Args:
            label: what is being done.
            done: units that are done [count].
            total: units in all; 0 where they are not counted [count].
        """


def no_progress(label: str, done: int = 0, total: int = 0, /) -> None:
    """Callback that ignores every report.

    Args:
        label: ignored.
        done: ignored.
        total: ignored.
    """
