"""One model of ranks and process groups for all formats.

The number of ranks is, in this order: what the caller gives; what a file records as the world size; the ranks of a process
group, or of all groups together, without a gap from 0; the number of files. A rank that occurs is a lower bound and never the
number. Sources that contradict each other are refused.

The members of a group are recorded with the call, in the file or beside it; otherwise only its size is known, or nothing.
Then they are assumed, and the group and a note say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from opticcl.errors import WorkloadError
from opticcl.ir.call_table import exact_sum
from opticcl.ir.task_graph import CallTable, CollectiveCall, Omission, Workload, counted_calls
from opticcl.traces.call_rows import RankCallTable, kinds_of
from opticcl.traces.communicators import add_communicators
from opticcl.traces.notes import Omissions, notes_on
from opticcl.traces.recording import MAX_RANKS, GroupEnds, RankCall, RankTrace
from opticcl.units import MAX_MESSAGE_BYTES, counted

__all__ = ["ASSUMED", "GIVEN", "RankCount", "RankModel", "notes_of", "rank_count", "rank_model", "workload_from"]

ASSUMED = "assumed"

GIVEN = "the given number"
"""Source of a number of ranks that the caller gives."""


class RankCount(NamedTuple):
    """A number of ranks.

    Args:
        value: 0 if unknown [count].
        source: where it comes from.
        at_least: lower bound by the ranks that occur [count].
    """

    value: int
    source: str
    at_least: int


def rank_count(traces: Sequence[RankTrace], given: int) -> RankCount:
    """The number of ranks of a job.

    Args:
        traces: of some or all of its ranks.
        given: by the caller; 0: as recorded [count].
    Raises: WorkloadError: two sources contradict each other.
    """
    highest, why = max((pair for trace in traces for pair in _occurring(trace)), key=lambda pair: pair[0])
    recorded = [RankCount(t.world_size, f"{t.world_source} of {t.file}", highest + 1) for t in traces if t.world_size]
    largest = _largest_group(traces)
    name = traces[0].name
    for one in recorded[1:]:
        if one.value != recorded[0].value:
            raise _contradiction(name, recorded[0], f"{one.source} is {one.value:,}")
    candidates = [
        *([RankCount(given, GIVEN, highest + 1)] if given else []),
        *recorded[:1],
        *([RankCount(*largest, highest + 1)] if largest[0] > highest else []),  # then it has all ranks from 0
    ]
    present = {trace.rank for trace in traces}
    if len(traces) > 1 and highest < len(traces) and present == set(range(len(traces))):
        candidates.append(RankCount(len(traces), "the number of files", highest + 1))
    if not candidates:
        return RankCount(0, "", highest + 1)
    chosen = candidates[0]
    if chosen.value > MAX_RANKS:
        raise WorkloadError(f"{name}: {chosen.source} is {chosen.value:,} ranks, more than {MAX_RANKS:,}")
    if highest >= chosen.value:
        raise _contradiction(name, chosen, f"{why}; give {highest + 1:,} or more")
    if given and recorded and recorded[0].value != given:
        raise _contradiction(name, chosen, f"{recorded[0].source} is {recorded[0].value:,}")
    return chosen


def _occurring(trace: RankTrace) -> Iterator[tuple[int, str]]:
    """Ranks that occur in a trace, of its calls the highest, with a description for messages; -1 for an unknown one."""
    yield trace.rank, f"the trace is of rank {trace.rank}"
    for name, ranks in trace.groups.items():
        yield max(ranks), f"group {name!r} has rank {max(ranks)}"
    call = max(kinds_of(trace.calls), key=_highest, default=None)
    if call is not None and call.ranks:
        kind = call.collective if call.is_transfer else "group"
        yield _highest(call), f"a {kind} of {call.name!r} has rank {_highest(call)}"
    elif call is not None:
        yield _highest(call), f"{call.group_rule or f'a group of {call.name!r}'} has {call.group_size:,} ranks"


def _highest(call: RankCall) -> int:
    """The highest rank that a call names, or that its group has at least; -1 if it says nothing."""
    return max(call.ranks) if call.ranks else call.group_size - 1


def _contradiction(name: str, count: RankCount, other: str) -> WorkloadError:
    return WorkloadError(f"{name}: {count.source} is {counted(count.value, 'rank')}, but {other}")


def _largest_group(traces: Sequence[RankTrace]) -> tuple[int, str]:
    """Size and source of the largest group, or of the ranks of all groups of a trace together; 0 if there is none."""
    best = 0, ""
    for trace in traces:
        found = [(len({*ranks}), f"process group {name!r} of {trace.file}") for name, ranks in trace.groups.items()]
        together = {rank for ranks in trace.groups.values() for rank in ranks}
        found.append((len(together), f"the groups in {trace.groups_source}"))
        distinct = dict.fromkeys((call.group, call.ranks) for call in kinds_of(trace.calls) if not call.is_transfer)
        for group, ranks in distinct:
            found.append((len({*ranks}), f"process group {group!r} of {trace.file}" if group else "the largest group"))
        if trace.whole_job:
            highest = max((max(call.ranks) for call in kinds_of(trace.calls) if call.ranks), default=-1)
            found.append((highest + 1, "the ranks that occur"))
        best = max([best, *found], key=lambda one: one[0])  # of equal sizes the first
    return best


def _is_complete(ranks: Sequence[int] | set[int]) -> bool:
    """Whether ranks, none of which is negative, are all from 0 to the highest."""
    return max(ranks) == len(set(ranks)) - 1


class Members(NamedTuple):
    """Members of a process group.

    Args:
        ranks: in order; a range if all ranks or a block of them.
        source: where they come from; `ASSUMED` begins it if they are assumed.
    """

    ranks: range | tuple[int, ...]
    source: str


def _callers(traces: Sequence[RankTrace]) -> dict[str, tuple[int, ...]]:
    """Ranks that call each named group, of those that some of several traces call and others do not."""
    found: dict[str, set[int]] = {}
    for trace in traces if len(traces) > 1 else ():
        for call in kinds_of(trace.calls):
            if call.group and not call.is_transfer:
                found.setdefault(call.group, set()).add(trace.rank)
    return {name: tuple(sorted(ranks)) for name, ranks in found.items() if 1 < len(ranks) < len(traces)}


class RankModel:
    """Ranks and groups of a job.

    Args:
        count: number of ranks.
        traces: of some or all of its ranks.
    """

    def __init__(self, count: RankCount, traces: Sequence[RankTrace]) -> None:
        self.count = count
        self._groups: dict[str, Members] = {}
        for trace in traces:
            for name, ranks in trace.groups.items():
                self._groups.setdefault(name, Members(ranks, trace.groups_source))
        self._callers = _callers(traces)

    def members(self, trace: RankTrace, call: RankCall) -> Members:
        """The members of the group of a call; no ranks if neither they nor the number of all ranks are known."""
        if call.ranks:
            return Members(call.ranks, "recorded")
        if call.group in self._groups:
            return self._groups[call.group]
        everyone, size, stride = self.count.value, call.group_size, call.group_stride
        callers = self._callers.get(call.group, ())
        if callers and size in (0, len(callers)) and not call.group_rule:
            return Members(callers, f"{ASSUMED}: the ranks whose traces call it")
        if call.group_rule:
            first = max(trace.rank, 0)
            if not size:
                return Members(range(first % stride, everyone, stride), call.group_rule)
            first = first // (size * stride) * size * stride + first % stride
            return Members(range(first, first + size * stride, stride), call.group_rule)
        if size and size == everyone:
            return Members(range(everyone), "recorded group size")
        if size:
            first = max(trace.rank, 0) // size * size
            if everyone and first + size > everyone:
                first = 0
            return Members(range(first, first + size), f"{ASSUMED}: a block of the recorded group size")
        return Members(range(everyone), f"{ASSUMED}: all ranks")

    def resolve(self, trace: RankTrace, call: RankCall, omissions: Omissions) -> CollectiveCall | None:
        """The call of the whole group; None if it is left out.

        Args:
            trace: that it is from.
            call: as one rank recorded it. The message of an uneven all_to_all is that of an even one in which the rank moves
                the larger of what it sends to others and receives from them.
            omissions: counts what is left out.
        Raises: WorkloadError: the shares of all ranks are more than a message can have.
        """
        if call.is_transfer:
            if call.ranks[0] == call.ranks[1] >= 0:
                omissions.add(f"{call.collective} from a rank to itself", call.size_bytes)
                return None
            return CollectiveCall(
                call.name, "send_recv", call.size_bytes, call.group, call.measured_s, call.ranks, "recorded"
            )
        ranks, source = self.members(trace, call)
        if len(ranks) == 1:
            omissions.add(f"{call.collective} in a group of one rank", call.size_bytes)
            return None
        size = _exchanged(call, ranks, trace.rank)
        if call.counts == "share":
            if not ranks:
                omissions.add(
                    f"{call.collective} of a share, where the number of ranks is not recorded", size, missing=True
                )
                return None
            if size * len(ranks) > MAX_MESSAGE_BYTES:
                raise _too_large(trace, call, len(ranks))
            size *= len(ranks)
        known = () if ranks == range(self.count.value) else tuple(ranks)
        return CollectiveCall(call.name, call.collective, size, call.group, call.measured_s, known, source)

    def notes(self, calls: Sequence[CollectiveCall]) -> Iterator[str]:
        """Where the number of ranks and the groups come from."""
        if self.count.value:
            source = "--nodes" if self.count.source == GIVEN else self.count.source
            yield f"{counted(self.count.value, 'rank')} (from {source})"
        elif self.count.at_least:
            yield f"ranks: the number is not recorded, at least {self.count.at_least:,}"
        for source, (number, found) in _by_source(calls).items():
            if source.startswith(ASSUMED):
                groups = ", ".join(sorted({repr(name) for name in found if name})[:8])
                named = f" of group {groups}" if groups else " without a group"
                what = source.removeprefix(f"{ASSUMED}: ")
                yield f"groups assumed: {number:,} of {len(calls):,} calls{named}: taken to be {what}"


def _exchanged(call: RankCall, ranks: Sequence[int], rank: int) -> int:
    """Bytes of a message; of an uneven all_to_all those of an even one that is not smaller for a rank.

    Args:
        call: as the rank recorded it.
        ranks: of its group.
        rank: that recorded it; -1 if unknown.
    """
    sizes = []
    for parts, size in ((call.sent_splits, call.size_bytes), (call.received_splits, call.received_bytes)):
        if 1 < len(parts) == len(ranks) and rank in ranks:
            moved = sum(parts) - parts[ranks.index(rank)]
            size = -(-moved * len(parts) // (len(parts) - 1))
        sizes.append(size)
    return max(sizes)


def _by_source(calls: Sequence[CollectiveCall]) -> Mapping[str, tuple[int, set[str]]]:
    """Number of calls and names of groups by where the members come from."""
    found: dict[str, tuple[int, set[str]]] = {}
    for call, number, _ in counted_calls(calls):
        known, names = found.setdefault(call.group_source, (0, set()))
        names.add(call.group)
        found[call.group_source] = known + number, names
    return found


def _check_groups(trace: RankTrace) -> None:
    """Check each recorded group once.

    Raises: WorkloadError: its size is not the number of its ranks.
    """
    seen: set[tuple[int, int]] = set()
    for call in kinds_of(trace.calls):
        if call.is_transfer or not call.ranks or (id(call.ranks), call.group_size) in seen:
            continue
        seen.add((id(call.ranks), call.group_size))
        if call.group_size not in (0, len(call.ranks)):
            raise WorkloadError(
                f"{trace.file}: the group of {call.name!r} has the size {call.group_size:,}, but {len(call.ranks):,} ranks"
            )


def _place_ends(trace: RankTrace) -> None:
    """Give every transfer of a trace its ends as ranks of the job: the trace's own rank, and members of the group."""
    assumed = 0
    for call in () if isinstance(trace.calls, RankCallTable) else trace.calls:
        if not call.is_transfer:
            continue
        if call.ends is not None:
            call.ranks, call.options = _placed(trace, call, call.ends)
            call.ends = None
            assumed += bool(call.options)
        mine = call.collective == "recv"  # the place of this rank among both ends
        if trace.rank >= 0 and len(call.ranks) == 2 and call.ranks[mine] < 0:
            call.ranks = (call.ranks[0], trace.rank) if mine else (trace.rank, call.ranks[1])
    if assumed:
        trace.after.append(
            f"ends of {counted(assumed, 'transfer')} count within a group that is not recorded, taken to be all ranks unless "
            "the trace of the other rank contradicts"
        )


