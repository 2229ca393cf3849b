"""Results that a notebook can draw.

They promise a picture without knowing what draws it: the package that does is below them, and is imported by its name when
a picture is wanted.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

__all__ = ["Drawn", "Plotted"]


class Drawn(Protocol):
    """A picture that a notebook shows where it is the value of a cell."""

    def _repr_svg_(self) -> str: ...

    def save(self, path: str | Path) -> None:
        """Write it as .svg or .png, whole or not at all.

        Raises: OutputError: another suffix, or not writable.
        """


class Plotted:
    """A result that `opticcl.plot` draws."""

    __slots__ = ()

    def plot(self, **options: Any) -> Drawn:
        """Draw it.

        Args: options: as of `opticcl.plot`.
        Raises: ParameterError: an option that its picture does not have.
        """
        picture: Drawn = import_module("opticcl.report.notebook").plot(self, **options)
        return picture
