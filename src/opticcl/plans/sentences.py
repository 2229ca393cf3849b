"""What a comparison answers, in sentences: the first one, and what a reader must know beside it.

They are of the result, so that terminal, page, explorer and JSON have the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opticcl.plans.hardware import bill_per_node
from opticcl.plans.names import labels, short_algorithm
from opticcl.plans.ranks import is_tie
from opticcl.units import counted, format_rate, format_seconds

if TYPE_CHECKING:
    from opticcl.ir import Fabric
    from opticcl.plans.comparison import Comparison, Entry
    from opticcl.plans.equal import Equal
    from opticcl.plans.ranks import Swaps

__all__ = [
    "answer_record",
    "as_built_sentence",
    "assumption_lines",
    "caveats",
    "entry_names",
    "ground",
    "headline",
    "listed",
    "not_tried_line",
    "ranking_caveats",
    "ranking_sentence",
    "rates_line",
    "swaps_words",
]


NAMED = 5
"""Fabrics that a sentence names [count]."""

SHOWN = 2
"""Swaps of one key that a line names [count]."""


def answer_record(comparison: Comparison) -> dict[str, Any]:
    """Plain values, as `opticcl compare --json` prints them: the answer in words, then the rows and what they rest on."""
    return {"headline": headline(comparison), "caveats": list(caveats(comparison)), **comparison.record()}


def headline(comparison: Comparison) -> str:
    """The answer of a comparison: which fabric is the fastest, by how much, and which one is as built."""
    ranked = comparison.ranked
    if not ranked:
        first = comparison.entries[0]
        time = format_seconds(first.total_s)
        return f"No plan has a rank: the fastest, {_by(first)}, takes {time}, but {first.no_rank}."
    return " ".join(filter(None, (_first_sentence(comparison), _as_built_sentence(comparison))))


def _first_sentence(comparison: Comparison) -> str:
    """Who is the fastest on the ground of the comparison."""
    ranked = comparison.ranked
    where = ground(comparison.equal, [entry.fabric.node_rate_bits_per_s for entry in comparison.entries])
    fixed = [entry.fabric for entry in comparison.entries if comparison.stays_as_built(entry)]
    if stay := dict.fromkeys(f"{one.name} as built, {format_rate(one.node_rate_bits_per_s)}" for one in fixed):
        where += f" ({'; '.join(stay)})"
    names = entry_names(comparison)[: len(ranked)]
    return ranking_sentence(where, names, [entry.total_s for entry in ranked], _by(ranked[0]))


def ranking_sentence(where: str, names: Sequence[str], times: Sequence[float], first: str, of: str = "") -> str:
    """Who is the fastest, or which tie.

    >>> ranking_sentence("As built", ["a", "b", "c"], [1e-6, 1.04e-6, 2e-6], "a by ring")
    'As built, a and b tie (1 us to 1.04 us).'
    >>> ranking_sentence("As built", ["a", "b"], [1e-6, 2e-6], "a by ring")
    'As built, a by ring is the fastest with 1 us, 2.00 times as fast as b.'

    Args:
        where: the ground on which they are ranked.
        names: of those that have a rank, fastest first.
        times: of them [s].
        first: the fastest, as a sentence names it.
        of: what the times are of, as in " an iteration".
    """
    time = format_seconds(times[0]) + of
    if len(times) == 1:
        return f"{where}, {first} takes {time}."
    tied = [seconds for seconds in times if is_tie(seconds, times[0])]
    named = list(dict.fromkeys(names[: len(tied)]))
    if len(named) > 1:
        fastest, slowest = format_seconds(times[0]), format_seconds(tied[-1])
        span = fastest if fastest == slowest else f"{fastest} to {slowest}"
        every = len(named) == len(set(names)) > NAMED
        return f"{where}, {f'all {len(named)}' if every else listed(named, NAMED)} tie ({span}{of})."
    other = next((i for i, name in enumerate(names) if name != names[0]), 0)
    ahead = f", {_times(times[other] / times[0])} as fast as {names[other]}" if other and times[0] else ""
    return f"{where}, {first} is the fastest with {time}{ahead}."


def _as_built_sentence(comparison: Comparison) -> str:
    """Who is the fastest as built, where that was evaluated."""
    timed = zip(comparison.times_under(comparison.as_built), comparison.entries, strict=False)
    known = [
        (entry.fabric.name, entry.built, seconds) for seconds, entry in timed if seconds is not None and entry.ranked
    ]
    return as_built_sentence(known) if any(abs(entry.rate_factor - 1) > 1e-9 for entry in comparison.ranked) else ""


def as_built_sentence(known: Sequence[tuple[str, Fabric, float]]) -> str:
    """Who is the fastest as built; "" where there is none.

    Args: known: name, fabric as built and its time [s] of each.
    """
    if not known:
        return ""
    name, fabric, seconds = min(known, key=lambda one: one[2])
    names = {other for other, _, _ in known}
    tied = {other for other, _, other_s in known if is_tie(other_s, seconds)}
    if len(tied) == len(names) > NAMED:
        return f"As built, all {len(tied)} tie too."
    more = f", a tie with {counted(len(tied) - 1, 'other')}" if len(tied) > 1 else ""
    takes = "is the fastest with" if len(names) > 1 else "takes"
    return f"As built, {name} ({format_rate(fabric.node_rate_bits_per_s)}) {takes} {format_seconds(seconds)}{more}."


def ground(equal: Equal | None, rates: Sequence[float]) -> str:
    """What fabrics have in common, as the beginning of a sentence.

    Args:
        equal: what they were made to have in common.
        rates: of their nodes [bit/s].
    """
    if equal is not None:
        return f"At {equal}"
    texts = {format_rate(rate) for rate in rates}
    return f"At {texts.pop()} a node" if len(texts) == 1 else "As built"


def _by(entry: Entry) -> str:
    return f"{entry.fabric.name} by {short_algorithm(entry.plan.algorithm)}"


def _times(factor: float) -> str:
    """A factor in words: "1.8 times"."""
    return f"{factor:.2f} times" if factor < 9.95 else f"{factor:,.0f} times"


def listed(names: Sequence[str], most: int) -> str:
    """Names as a list in a sentence, of which the last few may be counted only.

    >>> listed(["a", "b", "c"], 4), listed(["a", "b", "c"], 2)
    ('a, b and c', 'a, b and 1 more')

    Args:
        names: at least one.
        most: that are named [count].
    """
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most:,} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def caveats(comparison: Comparison) -> Iterator[str]:
    """What a reader must know beside the times, a line each, what decides most first."""
    yield from (f"no rank: {one}" for one in dict.fromkeys(_unranked(comparison)))
    yield from ranking_caveats(comparison)
    yield from assumption_lines(comparison)


def ranking_caveats(comparison: Comparison) -> Iterator[str]:
    """What the order of the fabrics leaves out or rests on, a line each, but for plans without a rank."""
    lines = (
        rates_line([one.fabric for one in comparison.entries if not comparison.stays_as_built(one)]),
        not_tried_line(comparison.not_tried),
        *dict.fromkeys(note for entry in comparison.entries for note in entry.fabric.notes),
        *map(str, comparison.decided),
    )
    yield from filter(None, lines)


def _unranked(comparison: Comparison) -> Iterator[str]:
    """Name of each plan without a rank and the reason, but for references."""
    for name, entry in zip(entry_names(comparison), comparison.entries, strict=True):
        if entry.no_rank and not entry.is_reference:
            yield f"{name}: {entry.no_rank}"


def assumption_lines(comparison: Comparison) -> Iterator[str]:
    """The set of assumptions, the fastest under the set beside, and the keys that alone swap fabrics."""
    name = comparison.assumed.name
    if comparison.beside is None or len(comparison.ranked) < 2:
        yield f"assumptions: {name}, for the choice of algorithms and for times"
        return
    names = entry_names(comparison)
    timed = zip(comparison.times_under(comparison.beside), names, comparison.entries, strict=True)
    known = sorted((seconds, entry) for seconds, entry, of in timed if seconds is not None and of.ranked)
    fastest = list(dict.fromkeys(entry for seconds, entry in known if is_tie(seconds, known[0][0])))
    too = " too" * ({*fastest} == {*names[: len(comparison.ties)]})
    who = f"{fastest[0]} is the fastest" if len(fastest) == 1 else f"{listed(fastest, NAMED)} tie"
    yield f"assumptions: {name}; under {comparison.beside.name} {who}{too}"
    if comparison.flips:
        each = "; ".join(f"with {one.variation.name} {swaps_words(one, names)}" for one in comparison.flips)
        yield f"one assumption alone changes the order by more than a tie: {each}"


def swaps_words(swaps: Swaps, names: Sequence[str]) -> str:
    """The first swaps of a variation in words: "terarack overtakes lightpath, ... and 2 more".

    Args:
        swaps: of the variation.
        names: of the entries.
    """
    shown = ", ".join(f"{names[i]} overtakes {names[j]}" for i, j in swaps.pairs[:SHOWN])
    more = len(swaps.pairs) - SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown


def entry_names(comparison: Comparison) -> list[str]:
    """Name of each entry: its fabric, with its algorithm where a fabric occurs more than once."""
    fabrics = [entry.fabric.name for entry in comparison.entries]
    return labels(comparison, short=True) if len(set(fabrics)) < len(fabrics) else fabrics


def rates_line(fabrics: Sequence[Fabric]) -> str:
    """A remark where node rates differ, since times then depend on transmitters too; "" where rates or bills are equal.

    Args: fabrics: of the entries.
    """
    if len({format_rate(fabric.node_rate_bits_per_s) for fabric in fabrics}) <= 1:
        return ""
    for bill in zip(*map(bill_per_node, fabrics), strict=True):  # dollars, then watts
        if None not in bill and len({f"{value:.3g}" for value in bill}) == 1:
            return ""
    return "node rates differ, so times compare transceivers as much as networks; leave --as-built out for one rate"


def not_tried_line(left_out: Mapping[str, Iterable[str]]) -> str:
    """What searches left out, shortened; "" if nothing.

    >>> not_tried_line({"ocs": ["mesh: 9,999 transfers of its distinct steps; a search evaluates 999 at most"]})
    'not tried because of their size, perhaps faster: ocs (mesh); --json lists the limits, --algorithm NAME tries one'

    Args: left_out: fabric -> lines.
    """
    named = (f"{fabric} ({', '.join(dict.fromkeys(map(_algorithm, lines)))})" for fabric, lines in left_out.items())
    together = ", ".join(named)
    if not together:
        return ""
    ways = "--json lists the limits, --algorithm NAME tries one"
    return f"not tried because of their size, perhaps faster: {together}; {ways}"


def _algorithm(line: str) -> str:
    """The algorithm that a line is about."""
    return line.partition(":")[0].partition(" ")[0]
