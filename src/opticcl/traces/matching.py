"""Matches the calls of several ranks.

A collective of one rank is matched with those of the other members of its process group by its recorded sequence number. Where
none is recorded, by its place among the calls of that group; ranks whose calls differ are then matched by collective and size.
A send is matched with its receive by sender, receiver, group and tag, then by number or place: a rank numbers all its transfers
of a group together, so that two ranks have the same numbers in a group of two, and perhaps in others. A note counts what has no
counterpart.

A matched call starts when the last of its ranks arrives. The recorded duration of a collective is therefore that of the last
rank; the others also waited for it. How long they waited is the skew between the ranks.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from statistics import median
from typing import NamedTuple

from opticcl.ir.task_graph import CollectiveCall
from opticcl.traces.notes import Omissions
from opticcl.traces.ranks import RankModel
from opticcl.traces.recording import RankCall, RankTrace
from opticcl.units import counted, format_seconds

__all__ = ["Matched", "Matching", "match_calls", "skew_notes", "waited_s"]

MAX_MATRIX = 256  # ranks of an all_to_all whose matrix is kept
ANY_TAG = "-1"  # of a receive that takes any


class Side(NamedTuple):
    """A call as one rank recorded it."""

    rank: int
    call: RankCall


@dataclass(slots=True)
class Matched:
    """A call of several ranks."""

    sides: list[Side]
    call: CollectiveCall


@dataclass(slots=True)
class Matching:
    """The matched calls of a job.

    Args:
        matched: in the order of the lowest rank that takes part.
        by_call: matched call of each recorded one, by identity.
        notes: on calls without a counterpart.
    """

    matched: list[Matched] = field(default_factory=list)
    by_call: dict[int, Matched] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def match_calls(
    traces: Sequence[RankTrace], calls: Sequence[Sequence[RankCall]], model: RankModel, omissions: Omissions
) -> Matching:
    """Match the calls of all ranks.

    Args:
        traces: of distinct ranks.
        calls: of each rank, in order.
        model: ranks and groups.
        omissions: counts what is left out.
    """
    matching = Matching()
    groups: dict[object, dict[int, list[Side]]] = defaultdict(lambda: defaultdict(list))
    transfers: dict[tuple[int, int, str, str], dict[str, list[Side]]] = defaultdict(lambda: defaultdict(list))
    first_number: dict[tuple[int, str], int] = {}  # of the transfers of a rank in a group
    firsts: dict[int, tuple[int, int]] = {}  # call -> place, to keep the order of the lowest rank
    _choose_ends([call for mine in calls for call in mine if call.is_transfer])
    for trace, mine in zip(traces, calls, strict=True):
        for place, call in enumerate(mine):
            firsts[id(call)] = place, trace.rank
            side = Side(trace.rank, call)
            if call.is_transfer:
                transfers[call.ranks[0], call.ranks[1], call.group, call.tag][call.collective].append(side)
                known = first_number.get((trace.rank, call.group), call.sequence)
                first_number[trace.rank, call.group] = min(known, call.sequence)
            else:
                members = model.members(trace, call)
                assumed = members.source.startswith("assumed")
                key = (call.group, assumed or tuple(members.ranks)) if call.group else tuple(members.ranks)
                groups[key][trace.rank].append(side)
    rows: list[list[Side]] = []
    for by_rank in groups.values():
        rows += _match_group(by_rank, matching.notes)
    pairs = {name for trace in traces for name, ranks in trace.groups.items() if len(ranks) == 2}
    for (src, dst, group, _), ends in transfers.items():
        alone = group in pairs
        begun = all(first_number.get((rank, group), 0) <= 1 for rank in (src, dst))
        rows += _match_pairs(ends, by_number=alone or not begun)
    rows = _with_unknown_ends(rows)
    rows.sort(key=lambda sides: min(firsts[id(side.call)] for side in sides))
    lone, guessed = Counter[str](), Counter[str]()
    by_rank_trace = {trace.rank: trace for trace in traces}
    for sides in rows:
        whole = _together(sides, by_rank_trace, model, omissions, guessed)
        if whole is None:
            continue
        matched = Matched(sides, whole)
        matching.matched.append(matched)
        for side in sides:
            matching.by_call[id(side.call)] = matched
        expected = set(whole.ranks or range(model.count.value)) & set(by_rank_trace)
        if len(sides) < len(expected):
            lone[whole.collective] += 1
    if guessed["large"]:
        matching.notes.append(
            f"all_to_all of more than {MAX_MATRIX} ranks: {guessed['large']:,}, each taken as even, as large as its largest "
            "side; parts of pairs are not kept"
        )
    if guessed["all_to_all"]:
        matching.notes.append(
            f"parts of {guessed['all_to_all']:,} uneven all_to_all are not recorded: taken in the proportion of what ranks "
            "receive"
        )
    for collective, n in lone.items():
        matching.notes.append(f"without a counterpart in the trace of another rank: {n:,} {collective}")
    return matching


def _match_group(by_rank: dict[int, list[Side]], notes: list[str]) -> Iterator[list[Side]]:
    """Calls of one group, rank by rank, matched by their number in the sequence or by collective and size."""
    if len(by_rank) > 1 and all(side.call.sequence >= 0 for sides in by_rank.values() for side in sides):
        yield from _match_numbers(by_rank, notes)
        return
    sequences = {rank: [_kind(side.call) for side in sides] for rank, sides in by_rank.items()}
    if len(set(map(tuple, sequences.values()))) == 1:
        yield from map(list, zip(*by_rank.values(), strict=True))
        return
    label = _label(by_rank)
    lengths = sorted({len(sequence) for sequence in sequences.values()})
    notes.append(
        f"ranks {min(by_rank)} to {max(by_rank)} disagree on the calls of {label} ({lengths[0]:,} to {lengths[-1]:,} calls): "
        "matched by collective and size"
    )
    slots: dict[tuple[object, int], list[Side]] = {}
    for sides in by_rank.values():
        seen = Counter[object]()
        for side in sides:
            kind = _kind(side.call)
            slots.setdefault((kind, seen[kind]), []).append(side)
            seen[kind] += 1
    yield from slots.values()


def _match_numbers(by_rank: dict[int, list[Side]], notes: list[str]) -> Iterator[list[Side]]:
    """Calls of one group by their sequence numbers; calls of one number, which are issued together, in their order."""
    slots: dict[tuple[int, int], dict[object, list[Side]]] = defaultdict(lambda: defaultdict(list))
    for sides in by_rank.values():
        seen = Counter[int]()
        for side in sides:
            number = side.call.sequence
            slots[number, seen[number]][_kind(side.call)].append(side)
            seen[number] += 1
    if differ := sum(len(kinds) > 1 for kinds in slots.values()):
        notes.append(
            f"{_label(by_rank)}: the ranks disagree on the collective or size of {counted(differ, 'sequence number')}"
        )
    spans = {(sides[0].call.sequence, sides[-1].call.sequence) for sides in by_rank.values()}
    if len(spans) > 1:
        shown = ", ".join(f"{first:,} to {last:,}" for first, last in sorted(spans)[:3])
        notes.append(
            f"{_label(by_rank)}: recordings begin or end at different calls ({shown}{', ...' if len(spans) > 3 else ''}): "
            "matched by sequence number"
        )
    for _, kinds in sorted(slots.items()):
        yield from kinds.values()


def _label(by_rank: dict[int, list[Side]]) -> str:
    """A group, for notes."""
    first = next(iter(by_rank.values()))[0].call
    return f"group {first.group!r}" if first.group else "a group"


def _kind(call: RankCall) -> tuple[str, int]:
    """Collective and size, of an all_to_all without the size, which may differ between ranks."""
    return call.collective, 0 if call.collective == "all_to_all" else call.size_bytes


def _choose_ends(transfers: Sequence[RankCall]) -> None:
    """Choose the ends of transfers whose group is not recorded, so that as many as possible have one of the other rank.

    First those with a counterpart of known ends, then those that share only one pair of ends with another, at last the others.
    """
    waiting = [call for call in transfers if len(call.options) > 1]
    if not waiting:
        return
    wanted: Counter[tuple[object, ...]] = Counter()  # known receives less known sends
    for call in transfers:
        if len(call.options) < 2:
            wanted[*call.ranks, call.tag, call.size_bytes] += 1 if call.collective == "recv" else -1
    left = []
    for call in waiting:
        sign = 1 if call.collective == "recv" else -1
        fits = [one for one in call.options if wanted[*one, call.tag, call.size_bytes] * sign < 0]
        if fits:
            call.ranks = fits[0]
            wanted[*call.ranks, call.tag, call.size_bytes] += sign
        else:
            left.append(call)
    may_be: dict[tuple[object, ...], deque[RankCall]] = defaultdict(deque)
    for call in left:
        for one in call.options:
            may_be[call.collective, *one, call.tag, call.size_bytes].append(call)
    chosen = set[int]()
    for most in (1, 1, 1, len(left)):  # pairs of ends that are shared
        for call in left:
            other = "send" if call.collective == "recv" else "recv"
            choices: list[tuple[tuple[int, int], RankCall]] = []
            for one in call.options if id(call) not in chosen else ():
                partners = may_be[other, *one, call.tag, call.size_bytes]
                while partners and id(partners[0]) in chosen:
                    partners.popleft()
                choices += [(one, partners[0])] if partners else []
            if 0 < len(choices) <= most:
                call.ranks, partner = choices[0]
                partner.ranks = call.ranks
                chosen |= {id(call), id(partner)}


def _with_unknown_ends(rows: list[list[Side]]) -> list[list[Side]]:
    """The same, where a transfer of any tag, or with one end of its own alone, joins the first known one that fits."""
    alone = [sides[0] for sides in rows if len(sides) == 1 and sides[0].call.is_transfer]
    unknown = [side for side in alone if -1 in side.call.ranks or side.call.tag == ANY_TAG]
    if not unknown:
        return rows
    # by kind, size, own end and its rank, or both ends, and tag
    known: dict[tuple[object, ...], deque[Side]] = defaultdict(deque)
    for side in alone:
        if -1 not in side.call.ranks and side.call.tag != ANY_TAG:
            for end, rank in [*enumerate(side.call.ranks), (2, side.call.ranks)]:
                for tag in (side.call.tag, ANY_TAG):
                    known[side.call.collective, side.call.size_bytes, end, rank, tag].append(side)
    joined: dict[int, Side] = {}  # known side, by identity of its call -> unknown one
    for side in unknown:
        call = side.call
        end = 2 if -1 not in call.ranks else 0 if call.ranks[0] >= 0 else 1
        other = "send" if call.collective == "recv" else "recv"
        for tag in (call.tag, ANY_TAG):
            fitting = known[other, call.size_bytes, end, call.ranks if end == 2 else call.ranks[end], tag]
            while fitting and id(fitting[0].call) in joined:
                fitting.popleft()
            if fitting:
                call.ranks = fitting[0].call.ranks
                joined[id(fitting[0].call)] = side
                break
    moved = {id(side.call) for side in joined.values()}
    kept = [sides for sides in rows if id(sides[0].call) not in moved]
    return [[*sides, *([joined[id(sides[0].call)]] if id(sides[0].call) in joined else [])] for sides in kept]


def _match_pairs(ends: dict[str, list[Side]], *, by_number: bool) -> Iterator[list[Side]]:
    """Sends with their receives: by number, if the numbers that both recordings span are the same ones, else in order.

    Args:
        ends: sends and receives.
        by_number: whether the numbers of both ranks may be the same ones and a recording may begin late.
    """
    sends, receives = ends["send"], ends["recv"]
    numbers = [[side.call.sequence for side in sides] for sides in (sends, receives)]
    if by_number and all(numbers) and all(len(set(one)) == len(one) and min(one) >= 0 for one in numbers):
        first, last = max(map(min, numbers)), min(map(max, numbers))
        spanned = [[number for number in one if first <= number <= last] for one in numbers]
        if spanned[0] == spanned[1]:
            by_sequence: dict[int, list[Side]] = defaultdict(list)
            for side in [*sends, *receives]:
                by_sequence[side.call.sequence].append(side)
            yield from (by_sequence[number] for number in sorted(by_sequence))
            return
    for i in range(max(len(sends), len(receives))):
        yield [*sends[i : i + 1], *receives[i : i + 1]]


def _together(
    sides: list[Side], traces: dict[int, RankTrace], model: RankModel, omissions: Omissions, guessed: Counter[str]
) -> CollectiveCall | None:
    """The call of the ranks that recorded it.

    Args:
        sides: of the call.
        traces: by rank.
        model: ranks and groups.
        omissions: counts what is left out.
        guessed: counts calls whose parts are assumed, or too many.
    """
    first = sides[0]
    call = model.resolve(traces[first.rank], first.call, omissions)
    if call is None:
        return None
    measured = [side.call.measured_s for side in sides if side.call.measured_s]
    call = replace(call, measured_s=min(measured, default=0.0))
    if call.collective != "all_to_all" or first.call.counts == "share":  # of equal shares
        return call
    members = call.ranks or tuple(range(min(model.count.value, MAX_MATRIX + 1)))
    matrix = _matrix(sides, members)
    if not matrix:
        matrix = _assumed_matrix(sides, members)
        guessed["all_to_all"] += len({*(part for row in matrix for part in row)}) > 1
    if not matrix:
        guessed["large"] += len(members) > MAX_MATRIX
        return replace(call, size_bytes=max(max(s.call.size_bytes, s.call.received_bytes) for s in sides))
    return replace(call, size_bytes=_busiest(matrix), matrix_bytes=matrix)


def _matrix(sides: list[Side], members: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Bytes from each member to each, by the recorded parts; none if they do not have all pairs, or the group is too large.

    What a member sends to another one is in its own list, else in the list of what the other one receives.
    """
    size = len(members)
    by_rank = {side.rank: side.call for side in sides}
    if size > MAX_MATRIX:
        return ()
    sent = [_listed(by_rank.get(rank), "sent_splits", size) for rank in members]
    received = [_listed(by_rank.get(rank), "received_splits", size) for rank in members]
    rows = []
    for i in range(size):
        if not sent[i] and not all(received[j] for j in range(size) if j != i):
            return ()
        rows.append(sent[i] or tuple(received[j][i] if received[j] else 0 for j in range(size)))
    return tuple(rows)


