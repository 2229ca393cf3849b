"""Claims of the papers as a list: numbers in columns, and below each the claim, the printed text and the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.text import Text

from opticcl.papers import ALL_VERDICTS, BASES, fits
from opticcl.report.kit.result import Result
from opticcl.units import counted

if TYPE_CHECKING:
    from opticcl.papers import Row

__all__ = ["ClaimsList", "claims_summary"]

_MOST = 22  # letters of a value; a longer list or text is cut
_MOST_NARROW = 14  # letters of a value on a narrow console
_INDENT = 4
_HEAD = ("id", "verdict", "basis", "published", "ours", "difference", "where")
_RIGHT = ("published", "ours", "difference")
_WORDS = {"5 %": "within 5 %", "20 %": "within 20 %"}


class ClaimsList(Result):
    """Two or three lines a claim, paper by paper, with the counts of all verdicts before and after them.

    The first line has the id, the verdict, the basis, the published value, ours, the difference, and the place in the paper; on
    a narrow console the place begins the next line instead. A verdict on file that is not the true one is marked.

    Args:
        rows: claims in the order in which they are shown.
        behind: whether rows that follow from a fit are left to the row that shows it, which says how many there are.
    """

    def __init__(self, rows: Sequence[Row], *, behind: bool = False) -> None:
        self._rows = rows
        self._behind = behind

    @property
    def ok(self) -> bool:
        """Whether every value is within its verdict."""
        return all(row.ok for row in self._rows)

    def record(self) -> list[dict[str, Any]]:
        """Plain values, as `opticcl study papers --json` prints them."""
        return [row.record() for row in self._rows]

    def table(self) -> ClaimsList:
        """The list itself."""
        return self

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        summary = Text(claims_summary(self._rows), style="bold")
        yield Text(claims_answer(self._rows), style="bold")
        for name, rows in groupby(self._rows, lambda row: row.paper):
            yield from _paper(name, list(rows), options.max_width, self._behind)
        if self._rows:
            yield Text()
            yield summary


def claims_answer(rows: Sequence[Row]) -> str:
    """How many claims are reproduced, in a sentence.

    Args: rows: the claims.
    """
    counts = Counter(row.verdict for row in rows)
    parts = (
        (counts["exact"], "to the printed digits"),
        (counts["5 %"] + counts["20 %"], "within 20 %"),
        (counts["fitted"], "with fitted values"),
    )
    others = (
        (counts["not reproduced"] + counts["inconsistent"], "not"),
        (counts["not printed"], "without a printed value"),
    )
    done = ", ".join(f"{number:,} {how}" for number, how in parts if number) or "none"
    rest = "".join(f"; {number:,} {how}" for number, how in others if number)
    return f"{counted(len(rows), 'claim')}, reproduced: {done}{rest}."


def claims_summary(rows: Sequence[Row]) -> str:
    """Number of claims with each verdict, and the verdicts that are not true.

    What is exact is counted apart: by machinery, with its bases, and by arithmetic on printed inputs. What is fitted is counted
    with the number of fits.
    """
    counts = Counter((row.verdict, row.basis) for row in rows)
    fitted = {row.fit for row in rows if row.verdict == "fitted"}
    shown = [_counted(verdict, counts, len(fitted)) for verdict in ALL_VERDICTS]
    bad = [row.id for row in rows if not row.ok]
    checked = (
        f"; verdicts on file that are not true: {len(bad)}: {', '.join(bad)}" if bad else "; every verdict is true"
    )
    return counted(len(rows), "claim") + (": " + ", ".join(filter(None, shown)) + checked if rows else "")


def _counted(verdict: str, counts: Counter[tuple[str, str]], num_fits: int) -> str:
    """Count of a verdict, "" if there is none.

    Args:
        verdict: of `ALL_VERDICTS`.
        counts: of all, by verdict and basis.
        num_fits: that the fitted claims follow from [count].
    """
    bases = {basis: counts[verdict, basis] for basis in BASES if counts[verdict, basis]}
    if verdict == "fitted" and bases:
        return f"{sum(bases.values()):,} {'follows' if sum(bases.values()) == 1 else 'follow'} from {counted(num_fits, 'fit')}"
    by_arithmetic = bases.pop("arithmetic", 0) if verdict == "exact" else 0
    word = "exact by machinery" if verdict == "exact" else _WORDS.get(verdict, verdict)
    each = ", ".join(f"{number:,} {basis}" for basis, number in bases.items())
    parts = [f"{sum(bases.values()):,} {word} ({each})"] if bases else []
    return ", ".join(parts + [f"{by_arithmetic:,} exact by arithmetic on printed inputs"] * bool(by_arithmetic))


def _paper(name: str, rows: Sequence[Row], width: int, behind: bool) -> Iterator[Text | Padding]:
    """Lines of one paper.

    Args:
        name: of the paper.
        rows: its claims.
        width: of the console [columns].
        behind: of `ClaimsList`.
    """
    following = Counter(row.fit for row in rows if row.fit)
    evidence = {fit.evidence: (name, fit) for name, fit in fits(name).items()}
    if behind:
        rows = [row for row in rows if row.verdict != "fitted" or row.id in evidence or not row.ok]
    cells = [_cells(row, _MOST) for row in rows]
    narrow = sum(_widths(cells)) + 2 * (len(_HEAD) - 1) > width
    if narrow:
        cells = [_cells(row, _MOST_NARROW)[:-1] for row in rows]
    widths = _widths(cells)
    yield Text(f"\n{name}", style="bold")
    yield _line(_HEAD[: len(widths)], widths, "underline")
    for row, columns in zip(rows, cells, strict=True):
        about = Text(f"{row.where}: {row.claim}" if narrow else row.claim)
        if row.evaluated is not None:
            about.append(f" · printed: {_whole(row.published)}")
        if row.reason:
            about.append(f" · {row.reason}", style="dim")
        if behind and row.id in evidence:
            fit, made = evidence[row.id]
            about.append(
                f" · fit {fit}: {made.about}; rows that follow: {following[fit] - 1} (--fit {fit})", style="dim"
            )
        yield _line(columns, widths, "" if row.ok else "bold red")
        yield Padding(about, (0, 0, 0, _INDENT))


def _widths(cells: Sequence[tuple[str, ...]]) -> list[int]:
    head = _HEAD[: len(cells[0])]
    return [max(map(len, column)) for column in zip(head, *cells, strict=True)]


def _cells(row: Row, most: int) -> tuple[str, ...]:
    """Texts of a claim, in the order of the heading.

    Args:
        row: the claim.
        most: letters of a value [count].
    """
    verdict = row.verdict if row.ok else f"{row.verdict}: NOT TRUE"
    difference = "" if row.relative_error is None else f"{row.relative_error:.2%}"
    reference = row.published if row.evaluated is None else row.evaluated
    return row.id, verdict, row.basis, _text(reference, most), _text(row.ours, most), difference, row.where


def _line(cells: Sequence[str], widths: Sequence[int], style: str) -> Text:
    """Aligned cells, numbers to the right.

    Args:
        cells: texts, in the order of the heading.
        widths: of the columns.
        style: of the line.
    """
    aligned = [
        cell.rjust(width) if name in _RIGHT else cell.ljust(width)
        for name, cell, width in zip(_HEAD[: len(cells)], cells, widths, strict=True)
    ]
    return Text("  ".join(aligned).rstrip(), style=style)


def _text(value: Any, most: int) -> str:
    """A value in a few letters; the JSON has the whole value."""
    whole = _whole(value)
    return whole if len(whole) <= most else whole[: most - 1] + "…"


def _whole(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, (list, tuple)):
        return " ".join(map(_whole, value))
    return str(value)
