"""An answer from the results of a design space, by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opticcl.studies.space import answers
from opticcl.studies.space.lines import by_algorithm, lines

if TYPE_CHECKING:
    from opticcl.studies import Study
    from opticcl.studies.space.design import DesignSpace

    Answer = answers.FastestMap | answers.Pareto | answers.Tornado | answers.Breakeven | Study

__all__ = ["answer_of"]


def answer_of(space: DesignSpace, rows: Sequence[Mapping[str, Any]], name: str, options: Mapping[str, Any]) -> Answer:
    """An answer by its name.

    Args:
        space: the study.
        rows: that are done.
        name: of the answer: a key of `opticcl.studies.space.design.ANSWERS`.
        options: of it, by the names that are listed there.
    Raises: ParameterError: an option that does not fit the study, or no row that answers it.
    """
    where = options.get("where", {})
    if name == "breakeven" or (name == "lines" and len(space.axes["fabric"]) > 1):
        space, rows = by_algorithm(space, rows, where)
    if name == "lines":
        return lines(space, rows, **{"where": where, **options})
    if name == "map":
        return answers.fastest_map(space, rows, where, options.get("x", "size"), options.get("y", "nodes"))
    if name == "pareto":
        return answers.pareto(space, rows, where)
    if name == "tornado":
        return answers.tornado(space, rows, where)
    return answers.breakeven(space, rows, where, options.get("over", "size"), options.get("between", ()))
