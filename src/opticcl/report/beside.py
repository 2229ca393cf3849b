"""Cells and lines beside a time: time and rank under other assumptions, keys that swap ranks, light and price."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from opticcl.plans.hardware import bill_per_node
from opticcl.plans.sentences import entry_names, swaps_words
from opticcl.report.kit.columns import Column, FittedTable
from opticcl.report.kit.words import ratio, slower
from opticcl.units import format_seconds

if TYPE_CHECKING:
    from opticcl.plans.comparison import Comparison, Entry
    from opticcl.plans.light import Light
    from opticcl.plans.ranks import Variation

__all__ = [
    "AS_BUILT",
    "NO_CONTENDER",
    "as_built_column",
    "beside_cells",
    "light_word",
    "margin_word",
    "other_times",
    "sensitivity_table",
    "unranked_line",
    "usd_word",
    "verdicts_line",
    "versus_best",
]


AS_BUILT = "as built: time and rank at its own rate; 2x: the row takes twice that rate"
"""What a reader must know of the column "as built"."""

NO_CONTENDER = "no rank"
"""What the column "vs best" says of a reference."""

EXTRAPOLATED = 2.0
"""Node rate over the built one from which on a row says it."""


def as_built_column(times: Sequence[float | None], placed: Sequence[int | None], factors: Sequence[float]) -> Column:
    """Time and rank of each fabric as built, and how many times that rate its row takes: "4.007 ms #12 2x".

    Args:
        times: as built, None where there is none [s].
        placed: rank of each, None where it has none.
        factors: node rate over the built one.
    """
    raised = [f"{factor:.3g}x" if factor >= EXTRAPOLATED * (1 - 1e-9) else "" for factor in factors]
    cells = [" ".join(filter(None, pair)) for pair in zip(_timed_cells(times, placed), raised, strict=True)]
    return Column("as built", cells, justify="left")


def _timed_cells(times: Sequence[float | None], placed: Sequence[int | None]) -> list[str]:
    """Times, each with its rank where there are several."""
    return [
        "-" if time is None else format_seconds(time) + ("" if rank is None or len(times) == 1 else f" #{rank}")
        for time, rank in zip(times, placed, strict=True)
    ]


def beside_cells(comparison: Comparison, other: Variation | None) -> list[str]:
    """Time of each entry under a variation and its rank: "2.84 us #3"; empty if it was not evaluated.

    Args:
        comparison: whose entries.
        other: the variation.
    """
    return _timed_cells(comparison.times_under(other), comparison.ranks_under(other))


def other_times(rows: Sequence[Any]) -> list[Column]:
    """The column of times under another set of assumptions, if they were evaluated.

    Args: rows: each with `beside`: the name of the set and the time [s], or None.
    """
    known = [row.beside for row in rows if row.beside]
    return [Column(known[0][0], [format_seconds(seconds) for _, seconds in known])] if known else []


def light_word(light: Light) -> str:
    """Whether the light of a plan closes, with its margin; "-" where no light goes from end to end."""
    if light.margin_db is None:
        return "-"
    return f"{'closes' if light.closes else 'NO'} {light.margin_db:+.1f} dB"


def versus_best(comparison: Comparison) -> list[str]:
    """Time of each entry over that of the fastest with a rank; ties by that word, and what is no contender."""
    ties = comparison.ties
    tied = {id(entry) for entry in ties} if len(ties) > 1 else set()
    return [
        NO_CONTENDER
        if entry.is_reference
        else "tie"
        if id(entry) in tied
        else "best"
        if entry.ranked and factor == 1
        else ratio(factor)
        for entry, factor in zip(comparison.entries, slower(comparison), strict=True)
    ]


def margin_word(light: Light) -> str:
    """The margin of the light of a plan alone, with a word where it does not close."""
    return light_word(light).removeprefix("closes ")


def unranked_line(plans: Iterable[tuple[str, Light, str]]) -> str:
    """Why plans have no rank; "" if all have one.

    Args: plans: name, light and verdict of each plan without a rank.
    """
    reasons: dict[str, list[str]] = {}
    for name, light, verdict in plans:
        if verdict != "right":
            reasons.setdefault("wrong" if verdict == "wrong" else "not judged", []).append(name)
        else:
            reasons.setdefault("light does not close", []).append(f"{name} {light.margin_db:+.1f} dB ({light.optics})")
    if not reasons:
        return ""
    listed = "; ".join(f"{why}: {', '.join(dict.fromkeys(names))}" for why, names in reasons.items())
    dark = (
        "; opticcl machine budget -a shows where it is lost, --ignore-light ranks all"
        if "light does not close" in reasons
        else ""
    )
    return f"no rank: {listed}{dark}"


def verdicts_line(verdicts: Sequence[str]) -> str:
    """What the verifier found, in a sentence without its full stop.

    >>> verdicts_line(["right", "wrong"]), verdicts_line(["right"])
    ('Wrong plans: 1; their times mean nothing', 'Every plan was verified')
    """
    wrong, open_ = verdicts.count("wrong"), verdicts.count("not_judged")
    parts = [f"Wrong plans: {wrong}; their times mean nothing"] if wrong else []
    parts += [f"Plans that were not judged: {open_}"] if open_ else []
    return ". ".join(parts) or "Every plan was verified"


def usd_word(entry: Entry) -> str:
    """Price of a node; "-" where the parts are unknown."""
    usd, _ = bill_per_node(entry.fabric)
    return "-" if usd is None else f"{usd:,.0f}"


def sensitivity_table(comparison: Comparison) -> FittedTable:
    """One row a value, halved and doubled: the ranks that swap."""
    names = entry_names(comparison)
    rows: dict[str, dict[str, str]] = {}
    for one in comparison.sensitivity or ():
        _, _, factor = one.variation.name.rpartition(" x ")
        rows.setdefault(one.variation.key, {})[factor] = swaps_words(one, names) if one.pairs else "-"
    columns = [
        Column("value", [*rows], justify="left"),
        Column("halved", [row.get("0.5", "-") for row in rows.values()], justify="left", wrap=True),
        Column("doubled", [row.get("2", "-") for row in rows.values()], justify="left", wrap=True),
    ]
    about = f"Swaps of rank where one value of {comparison.assumed.name} is halved or doubled"
    return FittedTable(columns, heading=about)
