"""opticcl papers"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated

import typer

from opticcl.cli._options import JsonOption
from opticcl.cli._output import Progress, print_json, print_table
from opticcl.errors import ParameterError


def run(
    paper: Annotated[str | None, typer.Argument(help="One paper; all if left out.")] = None,
    verdict: Annotated[
        list[str],
        typer.Option(
            "--verdict",
            help="Only claims that are exact, 5 %, 20 %, inconsistent or not reproduced. Repeat for several.",
        ),
    ] = [],  # noqa: B006 (the framework copies it)
    json: JsonOption = False,
) -> None:
    """The papers' claims: published, ours, how far apart, verdict and reason. Exit code 1 if a verdict is not true."""
    from opticcl.papers import check_paper, paper_names
    from opticcl.report.claims import claims_list

    wanted = _verdicts(verdict)
    with Progress() as progress:
        names = paper_names() if paper is None else (paper,)
        rows = [row for name in names for row in check_paper(name, wanted, progress)]
    if json:
        print_json([{k: v for k, v in dataclasses.asdict(row).items() if k != "ok"} for row in rows])
    else:
        print_table(claims_list(rows))
    raise typer.Exit(0 if all(row.ok for row in rows) else 1)


def _verdicts(given: Sequence[str]) -> tuple[str, ...]:
    """Verdicts that the user names, also as "5%" or "not_reproduced"; all if none is named."""
    from opticcl.papers import ALL_VERDICTS
    from opticcl.registry import canonical

    def plain(name: str) -> str:
        return canonical(name).replace("_", "").replace(" ", "")

    known = {plain(name): name for name in ALL_VERDICTS}
    for name in given:
        if plain(name) not in known:
            raise ParameterError(f"--verdict: unknown verdict {name!r}; known: {', '.join(ALL_VERDICTS)}")
    return tuple(known[plain(name)] for name in given) or ALL_VERDICTS
