"""Answers of verbs: one object with every form that a call may request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticcl.ir import ProgressCallback

__all__ = ["ComposedResult", "Result", "Verbatim"]

Rows = Sequence[Mapping[str, Any]]


class Verbatim(str):
    """A text that is printed as it is, however narrow the terminal is."""

    __slots__ = ()


class Result(ABC):
    """The answer of a verb.

    A subclass has `record`, `table` with `lines`, or `blocks`, and what the files of its verb are made of: `table_rows` of
    tables, `figure` and `label` of pictures, `write_page` of pages. Headline, notes and caveats are its fields, so that every
    form has them.
    """

    __slots__ = ()

    @property
    def ok(self) -> bool:
        """Whether the answer is positive; the exit code is 1 if it is not."""
        return True

    @abstractmethod
    def record(self) -> Any:
        """Plain values, as `--json` prints them."""

    def table(self) -> Any:
        """The main table of a terminal."""
        raise NotImplementedError

    def lines(self) -> Sequence[str]:
        """Notes and caveats below the table."""
        return ()

    def blocks(self) -> Iterable[Any]:
        """Tables and texts, in the order in which a terminal shows them."""
        return [self.table(), *self.lines()]

    @property
    def headline(self) -> str:
        """The answer in a sentence or two, above the tables; "" where the first of the blocks says it."""
        return ""

    @property
    def notes(self) -> Sequence[str]:
        """What a reader must know beside the answer, what decides most first; a terminal shows some of them."""
        return ()

    def table_rows(self) -> Rows:
        """Rows of a table, plain values by column."""
        rows: Rows = self.record()["rows"]
        return rows

    @property
    def label(self) -> str:
        """What the picture shows, for readers who cannot see it."""
        raise NotImplementedError

    def figure(self) -> Figure:
        """The picture; it is drawn and saved inside `svg.drawing_style()`."""
        raise NotImplementedError

    def write_page(self, path: Path, progress: ProgressCallback) -> None:
        """Write the page, whole or not at all.

        Args:
            path: of the file.
            progress: called with a line of text before each part of the work.
        Raises: OutputError: the file cannot be written.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ComposedResult(Result):
    """An answer that its verb composes from the result of another package.

    Args:
        values: returns plain values.
        shown: returns tables and texts.
        ok: whether the answer is positive.
        rows: returns the rows of a table; None: those of the values.
        draw: returns the picture.
        label: of it.
        page: writes a page to a path; called with the progress too.
        headline, notes: as of `Result`.
    """

    values: Callable[[], Any]
    shown: Callable[[], Iterable[Any]]
    ok: bool = True
    rows: Callable[[], Rows] | None = None
    draw: Callable[[], Figure] | None = None
    label: str = ""
    page: Callable[[Path, ProgressCallback], None] | None = None
    headline: str = ""
    notes: Sequence[str] = ()

    def record(self) -> Any:
        """The values, with the notes where they have none of their own."""
        values = self.values()
        return {"notes": [*self.notes]} | values if self.notes and isinstance(values, dict) else values

    def blocks(self) -> Iterable[Any]:
        """The tables and texts."""
        return self.shown()

    def table_rows(self) -> Rows:
        """The rows."""
        return Result.table_rows(self) if self.rows is None else self.rows()

    def figure(self) -> Figure:
        """The picture."""
        return Result.figure(self) if self.draw is None else self.draw()

    def write_page(self, path: Path, progress: ProgressCallback) -> None:
        """Write the page.

        Args: path, progress: as of `Result.write_page`.
        """
        if self.page is not None:
            self.page(path, progress)