Ends = tuple[int, int]


def _placed(trace: RankTrace, call: RankCall, ends: GroupEnds) -> tuple[Ends, tuple[Ends, ...]]:
    """Sender and receiver of a transfer, and all that they may be if several groups fit and none is recorded.

    A group fits if it has both numbers, the rank of the trace is at its own one, and not at both.
    """
    known = ends.members or trace.groups.get(call.group, ())
    receives = call.collective == "recv"
    own = ends.receiver if receives else ends.sender
    fitting: dict[Ends, bool] = {}  # ends -> whether the group is that of all ranks
    for members in [known] if known else dict.fromkeys(trace.groups.values()):
        at_own = trace.rank in members if own < 0 else own < len(members) and members[own] == trace.rank
        if max(ends.sender, ends.receiver) < len(members) and (known or trace.rank < 0 or at_own):
            src = members[ends.sender] if ends.sender >= 0 else -1 if receives else trace.rank
            dst = members[ends.receiver] if ends.receiver >= 0 else trace.rank if receives else -1
            if known or src != dst or src < 0:
                fitting[src, dst] = fitting.get((src, dst), False) or _is_complete(members)
    if len(fitting) == 1:
        return next(iter(fitting)), ()
    if known:
        return (-1, -1), ()
    options = (*sorted(fitting, key=lambda one: not fitting[one]), (ends.sender, ends.receiver))
    return options[0], options[: max(1, len(fitting))]


