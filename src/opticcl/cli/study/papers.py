"""opticcl study papers"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opticcl.cli._output import RECORD
from opticcl.cli._request import VerbRequest, argument, option, out_option
from opticcl.errors import ParameterError
from opticcl.report.kit.result import Result


@dataclass(frozen=True, kw_only=True)
class PapersRequest(VerbRequest):
    """What `opticcl study papers` is asked: values of its options."""

    paper: str | None = argument(
        default=None,
        help="A paper: lumion, lumorph, morphlux, oddl, optree, ramp, sipac or wrht; default: all of them.",
    )
    verdict: tuple[str, ...] = option(
        "--verdict",
        metavar="<verdict>",
        default=(),
        help="Only claims that are exact, 5 %, 20 %, fitted, inconsistent, not reproduced or not printed. Repeat for several.",
    )
    claim: tuple[str, ...] = option(
        "--claim", default=(), help="Only claims with this id, or ids of this shell pattern: 'W2*'. Repeat for several."
    )
    fit: tuple[str, ...] = option(
        "--fit",
        default=(),
        help="Only claims that follow from this fit, such as hpc_switches. Repeat for several; without --claim, --verdict and "
        "--fit one row stands for each fit.",
    )
    out: tuple[Path, ...] = out_option(RECORD)
    jobs: int | None = option(
        "--jobs",
        default=None,
        help="Processes; default: 1, whose rows share plans. The result is the same with any number.",
    )


def run(request: PapersRequest) -> Result:
    """Check the claims of the papers: printed, ours, difference, verdict. Exit code 1 if a value is outside its verdict."""
    from opticcl.papers import check_paper, claim_ids, paper_names, printed_claims
    from opticcl.processes import number_of_jobs
    from opticcl.report.claims import ClaimsList

    wanted = _verdicts(request.verdict)
    processes = number_of_jobs(request.jobs, large=False)
    names = paper_names() if request.paper is None else (request.paper,)
    ids = {name: claim_ids(name, request.claim or ("*",)) for name in names}
    _some_match(
        request.claim, [id for name in names for id in ids[name]], [id for name in names for id in claim_ids(name)]
    )
    if request.fit:
        _known_fits(request.fit, names)
        ids = {name: [id for id in ids[name] if printed_claims(name)[id].get("fit") in request.fit] for name in names}
    rows = [row for name in names for row in check_paper(name, wanted, request.progress, ids[name], processes)]
    return ClaimsList(rows, behind=not (request.claim or request.verdict or request.fit))


def _known_fits(given: Sequence[str], papers: Sequence[str]) -> None:
    """Every fit is of one of the papers.

    Raises: ParameterError: a name of no fit.
    """
    from opticcl.papers import fits
    from opticcl.registry import nearest

    known = [name for paper in papers for name in fits(paper)]
    for name in given:
        if name not in known:
            raise ParameterError(f"--fit: no fit {name!r} of {', '.join(papers)}; {nearest(name, known)}")


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
            hint = hint if hint.startswith("did you mean") else "`opticcl study papers` lists them"
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
