"""opticcl papers"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Annotated

import typer

from opticcl.cli._options import JsonOption
from opticcl.cli._output import Progress, print_json, print_table


def run(
    paper: Annotated[str | None, typer.Argument(help="One paper; all if left out.")] = None,
    json: JsonOption = False,
) -> None:
    """The papers' claims: published, ours, how far apart, verdict and reason. Exit code 1 if a verdict is not true."""
    from opticcl.papers import check_paper, paper_names
    from opticcl.report.claims import claims_table

    rows = []
    with Progress() as progress:
        for name in paper_names() if paper is None else (paper,):
            for row in check_paper(name):
                rows.append(row)
                progress(f"check {name} {row.id}", len(rows))
    if json:
        print_json([{k: v for k, v in dataclasses.asdict(row).items() if k != "ok"} for row in rows])
    else:
        print_table(claims_table(rows))
        bad = [row.id for row in rows if not row.ok]
        verdicts = Counter(row.verdict for row in rows)
        print(f"{len(rows)} claims: " + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
        print(f"{len(bad)} whose verdict is not true" + (": " + ", ".join(bad) if bad else ""))
    raise typer.Exit(0 if all(row.ok for row in rows) else 1)
