"""Columns and lines beside a time: time and rank under the other assumptions, keys that swap ranks, light and price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opticcl.plans.hardware import bill_per_node
from opticcl.report.kit.columns import Column, FittedTable
from opticcl.report.kit.words import labels
from opticcl.units import counted, format_rate, format_seconds

if TYPE_CHECKING:
    from opticcl.ir import Fabric
    from opticcl.plans.comparison import Comparison, Entry
    from opticcl.plans.light import Light
    from opticcl.plans.ranks import Swaps

__all__ = [
    "beside_cells",
    "beside_columns",
    "light_word",
    "not_tried_line",
    "other_times",
    "rank_lines",
    "rates_line",
    "sensitivity_table",
    "unranked",
    "unranked_line",
    "usd_word",
    "verdicts_line",
]

SHOWN = 3
"""Swaps of one key that a line names [count]."""


MOVED = 8
"""Entries of another rank that a line names [count]."""


def beside_cells(comparison: Comparison) -> list[str]:
    """Time under the set beside and its rank: "2.84 us #3"; empty if it was not evaluated."""
    _, other = comparison.ranks()
    times = comparison.times_beside()
    return [
        format_seconds(time) + ("" if rank is None else f" #{rank}") for time, rank in zip(times, other, strict=True)
    ]


def beside_columns(comparison: Comparison) -> list[Column]:
    """The column of `beside_cells`, or none."""
    cells = beside_cells(comparison)
    return [Column(comparison.beside.name, cells)] if comparison.beside and cells else []


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


def unranked(comparison: Comparison) -> list[tuple[str, Light, str]]:
    """Name, light and verdict of each plan without a rank."""
    named = zip(_names(comparison), comparison.entries, strict=True)
    return [(name, entry.light, entry.verdict.verdict) for name, entry in named if not entry.ranked]


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
        "; opticcl budget -a shows where it is lost, --ignore-light ranks all"
        if "light does not close" in reasons
        else ""
    )
    return f"no rank: {listed}{dark}"


def not_tried_line(left_out: Mapping[str, Iterable[str]]) -> str:
    """What searches left out, shortened; "" if nothing.

    >>> not_tried_line({"ocs": ["mesh: 9,999 transfers of its distinct steps; a search evaluates 999 at most"]})
    'not tried, since it takes long, and perhaps faster: ocs (mesh); --json lists the limits, --algorithm NAME tries one'

    Args: left_out: fabric -> lines.
    """
    named = (f"{fabric} ({', '.join(dict.fromkeys(map(_algorithm, lines)))})" for fabric, lines in left_out.items())
    listed = ", ".join(named)
    if not listed:
        return ""
    return f"not tried, since it takes long, and perhaps faster: {listed}; --json lists the limits, --algorithm NAME tries one"


def _algorithm(line: str) -> str:
    """The algorithm that a line is about."""
    return line.partition(":")[0].partition(" ")[0]


def verdicts_line(verdicts: Sequence[str]) -> str:
    """What the verifier found, in a sentence without its full stop.

    >>> verdicts_line(["right", "wrong"]), verdicts_line(["right"])
    ('Wrong plans: 1; their times mean nothing', 'Every plan was verified')
    """
    wrong, open_ = verdicts.count("wrong"), verdicts.count("not_judged")
    found = [f"Wrong plans: {wrong}; their times mean nothing"] if wrong else []
    found += [f"Plans that were not judged: {open_}"] if open_ else []
    return ". ".join(found) or "Every plan was verified"


def rates_line(fabrics: Sequence[Fabric]) -> str:
    """A remark where node rates differ, since times then depend on transmitters too; "" where rates or bills are equal."""
    if len({format_rate(fabric.node_rate_bits_per_s) for fabric in fabrics}) == 1:
        return ""
    for bill in zip(*map(bill_per_node, fabrics), strict=True):  # dollars, then watts
        if None not in bill and len({f"{value:.3g}" for value in bill}) == 1:
            return ""
    return "node rates differ; --equal rate=800Gb/s gives every node the same, cost=9000 or power=100 the same bill"


def usd_word(entry: Entry) -> str:
    """Price of a node; "-" where the parts are unknown."""
    usd, _ = bill_per_node(entry.fabric)
    return "-" if usd is None else f"{usd:,.0f}"


def rank_lines(comparison: Comparison) -> list[str]:
    """The set of assumptions, the ranks that differ under the set beside, and the keys that swap ranks, a line each."""
    lines = [f"assumptions: {comparison.assumed.name}; algorithms are chosen and times charged under it"]
    lines += map(str, comparison.decided)
    if comparison.beside is None or len(comparison.entries) < 2:
        return lines
    first, other = comparison.ranks()
    names = _names(comparison)
    if first == other:
        return [*lines, f"the order is the same under {comparison.beside.name}"]
    moved = [
        f"{name} {here} -> {there}" for name, here, there in zip(names, first, other, strict=True) if here != there
    ]
    more = f" and {len(moved) - MOVED:,} more" if len(moved) > MOVED else ""
    lines.append(f"ranks that differ under {comparison.beside.name}: {', '.join(moved[:MOVED])}{more}")
    if comparison.flips:
        found = [f"{one.variation.name} ({_swaps(one, names)})" for one in comparison.flips]
        lines.append(f"what flips ranks, each alone: {'; '.join(found)}")
    return lines


def sensitivity_table(comparison: Comparison) -> FittedTable:
    """One row a value, halved and doubled: the ranks that swap."""
    names = _names(comparison)
    rows: dict[str, dict[str, str]] = {}
    for one in comparison.sensitivity or ():
        _, _, factor = one.variation.name.rpartition(" x ")
        rows.setdefault(one.variation.key, {})[factor] = _swaps(one, names) if one.pairs else "-"
    columns = [
        Column("value", [*rows], justify="left"),
        Column("halved", [row.get("0.5", "-") for row in rows.values()], justify="left", wrap=True),
        Column("doubled", [row.get("2", "-") for row in rows.values()], justify="left", wrap=True),
    ]
    about = f"Swaps of rank where one value of {comparison.assumed.name} is halved or doubled (faster before slower)"
    return FittedTable(columns, heading=about)


def _names(comparison: Comparison) -> list[str]:
    """Fabrics, with their algorithms where a fabric occurs more than once."""
    fabrics = [entry.fabric.name for entry in comparison.entries]
    return labels(comparison, short=True) if len(set(fabrics)) < len(fabrics) else fabrics


def _swaps(swaps: Swaps, names: Sequence[str]) -> str:
    """The first swaps in words: "sipac before ramp, ... and 2 more"."""
    shown = ", ".join(f"{names[i]} before {names[j]}" for i, j in swaps.pairs[:SHOWN])
    more = len(swaps.pairs) - SHOWN
    return f"{shown} and {counted(more, 'more swap')}" if more > 0 else shown