def rank_model(traces: Sequence[RankTrace], given: int = 0) -> RankModel:
    """Ranks and groups of a job. The ends of transfers become ranks of the job.

    Args:
        traces: of some or all of its ranks.
        given: number of ranks by the caller; 0: as recorded [count].
    Raises: WorkloadError: two sources contradict each other.
    """
    add_communicators(traces, given)
    for trace in traces:
        _place_ends(trace)
        _check_groups(trace)
    return RankModel(rank_count(traces, given), traces)


def notes_of(trace: RankTrace, model: RankModel, calls: Sequence[CollectiveCall]) -> Iterator[str]:
    """Notes on a trace and its resolved calls.

    Args:
        trace: as its reader returned it.
        model: ranks and groups.
        calls: resolved from those of the trace.
    """
    yield from trace.before
    yield from notes_on(calls, model.count.value)
    yield from model.notes(calls)
    if uneven := sum(call.collective == "all_to_all" and call.is_uneven for call in kinds_of(trace.calls)):
        yield f"uneven all_to_all: {uneven:,}, each taken as the larger of what the rank sends to others and receives from them"
    yield from _foreign_groups(trace)
    yield from trace.after


def _foreign_groups(trace: RankTrace) -> Iterator[str]:
    """A note on calls in groups that do not have the rank of the trace."""
    known: dict[int, bool] = {}  # by identity: equal lists of a trace are mostly one object
    foreign: list[RankCall] = []
    for call in kinds_of(trace.calls) if trace.rank >= 0 else ():
        if call.ranks and not call.is_transfer:
            if id(call.ranks) not in known:
                known[id(call.ranks)] = trace.rank in call.ranks
            foreign += [] if known[id(call.ranks)] else [call]
    if foreign:
        ranks = foreign[0].ranks
        shown = ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")
        yield (
            f"the trace is of rank {trace.rank}, but {counted(len(foreign), 'call')} of groups without it, such as "
            f"{foreign[0].name!r} of ranks {shown}"
        )


