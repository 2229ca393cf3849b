"""The papers' claims, checked: what is printed, what comes out here, and whether they agree.

One file a paper, and one more for each large part of it: <paper>.py, <paper>_<part>.py. A claim is a function without
arguments that computes our value from the library; what the paper prints stands in the file of the same name in data/papers/
under the same id:

    [S1]
    where = "III-A"                  # section, table or figure
    claim = "nodes of SiPAC(16, 2)"
    published = 256                  # number, text, truth value or list
    digits = 2                       # significant digits that are printed, where that is less than exact to 0.1 %
    verdict = "exact"                # exact, 5 %, 20 %, inconsistent, not reproduced
    corrected = 512                  # only for "inconsistent" and "not reproduced": what our value must be
    reason = "..."                   # why, where it is not exact

A row is good if our value is as near to the published one as the verdict says, or equal to the corrected one. Exact is to
0.1 %, or to the printed digits.
A claim that gets worse, or better than its verdict, is an error: the file must tell the truth.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeVar

from opticcl.data import load
from opticcl.errors import UnknownNameError
from opticcl.registry import canonical, nearest

__all__ = ["ALL_VERDICTS", "Row", "check_paper", "claim", "paper_names"]

EXACT = 1e-3  # of the published number
VERDICTS = {"exact": EXACT, "5 %": 0.05, "20 %": 0.2}
ALL_VERDICTS = (*VERDICTS, "inconsistent", "not reproduced")
"""From the nearest to the farthest."""

_CLAIMS: dict[str, dict[str, Callable[[], Any]]] = {}
Function = TypeVar("Function", bound=Callable[[], Any])


@dataclass(frozen=True, slots=True)
class Row:
    """One claim.

    Args:
        id, paper, where, claim: which.
        published: as printed.
        ours: as it comes out here.
        relative_error: |ours - published| / |published|, None if these are no numbers.
        verdict: exact, 5 %, 20 %, inconsistent or not reproduced.
        reason: why it is not exact.
        ok: whether the verdict on file is the true one.
    """

    id: str
    paper: str
    where: str
    claim: str
    published: Any
    ours: Any
    relative_error: float | None
    verdict: str
    reason: str
    ok: bool


def claim(paper: str, id: str) -> Callable[[Function], Function]:
    """Decorator: the function computes our value for that claim."""

    def add(function: Function) -> Function:
        claims = _CLAIMS.setdefault(paper, {})
        if id in claims:
            raise ValueError(f"claim {paper} {id} is registered twice")
        claims[id] = function
        return function

    return add


def paper_names() -> tuple[str, ...]:
    """Papers that have claims, sorted."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return tuple(sorted(_CLAIMS))


def check_paper(
    name: str,
    verdicts: Sequence[str] = ALL_VERDICTS,
    progress: Callable[[str, int, int], None] = lambda label, done, total: None,
) -> Iterator[Row]:
    """Rows of one paper, computed one by one, in the order of its file.

    Args:
        verdicts: of `ALL_VERDICTS`; claims with another one on file are left out.
        progress: told before each claim what is done, how much of it, and of how much.
    Raises: UnknownNameError: no such paper.
    """
    names = paper_names()
    key = canonical(name)
    if key not in names:
        raise UnknownNameError(f"unknown paper {name!r}; {nearest(key, names)}")
    printed = _printed(key)
    ids = [id for id in sorted(_CLAIMS[key], key=[*printed].index) if printed[id]["verdict"] in verdicts]
    for done, id in enumerate(ids):
        progress(f"check the claims of {key}", done, len(ids))
        yield _judge(key, id, printed[id], _CLAIMS[key][id]())


def _printed(paper: str) -> dict[str, dict[str, Any]]:
    """What the files of a paper say was printed, by id, in their order."""
    folder = files("opticcl.data").joinpath("papers")
    parts = sorted(f.name for f in folder.iterdir() if f.name.removesuffix(".toml").partition("_")[0] == paper)
    printed: dict[str, dict[str, Any]] = {}
    for part in parts:
        entries = load(f"papers/{part}")
        if twice := printed.keys() & entries.keys():
            raise ValueError(f"claims {sorted(twice)} of {paper} stand in two files")
        printed |= entries
    return printed


def _judge(paper: str, id: str, printed: dict[str, Any], ours: Any) -> Row:
    published, verdict = printed["published"], printed["verdict"]
    error = _relative_error(ours, published)
    if verdict in VERDICTS:
        ok = _closeness(ours, published, printed.get("digits")) == verdict
    else:
        ok = _closeness(ours, printed["corrected"], printed.get("digits")) == "exact"
    return Row(
        id, paper, printed["where"], printed["claim"], published, ours, error, verdict, printed.get("reason", ""), ok
    )


def _closeness(ours: Any, due: Any, digits: int | None) -> str | None:
    """The tightest verdict that holds, or None."""
    error = _relative_error(ours, due)
    if error is None:
        return "exact" if ours == due else None
    if digits and float(f"{ours:.{digits}g}") == due:
        return "exact"
    return next((name for name, limit in VERDICTS.items() if error <= limit), None)


def _relative_error(ours: Any, published: Any) -> float | None:
    if any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in (ours, published)):
        return None
    if published == 0:
        return float(ours != 0)
    return float(abs(ours - published) / abs(published))