def _assumed_matrix(sides: list[Side], members: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Bytes from each member to each, if each sends in the proportion of what others receive; none if one is unknown."""
    by_rank = {side.rank: side.call for side in sides}
    if len(members) > MAX_MATRIX or any(rank not in by_rank for rank in members):
        return ()
    calls = [by_rank[rank] for rank in members]
    totals = [call.received_bytes if call.received_bytes >= 0 else call.size_bytes for call in calls]
    total = sum(totals)
    if not total:
        return tuple((0,) * len(calls) for _ in calls)
    rows = []
    for call in calls:
        row, given = [], 0
        for upto in accumulate(totals):  # rounded so that every row has its sum
            share = call.size_bytes * upto // total
            row.append(share - given)
            given = share
        rows.append(tuple(row))
    return tuple(rows)


def _listed(call: RankCall | None, side: str, size: int) -> tuple[int, ...]:
    """The recorded parts of an all_to_all, one for each member; none if they are not recorded."""
    parts: tuple[int, ...] = getattr(call, side) if call is not None else ()
    return parts if len(parts) == size else ()


def _busiest(matrix: tuple[tuple[int, ...], ...]) -> int:
    """Message of an even all_to_all in which each of several ranks moves as much as the busiest one of the matrix [bytes]."""
    size = len(matrix)
    sent = [sum(row) - row[i] for i, row in enumerate(matrix)]
    received = [sum(column) - column[i] for i, column in enumerate(zip(*matrix, strict=True))]
    moved = max(*sent, *received)
    return -(-moved * size // (size - 1))


def skew_notes(matching: Matching) -> Iterator[str]:
    """A note on how long ranks waited for the last one in the recorded collectives.

    The clocks of the ranks are aligned by the ends of the collectives, which all ranks see at the same time.
    """
    timed = [
        [side for side in one.sides if side.call.end_s > side.call.start_s >= 0]
        for one in matching.matched
        if not one.call.is_transfer
    ]
    timed = [sides for sides in timed if len(sides) > 1]
    if not timed:
        return
    ahead_s = _clocks(timed)
    waited: list[float] = []
    last = Counter[int]()
    for sides in timed:
        starts = {side.rank: side.call.start_s - ahead_s[side.rank] for side in sides}
        latest = max(starts, key=lambda rank: starts[rank])
        last[latest] += 1
        waited.append(round(starts[latest] - min(starts.values()), 12))
    rank, n = last.most_common(1)[0]
    yield (
        f"skew between ranks: the first rank of a collective waited {format_seconds(median(waited))} for the last (median of "
        f"{len(timed):,}), {format_seconds(max(waited))} at most; rank {rank} was last in {n:,}"
    )


def _clocks(timed: Sequence[Sequence[Side]]) -> dict[int, float]:
    """How far the clock of each rank is ahead, by the median of the ends of the calls that it shares with a rank before [s].

    Ranks that no calls join, through others either, are each by themselves.

    Args: timed: calls of several ranks.
    """
    calls_of: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for i, sides in enumerate(timed):
        for side in sides:
            calls_of[side.rank].append((i, side.call.end_s))
    ahead_s: dict[int, float] = {}
    compared = [False] * len(timed)  # all ranks of such a call are known
    for first in calls_of:
        waiting = deque([] if first in ahead_s else [first])
        ahead_s.setdefault(first, 0.0)
        while waiting:
            rank = waiting.popleft()
            differences: dict[int, list[float]] = defaultdict(list)
            for i, end_s in calls_of[rank]:
                for side in () if compared[i] else timed[i]:
                    if side.rank not in ahead_s:
                        differences[side.rank].append(side.call.end_s - end_s)
                compared[i] = True
            for other, values in differences.items():
                ahead_s[other] = ahead_s[rank] + median(values)
                waiting.append(other)
    return ahead_s


def waited_s(matching: Matching, rank: int) -> float | None:
    """Time in which the collectives of a rank waited for the last of the recorded ranks; None if none has two durations [s].

    Args:
        matching: of the calls of a step.
        rank: that waited.
    """
    waited = []
    for one in matching.matched:
        took = {side.rank: side.call.measured_s for side in one.sides if side.call.measured_s}
        if not one.call.is_transfer and len(took) > 1 and rank in took:
            waited.append(took[rank] - min(took.values()))
    return sum(waited) if waited else None
