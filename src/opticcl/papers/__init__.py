"""The papers' claims: published value, our value, verdict, and what our value rests on.

One file per paper, and one more for each large part of it: <paper>.py, <paper>_<part>.py. A claim is a function that computes
our value from the library; claims that differ in its arguments share it. What the paper prints is in claims/, in the file of
the same name, under the same id:

    [S2]
    where = "III-A"                  # section, table or figure
    claim = "switches of SiPAC(8, 3)"
    published = "L r^(L-1)"          # as printed: number, text, truth value or list; "not printed" if there is none
    formula = "L * r ** (L - 1)"     # the printed formula, to be evaluated, and ...
    at = {L = 3, r = 8}              # ... the values of its letters; a list of tables gives a list of values
    evaluated = 192                  # instead of a formula: the value that the printed text means at the claim's setting
    digits = 2                       # significant digits printed, one number or one for each of a list
    verdict = "exact"                # exact, 5 %, 20 %, fitted, inconsistent, not reproduced, not printed
    within = "5 %"                   # for fitted: how close ours is, as one of the first three
    corrected = 512                  # for the last three verdicts: the value that ours must have
    basis = "literal"                # what our value rests on; see `BASES`
    fit = "hpc_switches"             # for the basis fitted: which fit of fits.toml
    reason = "{steps} steps"         # why; fields in braces: `ours`, and facts that the function computes (`Found`)

A row is good if our value is as close to the published (or evaluated) one as its verdict says (`within` where it is fitted) and
no closer, or equal to the corrected one. "exact" means to 0.1 % or to the printed digits; a list is as close as its farthest
element. A verdict on file that is not the true one is an error, in either direction.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from importlib.resources import files
from itertools import groupby
from typing import Any, TypeVar

from opticcl.files import read_toml
from opticcl.ir import ProgressCallback, no_progress
from opticcl.papers.formula import evaluate
from opticcl.processes import each
from opticcl.registry import canonical, known_name

__all__ = [
    "ALL_VERDICTS",
    "BASES",
    "Fit",
    "Found",
    "Row",
    "check_paper",
    "claim",
    "claim_ids",
    "fits",
    "found",
    "paper_names",
    "printed_claims",
]

EXACT = 1e-3  # of the published number
VERDICTS = {"exact": EXACT, "5 %": 0.05, "20 %": 0.2}
ALL_VERDICTS = (*VERDICTS, "fitted", "inconsistent", "not reproduced", "not printed")
"""From the closest to the farthest. "fitted" follows from a value that was chosen because it reproduces printed numbers,
however close it comes; "not printed" is a computation that other rows refer to."""

BASES = ("literal", "arithmetic", "corrected", "fitted", "inferred")
"""What our value rests on.

literal    what the paper prints, and public data that it names, put into the library's machines, schedules and engines
arithmetic sums, products and printed formulas of numbers that the paper prints: no machine, schedule or engine is tested
corrected  an algorithm or formula of ours where the printed one is wrong
fitted     a parameter that was chosen because it reproduces a printed number; no prediction
inferred   a parameter that the paper does not state, chosen for another reason: a datasheet, a usual value, our reading
"""

_CLAIMS: dict[str, dict[str, partial[Any]]] = {}
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Found:
    """A computed value with the facts that its reason names.

    Args:
        value: ours.
        facts: numbers and texts by the names of the fields in the reason.
    """

    value: Any
    facts: Mapping[str, Any]


def found(value: Any, **facts: Any) -> Found:
    """A value with its facts."""
    return Found(value, facts)


@dataclass(frozen=True, slots=True)
class Row:
    """One claim.

    Args:
        id, paper, where, claim: of the claim.
        published: as printed.
        evaluated: value of a printed formula or text, None if `published` is a value itself.
        ours: as computed.
        relative_error: |ours - p| / |p| with the published or evaluated value p, the largest of a list; None if these are not
            numbers.
        verdict: of `ALL_VERDICTS`.
        basis: of `BASES`.
        reason: why the value differs, or what it rests on.
        ok: whether the verdict on file is the true one.
        fit: name of the fit that it follows from, of `fits`; "" if it follows from none.
    """

    id: str
    paper: str
    where: str
    claim: str
    published: Any
    evaluated: Any
    ours: Any
    relative_error: float | None
    verdict: str
    basis: str
    reason: str
    ok: bool
    fit: str = ""

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl study papers --json` prints them."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "ok"}


@dataclass(frozen=True, slots=True)
class Fit:
    """A value, or a set of values, that was chosen because it reproduces printed numbers.

    Args:
        paper: whose numbers.
        about: what was chosen.
        evidence: id of the row that shows what it was fitted to.
    """

    paper: str
    about: str
    evidence: str


def claim(paper: str, id: str, *given: Any, **named: Any) -> Callable[[Function], Function]:
    """Decorator: the function computes our value of that claim.

    Args:
        paper: name.
        id: of the claim.
        given, named: arguments of the function for this claim; one function may have several claims.
    """

    def add(function: Function) -> Function:
        claims = _CLAIMS.setdefault(paper, {})
        if id in claims:
            raise ValueError(f"claim {paper} {id} is registered twice")
        claims[id] = partial(function, *given, **named)
        return function

    return add


def paper_names() -> tuple[str, ...]:
    """Papers that have claims, sorted."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return tuple(sorted(_CLAIMS))


