"""Communicators: who their members are, by the numbers that each rank records of itself."""

import pytest

from opticcl.collective import COLLECTIVES
from opticcl.traces.communicators import add_communicators, number_in_largest, sequence_of
from opticcl.traces.recording import GroupEnds, GroupPlace, RankCall, RankTrace


def traces_of(places, *calls):
    """Traces of ranks with places (number, size) in communicators, each with copies of the calls."""
    found = []
    for rank, mine in places.items():
        copied = [RankCall(one.name, one.collective, 8, group=one.group, ends=one.ends) for one in calls]
        found.append(RankTrace("job", "log", f"{rank}.log", copied, rank=rank))
        found[-1].places = {name: place and GroupPlace(*place) for name, place in mine.items()}
    return found


@pytest.mark.parametrize(
    ("places", "given", "groups", "world"),
    [
        ({0: {"a": (0, 2)}, 1: {"a": (1, 2)}}, 0, {"a": (0, 1)}, 2),
        ({0: {"a": (1, 2)}, 1: {"a": (0, 2)}}, 0, {"a": (1, 0)}, 0),
        ({0: {"a": (1, 2)}}, 0, {}, 0),
        ({0: {"a": (0, 4)}}, 0, {"a": (0, 1, 2, 3)}, 4),
        ({0: {"a": (0, 4)}}, 4, {"a": (0, 1, 2, 3)}, 4),
        ({0: {"a": (0, 4)}}, 8, {}, 0),
        ({0: {"a": (0, 4), "b": (0, 2)}, 2: {"a": (2, 4), "b": (1, 2)}}, 0, {"a": (0, 1, 2, 3), "b": (0, 2)}, 4),
        ({0: {"a": (0, 1)}, 1: {"a": None}}, 0, {}, 0),
        ({-1: {"a": (0, 1)}}, 0, {}, 0),
        ({-1: {"a": (0, 2)}, 0: {"a": (1, 2)}}, 0, {}, 0),
        ({0: {"a": (1, 0)}, 1: {"a": (0, 0)}}, 0, {"a": (1, 0)}, 0),
        ({3: {"a": (0, 0)}, 5: {"a": (2, 0)}}, 0, {}, 0),
        ({3: {"a": None}, 5: {"a": None}}, 0, {"a": (3, 5)}, 0),
        ({0: {"a": None}}, 0, {}, 0),
        ({0: {}}, 0, {}, 0),
    ],
)
def test_members_of_communicators(places, given, groups, world):
    """Of all ranks if each has its own number in it, of those that have files, or that call one of unknown size."""
    traces = traces_of(places)
    add_communicators(traces, given)
    assert [(trace.groups, trace.world_size) for trace in traces] == [(groups, world)] * len(places)


def test_ends_of_transfers_and_notes():
    """Ends within a communicator whose members stay unknown are unknown; asked twice, there is one note."""
    ends = {"a": GroupEnds(0, 1), "b": GroupEnds(1, 0), "": GroupEnds(2, 3)}
    calls = [
        *(RankCall("c", "send", 8, group=name, ends=pair) for name, pair in ends.items()),
        RankCall("c", "barrier", 0),
    ]
    traces = traces_of({0: {"a": (0, 0), "b": (1, 2)}, 1: {"a": (1, 0), "b": (1, 3)}}, *calls)
    for _ in range(2):
        add_communicators(traces, 0)
    for trace in traces:
        assert [(call.ends, call.ranks) for call in trace.calls] == [
            (ends["a"], ()),
            (None, (-1, -1)),
            (ends[""], ()),
            (None, ()),
        ]
        assert trace.after == [
            "communicators whose size is not recorded: members are taken to be the ranks that call them, in order"
        ]


@pytest.mark.parametrize(
    ("places", "number"),
    [
        ({}, -1),
        ({"a": None}, -1),
        ({"a": (5, 8), "b": (1, 4), "c": None}, 5),
        ({"a": (5, 8), "b": (5, 8)}, 5),
        ({"a": (5, 8), "b": (1, 8)}, -1),
        ({"a": (3, 0)}, 3),
    ],
)
def test_the_number_in_the_largest_communicator(places, number):
    """Unless two of that size differ."""
    assert number_in_largest({name: place and GroupPlace(*place) for name, place in places.items()}) == number


def test_numbers_of_calls_are_apart():
    """Of every function; one that is not recorded has none."""
    found = [sequence_of(number, name) for number in range(3) for name in COLLECTIVES]
    assert len(set(found)) == len(found)
    assert min(found) >= 0
    assert sequence_of(-1, "all_reduce") == -1
