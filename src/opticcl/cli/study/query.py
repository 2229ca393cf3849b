"""opticcl study query"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opticcl.cli._output import RECORD, TABLE
from opticcl.cli._request import argument, out_option
from opticcl.cli.study._space import SpaceRequest
from opticcl.report.kit.result import ComposedResult, Result


@dataclass(frozen=True, kw_only=True)
class QueryRequest(SpaceRequest):
    """What `opticcl study query` is asked: values of its options."""

    OPTIONS = "file sql folder * format json"

    sql: str = argument(metavar="SQL", help="A query on the table `results`: SELECT ... FROM results ...")
    out: tuple[Path, ...] = out_option(TABLE, RECORD)


def run(request: QueryRequest) -> Result:
    """Select rows of the results of a design space by a query in SQL."""
    from opticcl.report.design_space import query_table
    from opticcl.studies.space.design import read_design
    from opticcl.studies.space.runner import query

    table = query(request.folder_of(read_design(request.file)), request.sql)
    rows = table.to_dicts()
    return ComposedResult(lambda: rows, lambda: [query_table(rows, table.columns)], rows=lambda: rows)