def workload_from(trace: RankTrace, given: int = 0) -> Workload:
    """The calls of one file.

    Args:
        trace: as its reader returned it.
        given: number of ranks by the caller; 0: as recorded [count].
    Raises: WorkloadError: two sources contradict each other.
    """
    model = rank_model([trace], given)
    omissions = Omissions()
    omissions.add_all(trace.omissions)
    calls: Sequence[CollectiveCall]
    if isinstance(trace.calls, RankCallTable):
        calls = _resolved(trace, trace.calls, model, omissions)
    else:
        calls = tuple(call for one in trace.calls if (call := model.resolve(trace, one, omissions)))
    notes = [*notes_of(trace, model, calls), *omissions.notes()]
    return Workload(
        trace.name,
        trace.source,
        calls,
        tuple(notes),
        model.count.value,
        trace.compute_s,
        model.count.source,
        omissions.records(),
    )


def _resolved(trace: RankTrace, table: RankCallTable, model: RankModel, omissions: Omissions) -> CallTable:
    """The calls of a table: each kind is resolved once, and transfers from a rank to itself are left out."""
    columns, kind = table.columns, table.columns.kind
    one = CollectiveCall("", "send_recv", 0, ranks=(0, 1), group_source="recorded")
    kinds: list[CollectiveCall] = []
    factor = np.ones(len(table.kinds), np.int64)  # shares in a message
    lost: dict[int, Omission] = {}  # kind that is left out -> why
    for number, known in enumerate(table.kinds):
        seen = Omissions()
        found = one if known.is_transfer else model.resolve(trace, known, seen)
        if found is None:
            lost[number] = seen.records()[0]
        elif known.counts == "share":
            factor[number] = len(model.members(trace, known).ranks)
        kinds.append(found or one)
    dropped = np.array([number in lost for number in range(len(kinds))], bool)
    left_out = (columns.src >= 0) & (columns.src == columns.dst)
    if lost:
        left_out |= dropped[kind]
    rows = np.flatnonzero(left_out)
    rows = rows[np.argsort(kind[rows], kind="stable")]
    numbers, starts = np.unique(kind[rows], return_index=True)
    for number, part in zip(numbers.tolist(), np.split(rows, starts[1:]), strict=len(rows) > 0):
        why = lost.get(number, Omission(f"{table.kinds[number].collective} from a rank to itself", 1))
        omissions.add(why.what, exact_sum(columns.size_bytes[part]), calls=len(part), missing=why.missing)
    if len(rows):
        columns = columns.take(~left_out)
    if (factor > 1).any():
        times = factor[columns.kind]
        if len(large := np.flatnonzero(columns.size_bytes > int(MAX_MESSAGE_BYTES) // times)):
            at = int(large[0])
            raise _too_large(
                trace, next(iter(RankCallTable(table.kinds, columns.take(large[:1]), table.name_of))), times[at]
            )
        columns = replace(columns, size_bytes=columns.size_bytes * times)
    return CallTable(kinds, columns, table.name_of, table.groups)


def _too_large(trace: RankTrace, call: RankCall, num_ranks: int) -> WorkloadError:
    return WorkloadError(
        f"{trace.name}: the {call.collective} {call.name!r} of {call.size_bytes:,} bytes a rank, {num_ranks:,} ranks, is more "
        "than 2**60 bytes"
    )
