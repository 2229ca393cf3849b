"""What `opticcl.compare` returns: a comparison that prints its answer, and gives its rows as a frame."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from opticcl.picture import Plotted
from opticcl.plans.comparison import Comparison
from opticcl.plans.sentences import caveats, headline
from opticcl.units import format_value, html_table, in_columns

if TYPE_CHECKING:
    import polars

__all__ = ["Compared"]

COLUMNS = (
    "rank", "fabric", "algorithm", "total_s", "node_rate_bits_per_s", "as_built_s", "light_margin_db", "verified", "no_rank",
)  # fmt: skip
"""Of the rows, that a print shows where they are known."""

MOST_PRINTED = 60
"""Rows that a print shows [count]."""


@dataclass(frozen=True, slots=True, repr=False)
class Compared(Comparison, Plotted):
    """A comparison with its answer in words."""

    @classmethod
    def of(cls, comparison: Comparison) -> Compared:
        """The comparison with these forms."""
        return cls(**{one.name: getattr(comparison, one.name) for one in fields(comparison)})

    @property
    def headline(self) -> str:
        """The answer in a sentence or two."""
        return headline(self)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a reader must know beside the times, what decides most first, and the fabrics that were left out."""
        return (*caveats(self), *map(str, self.left_out))

    def frame(self) -> polars.DataFrame:
        """The rows, one a plan in the order of the entries: fabric, algorithm, total_s [s], verified, ...

        Names end with the unit of their values.
        """
        import polars

        return polars.DataFrame(self.rows(), infer_schema_length=None)

    def __str__(self) -> str:
        names, cells, more = self._cells()
        return "\n".join([self.headline, in_columns([names, *cells]), *more, *self.caveats])

    def _repr_html_(self) -> str:
        names, cells, more = self._cells()
        return html_table(names, cells, [self.headline, *more, *self.caveats])

    def _cells(self) -> tuple[list[str], list[list[str]], list[str]]:
        """Names of the known columns, the texts of the first rows, and a line that counts the others."""
        rows = self.rows()
        shown = [name for name in COLUMNS if any(row.get(name) is not None for row in rows)]
        cells = [[format_value(name, row.get(name)) for name in shown] for row in rows[:MOST_PRINTED]]
        others = len(rows) - MOST_PRINTED
        return shown, cells, [f"... {others:,} more rows"] if others > 0 else []
