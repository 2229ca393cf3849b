"""opticcl papers"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import click

from opticcl.cli._options import JsonOption
from opticcl.cli._output import RECORD, Outputs, ProgressLine, out_option, print_json, print_table
from opticcl.cli._parameters import argument, option
from opticcl.errors import ParameterError


def run(
    paper: Annotated[str | None, argument(help="One paper; default: all of them.")] = None,
    verdict: Annotated[
        list[str],
        option(
            "--verdict",
            help="Only claims that are exact, 5 %, 20 %, inconsistent, not reproduced or not printed. Repeat for several.",
        ),
    ] = [],  # noqa: B006 (the framework copies it)
    claim: Annotated[
        list[str],
        option("--claim", help="Only claims with this id, or ids of this shell pattern: 'W2*'. Repeat for several."),
    ] = [],  # noqa: B006
    out: Annotated[list[Path], out_option(RECORD)] = [],  # noqa: B006
    jobs: Annotated[
        int | None,
        option("--jobs", help="Processes; default: 1, whose rows share plans. The result is the same with any number."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Claims of the papers: published, ours, difference, verdict, basis. Exit code 1 if a value is outside its verdict."""
    from opticcl.papers import check_paper, claim_ids, paper_names
    from opticcl.processes import number_of_jobs
    from opticcl.report.claims import ClaimsList

    outputs, wanted = Outputs(out, RECORD), _verdicts(verdict)
    processes = number_of_jobs(jobs, large=False)
    with ProgressLine() as progress:
        names = paper_names() if paper is None else (paper,)
        ids = {name: claim_ids(name, claim or ("*",)) for name in names}
        _some_match(claim, [id for name in names for id in ids[name]], [id for name in names for id in claim_ids(name)])
        rows = [row for name in names for row in check_paper(name, wanted, progress, ids[name], processes)]
    record = [row.record() for row in rows]
    outputs.write_record(lambda: record)
    if json:
        print_json(record)
    else:
        print_table(ClaimsList(rows))
        outputs.print_lines()
    raise click.exceptions.Exit(0 if all(row.ok for row in rows) else 1)


def _some_match(patterns: Sequence[str], found: Sequence[str], known: Sequence[str]) -> None:
    """Every pattern is of a claim.

    Args:
        patterns: that the user gives.
        found: ids that match one of them.
        known: all ids of the papers that are listed.
    Raises: ParameterError: a pattern that no id matches.
    """
    from fnmatch import fnmatchcase

    from opticcl.registry import nearest

    for pattern in patterns:
        if not any(fnmatchcase(id, pattern) for id in found):
            hint = nearest(pattern, known)
            hint = hint if hint.startswith("did you mean") else "`opticcl papers` lists them"
            raise ParameterError(f"--claim: no claim {pattern!r}; {hint}")


def _verdicts(given: Sequence[str]) -> tuple[str, ...]:
    """Verdicts that the user names, also written "5%" or "not_reproduced"; all verdicts if none is named."""
    from opticcl.papers import ALL_VERDICTS
    from opticcl.registry import canonical

    def plain(name: str) -> str:
        return canonical(name).replace("_", "").replace(" ", "")

    known = {plain(name): name for name in ALL_VERDICTS}
    for name in given:
        if plain(name) not in known:
            raise ParameterError(f"--verdict: unknown verdict {name!r}; known: {', '.join(ALL_VERDICTS)}")
    return tuple(known[plain(name)] for name in given) or ALL_VERDICTS
