"""Communicators of NCCL: a file records the number of its own rank in each, several files together their members.

The largest communicator is taken to be the whole job if the number of every rank in it is its rank in the job. The members of
another one are known if there is a file of each. Where the size of a communicator is not recorded, as in a recording that began
after it was made, its members are taken to be the ranks that call it, of several files, in their order.

The bytes of a call are those of NCCL's arguments: the whole message of an all_reduce, a broadcast or a reduce, else the share
of a rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opticcl.collective import COLLECTIVES
from opticcl.reading import printable
from opticcl.traces.call_rows import RankCallTable
from opticcl.traces.recording import Counts, GroupPlace, RankCall, RankTrace

__all__ = ["add_communicators", "nccl_call", "number_in_largest", "sequence_of"]

SOURCE = "the numbers of the ranks in it"
LATE = "communicators whose size is not recorded: members are taken to be the ranks that call them, in order"
_SHARES = ("all_gather", "gather", "reduce_scatter", "scatter", "all_to_all")


def nccl_call(name: str, collective: str, size_bytes: int, group: str = "") -> RankCall:
    """A call as NCCL records it.

    Args:
        name: in the trace.
        collective: canonical name, or "send" or "recv".
        size_bytes: count times type of NCCL's arguments [bytes].
        group: name of the communicator; empty if not recorded.
    """
    counts: Counts = "share" if collective in _SHARES else "message"
    return RankCall(printable(name[:80]), collective, size_bytes, counts, printable(group[:80]))


def sequence_of(number: int, collective: str) -> int:
    """A number in the sequence of a communicator, of which NCCL counts each function by itself; -1 for a number below 0."""
    return number * len(COLLECTIVES) + COLLECTIVES.index(collective) if number >= 0 else -1


def number_in_largest(places: Mapping[str, GroupPlace | None]) -> int:
    """The number of a rank in its largest communicator, which is its rank in the job; -1 if two of that size differ.

    >>> number_in_largest({"a": GroupPlace(5, 8), "b": GroupPlace(1, 4)})
    5
    """
    known = [place for place in places.values() if place is not None]
    largest = max((place.size for place in known), default=0)
    numbers = {place.number for place in known if place.size == largest}
    return numbers.pop() if len(numbers) == 1 else -1


def add_communicators(traces: Sequence[RankTrace], given: int) -> None:
    """Give traces the members of their communicators; ends of transfers in those that stay unknown become unknown.

    Args:
        traces: of some or all ranks of a job; those without communicators stay as they are.
        given: number of ranks by the caller; 0: as recorded [count].
    """
    places: dict[str, dict[int, GroupPlace | None]] = {}  # name -> rank -> place
    for trace in traces:
        for name, place in trace.places.items():
            places.setdefault(name, {})[trace.rank] = place
    if not places:
        return
    known = {name: members for name, of_ranks in places.items() if (members := _members(of_ranks))}
    late = {name: _callers(of_ranks) for name, of_ranks in places.items() if name not in known}
    if world := _world(places, [trace.rank for trace in traces], given):
        size = max(place.size for place in places[world].values() if place)
        known[world] = tuple(range(size))
        for trace in traces:
            trace.world_size, trace.world_source = size, "the largest communicator"
    for trace in traces:
        mine = {name: ranks for name in trace.places if (ranks := known.get(name) or late.get(name))}
        trace.groups = {**trace.groups, **mine}
        trace.groups_source = SOURCE
        if any(late.get(name) for name in trace.places) and LATE not in trace.after:
            trace.after.append(LATE)
        for call in _calls(trace):
            if call.ends is not None and call.group in trace.places and call.group not in mine:
                call.ends, call.ranks = None, (-1, -1)


def _calls(trace: RankTrace) -> Sequence[RankCall]:
    return () if isinstance(trace.calls, RankCallTable) else trace.calls


def _members(of_ranks: Mapping[int, GroupPlace | None]) -> tuple[int, ...]:
    """The members of a communicator in their order; none if one of them has no file."""
    by_number = {place.number: rank for rank, place in of_ranks.items() if place is not None}
    sizes = {place.size for place in of_ranks.values() if place is not None}
    complete = len(by_number) == len(of_ranks) and sizes == {len(by_number)} and min(of_ranks) >= 0
    return (
        tuple(by_number[number] for number in range(len(by_number))) if complete else ()
    )  # each number is below the size


def _callers(of_ranks: Mapping[int, GroupPlace | None]) -> tuple[int, ...]:
    """The ranks that call a communicator of unknown size; none of one file, or if their numbers say that some are missing."""
    if len(of_ranks) < 2 or any(place is not None and place.size for place in of_ranks.values()):
        return ()
    numbers = {place.number: rank for rank, place in of_ranks.items() if place is not None}
    if numbers and sorted(numbers) != list(range(len(of_ranks))):
        return ()
    return tuple(numbers[number] for number in sorted(numbers)) if numbers else tuple(sorted(of_ranks))


def _world(places: Mapping[str, Mapping[int, GroupPlace | None]], ranks: Sequence[int], given: int) -> str:
    """The communicator of all ranks; empty if there is none."""
    sizes = {
        name: max((place.size for place in of_name.values() if place), default=0) for name, of_name in places.items()
    }
    largest = max(sizes.values())
    if given not in (0, largest) or not all(0 <= rank < largest for rank in ranks):
        return ""
    for name, of_ranks in places.items():
        numbers = [(rank, place.number) for rank, place in of_ranks.items() if place is not None]
        if sizes[name] == largest and all(rank == number for rank, number in numbers):
            return name
    return ""