def claim_ids(name: str, patterns: Sequence[str] = ("*",)) -> list[str]:
    """Ids of a paper's claims that match one of some shell patterns, in the order of its files.

    Raises: UnknownNameError: no such paper.
    """
    key = known_name("paper", name, paper_names())
    return [id for id in printed_claims(key) if any(fnmatchcase(id, pattern) for pattern in patterns)]


def check_paper(
    name: str,
    verdicts: Sequence[str] = ALL_VERDICTS,
    progress: ProgressCallback = no_progress,
    patterns: Sequence[str] = ("*",),
    jobs: int = 1,
) -> Iterator[Row]:
    """Rows of one paper, computed one by one, in the order of its files.

    Args:
        name: of the paper.
        verdicts: of `ALL_VERDICTS`; claims with another one on file are skipped.
        patterns: shell patterns of ids; claims that match none are skipped.
        progress: called with (what, done, total) before each claim.
        jobs: processes, each for the claims of a file; the rows are the same with any number of them [count].
    Raises: UnknownNameError: no such paper.
    """
    matching = claim_ids(name, patterns)
    key = canonical(name)
    printed = printed_claims(key)
    ids = [id for id in matching if printed[id]["verdict"] in verdicts]
    if jobs == 1:
        for done, id in enumerate(ids):
            progress(f"check the claims of {key}", done, len(ids))
            yield _judge(key, id, printed[id], _CLAIMS[key][id]())
        return
    together = [list(group) for _, group in groupby(ids, lambda id: _CLAIMS[key][id].func.__module__)]

    def of_file(i: int, progress: ProgressCallback) -> list[Row]:
        return [_judge(key, id, printed[id], _CLAIMS[key][id]()) for id in together[i]]

    for rows in each(of_file, len(together), jobs=jobs, progress=progress):
        yield from rows


def printed_claims(paper: str) -> dict[str, dict[str, Any]]:
    """The claims on file of a paper, by id, in the order of its files."""
    folder = files("opticcl.papers").joinpath("claims")
    parts = sorted(f.name for f in folder.iterdir() if f.name.removesuffix(".toml").partition("_")[0] == paper)
    printed: dict[str, dict[str, Any]] = {}
    for part in parts:
        entries = read_toml("opticcl.papers", f"claims/{part}")
        if twice := printed.keys() & entries.keys():
            raise ValueError(f"claims {sorted(twice)} of {paper} are in two files")
        printed |= entries
    return printed


def fits(paper: str | None = None) -> dict[str, Fit]:
    """Fits by name, of a paper or of all, in the order of the file."""
    entries = read_toml("opticcl.papers", "fits.toml")
    return {name: Fit(**entry) for name, entry in entries.items() if paper in (None, entry["paper"])}


def _judge(paper: str, id: str, printed: Mapping[str, Any], computed: Any) -> Row:
    if not isinstance(computed, Found):
        computed = Found(computed, {})
    ours, evaluated, verdict = computed.value, _evaluated(printed), printed["verdict"]
    reference = printed["published"] if evaluated is None else evaluated
    within = printed["within"] if verdict == "fitted" else verdict
    if within in VERDICTS:
        ok = _closeness(ours, reference, printed.get("digits")) == within
    else:
        ok = _closeness(ours, printed["corrected"], printed.get("digits")) == "exact"
    return Row(
        id=id,
        paper=paper,
        where=printed["where"],
        claim=printed["claim"],
        published=printed["published"],
        ours=ours,
        relative_error=_relative_error(ours, reference),
        verdict=verdict,
        basis=printed["basis"],
        reason=printed.get("reason", "").format_map({"ours": ours, **computed.facts}),
        ok=ok,
        evaluated=evaluated,
        fit=printed.get("fit", ""),
    )


def _evaluated(printed: Mapping[str, Any]) -> Any:
    """Value of the printed formula or text, None if the published value is one itself."""
    if "formula" not in printed:
        return printed.get("evaluated")
    formulas, at = printed["formula"], printed.get("at", {})
    if isinstance(formulas, list):
        return [evaluate(formula, at) for formula in formulas]
    return [evaluate(formulas, letters) for letters in at] if isinstance(at, list) else evaluate(formulas, at)


def _closeness(ours: Any, reference: Any, digits: int | Sequence[int] | None) -> str | None:
    """The tightest verdict that holds, or None."""
    if _are_numbers(ours, reference):
        each = digits if isinstance(digits, Sequence) else [digits] * len(ours)
        verdicts = [_closeness(a, b, places) for a, b, places in zip(ours, reference, each, strict=True)]
        return None if None in verdicts else max(verdicts, key=[*VERDICTS].index, default="exact")  # type: ignore[arg-type]
    error = _relative_error(ours, reference)
    if error is None:
        return "exact" if ours == reference else None
    if isinstance(digits, int) and float(f"{ours:.{digits}g}") == reference:
        return "exact"
    return next((name for name, limit in VERDICTS.items() if error <= limit), None)


def _relative_error(ours: Any, reference: Any) -> float | None:
    if _are_numbers(ours, reference):
        return max((_relative_error(a, b) or 0.0 for a, b in zip(ours, reference, strict=True)), default=0.0)
    if not (_is_number(ours) and _is_number(reference)):
        return None
    if reference == 0:
        return float(ours != 0)
    return float(abs(ours - reference) / abs(reference))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _are_numbers(ours: Any, reference: Any) -> bool:
    """Whether both are lists of equally many numbers."""
    lists = isinstance(ours, list) and isinstance(reference, list) and len(ours) == len(reference)
    return lists and all(map(_is_number, [*ours, *reference]))
