"""Which calls of several ranks are one, on small examples whose answer is counted by hand."""

from dataclasses import replace

import pytest
from tests.traces.test_drawn_matching import collective, said, traces_of

from opticcl.traces.matching import match_calls, waited_s
from opticcl.traces.merge import merged_workload
from opticcl.traces.notes import Omissions
from opticcl.traces.ranks import rank_model
from opticcl.traces.recording import RankCall


def send(src, dst, size=8, **more):
    """As the sender recorded it."""
    return RankCall("send", "send", size, ranks=(src, dst), **more)


def recv(src, dst, size=8, **more):
    """As the receiver recorded it."""
    return RankCall("recv", "recv", size, ranks=(src, dst), **more)


def job(calls, world, **more):
    """What new calls of each rank are together."""
    return merged_workload(traces_of([[replace(one) for one in mine] for mine in calls], **more), world)


def by_rank(calls, world):
    """Calls of each rank: sends of the sender, receives of the receiver."""
    return [[one for one in calls if one.ranks[one.collective == "recv"] == rank] for rank in range(world)]


def alone(read):
    """Calls without a counterpart."""
    return sum(int(note.split()[-2]) for note in said(read, "without a counterpart"))


# --- groups -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("calls", "found"),
    [
        # one name of two groups, two names of one group
        ([[collective(ranks=(0, 1))], [collective(ranks=(0, 1))], *[[collective(ranks=(2, 3))]] * 2], [8, 8]),
        (
            [
                [collective(size=8, group="a", ranks=(0, 1)), collective(size=9, group="b", ranks=(0, 1))],
                [collective(size=9, group="b", ranks=(0, 1)), collective(size=8, group="a", ranks=(0, 1))],
            ],
            [8, 9],
        ),
        # without a name the ranks decide, with one that is assumed to be a block of each rank the name
        ([[collective(group="")], [collective(group="", ranks=(0, 1))]], [8]),
        ([[], [collective(group_size=2)], [collective(group_size=2)]], [8]),
        # in the order of the lowest ranks, whatever they are
        (
            [
                [send(0, 1, 5), collective(size=6, ranks=(0, 1))],
                [
                    collective(size=7, group="x", ranks=(1, 2)),
                    recv(0, 1, 5),
                    collective(size=9, group="x", ranks=(1, 2)),
                    collective(size=6, ranks=(0, 1)),
                ],
                [collective(size=7, group="x", ranks=(1, 2)), collective(size=9, group="x", ranks=(1, 2))],
            ],
            [5, 7, 6, 9],
        ),
    ],
)
def test_calls_of_groups(calls, found):
    """Each has all its ranks, and nothing disagrees."""
    read = job(calls, len(calls))
    assert [call.size_bytes for call in read.calls] == found
    assert not said(read, "ranks 0 to") + said(read, "without a counterpart")


def test_a_named_group_whose_ranks_are_assumed():
    """Is one, though each rank takes it for a block of its own."""
    first, *_, last = traces_of([[collective(group_size=2)] for _ in range(4)])
    assert len(merged_workload([first, last], 4).calls) == 1


def test_the_notes_of_a_job():
    """Of calls that all agree no more than ranks and groups; of others what is left out, guessed or without its other side."""
    even = collective("all_to_all", 6, received_bytes=6, ranks=(0, 1))
    assert job([[collective(), even]] * 2, 2).notes == (
        "files: 2, ranks 0 to 1",
        "2 ranks (from --nodes)",
        "groups assumed: 1 of 2 calls of group 'g': taken to be all ranks",
    )
    large = collective("all_to_all", 6, received_bytes=9, ranks=(0, 1, 2))
    calls = [
        [send(0, 0, 5), large, collective(size=9, ranks=(0, 2))],
        [recv(0, 1, 7), collective(ranks=(0, 1))],
        [large, collective(ranks=(0, 1))],
    ]
    read = job(calls, 3)
    assert [(call.collective, call.size_bytes) for call in read.calls] == [
        ("send_recv", 7),
        ("all_to_all", 9),
        ("all_reduce", 8),
        ("all_reduce", 9),
    ]
    assert [note for note in read.notes if not note.startswith(("files", "3 ranks", "transfers", "groups"))] == [
        "without a counterpart in the trace of another rank: 1 send_recv",
        "without a counterpart in the trace of another rank: 1 all_to_all",
        "without a counterpart in the trace of another rank: 1 all_reduce",
        "left out: 1 send from a rank to itself, 5 bytes in all",
    ]


# --- transfers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "sent", "received", "number"),
    [
        # in a large group complete recordings are matched in order, those that begin late by number
        ((0, 1, 2), [0, 1, 2], [1, 2, 3], 3),
        ((0, 1, 2), [1, 2, 3], [2, 3, 4], 4),
        ((0, 1, 2), [2, 3, 4], [1, 2, 3], 4),
        ((0, 1, 2), [3, 1, 2], [1, 2, 3], 3),
        # in a group of two always by number, if the numbers that both span are the same ones
        ((0, 1), [0, 1, 2], [1, 2, 3], 4),
        ((0, 1), [1, 2, 3], [2, 1, 3], 3),
        ((0, 1), [1, 2, 4], [2, 3, 4], 3),
        ((0, 1), [1, 2, 3], [3, 4, 5], 5),
        ((0, 1), [1, 2], [3, 4], 4),
        ((0, 1), [1, 1, 2], [1, 1, 2], 3),
        ((0, 1), [-1, 3], [3, 4], 2),
        ((0, 1), [0, 3], [3, 4], 3),
        ((0, 1), [], [3, 4], 2),
    ],
)
def test_numbers_of_transfers_of_two_ranks(members, sent, received, number):
    """How many transfers sends and receives of these numbers are."""
    calls = [[send(0, 1, group="g", sequence=n) for n in sent], [recv(0, 1, group="g", sequence=n) for n in received]]
    read = job(calls, len(members), groups={"g": members})
    assert len(read.calls) == number
    assert alone(read) == 2 * number - len(sent) - len(received)


ANY = "-1"


@pytest.mark.parametrize(
    ("sent", "received", "found"),
    [
        # a receive from any rank, or of any tag
        ([send(0, 1)], [recv(-1, 1)], [(0, 1)]),
        ([send(0, 1)], [recv(-1, 1, 9)], [(0, 1), (-1, 1)]),
        ([send(0, 1)], [recv(-1, 2)], [(0, 1), (-1, 2)]),
        ([send(0, 1, tag="5")], [recv(0, 1, tag=ANY)], [(0, 1)]),
        ([send(0, 1, tag="5")], [recv(2, 1, tag=ANY)], [(0, 1), (2, 1)]),
        ([send(0, 1, tag="5")], [recv(-1, 1, tag=ANY)], [(0, 1)]),
        ([send(0, 1, tag="5")], [recv(-1, 1)], [(0, 1)]),
        ([send(0, 1)], [recv(-1, 1, tag="6")], [(0, 1)]),
        # a send to an unknown rank
        ([send(0, -1)], [recv(0, 1)], [(0, 1)]),
        ([send(0, -1)], [recv(2, 1)], [(0, -1), (2, 1)]),
        ([send(0, -1)], [recv(-1, 1)], [(0, -1), (-1, 1)]),
        ([send(0, -1)], [recv(0, 1, tag=ANY)], [(0, -1), (0, 1)]),
        # each has one other side: that of its own tag first, else the first that is free
        ([send(0, 1), send(0, 1)], [recv(-1, 1), recv(-1, 1), recv(-1, 1)], [(0, 1), (0, 1), (-1, 1)]),
        ([send(0, 1, tag="4"), send(0, 1, tag="5")], [recv(-1, 1, tag="5"), recv(-1, 1)], [(0, 1), (0, 1)]),
        ([send(0, 1), send(0, 1)], [recv(0, 1), recv(-1, 1)], [(0, 1), (0, 1)]),
    ],
)
def test_sides_whose_other_end_is_unknown(sent, received, found):
    """Join the first call of known ends that fits, whose ends they then have."""
    read = job(by_rank([*sent, *received], 3), 3)
    assert sorted(call.ranks for call in read.calls) == sorted(found)
    unknown = sum(-1 in ranks for ranks in found)
    assert alone(read) == 2 * len(found) - len(sent) - len(received) - unknown


def test_a_side_of_one_tag_joins_that_tag_first():
    """Though another one has come before; a call takes what the faster of its sides measured."""
    sent = [send(0, 1, tag=tag, measured_s=9) for tag in ("4", "5")]
    received = [recv(-1, 1, tag="5", measured_s=1), recv(-1, 1, measured_s=2)]
    read = job([sent, received], 2)
    assert [call.measured_s for call in read.calls] == [2, 1]


@pytest.mark.parametrize(
    ("calls", "found"),
    [
        # those of a counterpart with known ends, each once
        ([send(0, 1, options=((0, 1), (0, 2))), recv(0, 2)], [(0, 2)]),
        ([recv(1, 2, options=((1, 2), (0, 2))), send(0, 2)], [(0, 2)]),
        ([send(0, 1, options=((0, 1), (0, 2))), send(0, 1), recv(0, 1), recv(0, 2)], [(0, 1), (0, 2)]),
        ([send(0, 2, options=((0, 2), (0, 1))), send(0, 1), recv(0, 1), recv(0, 1)], [(0, 1), (0, 1)]),
        (
            [send(0, 1, options=((0, 1),)), send(0, 2, options=((0, 2), (0, 1))), recv(0, 1), recv(0, 1)],
            [(0, 1), (0, 1)],
        ),
        (
            [send(0, 1, options=((0, 1), (0, 2))), send(0, 1, options=((0, 1), (0, 2))), recv(0, 2), recv(0, 1)],
            [(0, 1), (0, 2)],
        ),
        (
            [recv(0, 2, options=((0, 2), (1, 2))), recv(0, 2, options=((0, 2), (1, 2))), send(0, 2), send(1, 2)],
            [(0, 2), (1, 2)],
        ),
        (
            [recv(2, 0, options=((2, 0), (1, 0))), send(2, 0), send(2, 0, options=((2, 0), (2, 1))), recv(2, 1)],
            [(2, 0), (2, 1)],
        ),
        # of the same size and tag
        ([send(0, 1, options=((0, 1), (0, 2))), recv(0, 2, 9)], [(0, 1), (0, 2)]),
        ([send(0, 1, options=((0, 1), (0, 2)), tag="1"), recv(0, 2, tag="2")], [(0, 1), (0, 2)]),
        # else those that another one may have too
        ([send(0, 1, options=((0, 1), (0, 2))), recv(1, 2, options=((1, 2), (0, 2)))], [(0, 2)]),
        ([send(0, 1, options=((0, 1), (0, 2))), recv(1, 2, 9, options=((1, 2), (0, 2)))], [(0, 1), (1, 2)]),
        ([send(0, 1, options=((0, 1), (0, 2))), send(0, 1, options=((0, 1), (0, 2)))], [(0, 1), (0, 1)]),
        (
            [
                send(0, 1, options=((0, 1), (0, 2))),
                recv(0, 1, options=((0, 1), (3, 1))),
                recv(0, 2, options=((0, 2), (1, 2))),
                send(3, 1, options=((3, 1), (3, 0))),
            ],
            [(0, 2), (3, 1)],
        ),
    ],
)
def test_ends_of_which_several_are_possible(calls, found):
    """Are chosen so that sends and receives have each other."""
    read = job(by_rank(calls, 4), 4)
    assert sorted(call.ranks for call in read.calls) == found


def test_ends_that_follow_from_each_other():
    """Rank 4 sends to 5, so that 3 sends to 6 and 2 to 7; 0 and 1 are left, which may send to 8 and 9 both."""
    may_be = [(8, 9), (7, 8, 9), (6, 7), (5, 6), (5, 0)]
    calls = [[send(0, 0, options=tuple((rank, to) for to in peers))] for rank, peers in enumerate(may_be)]
    for rank in range(5, 10):
        calls.append([recv(0, rank, options=tuple((src, rank) for src, to in enumerate(may_be) if rank in to))])
    for mine in calls:
        mine[0].ranks = mine[0].options[0]
    read = merged_workload(traces_of(calls), 10)
    pairs = sorted(call.ranks for call in read.calls)
    assert (len(pairs), pairs[2:], alone(read)) == (5, [(2, 7), (3, 6), (4, 5)], 0)


# --- all_to_alls and times --------------------------------------------------------------------------------------------


def test_parts_of_a_group_that_is_not_all_ranks():
    """Are in the order of its members; nothing is exchanged in equal parts of nothing."""
    about = {"received_bytes": 5, "ranks": (1, 2)}
    parts = [collective("all_to_all", sum(sent), sent_splits=sent, **about) for sent in ((1, 2), (3, 4))]
    (call,) = job([[], [parts[0]], [parts[1]]], 3).calls
    assert (call.matrix_bytes, call.size_bytes) == (((1, 2), (3, 4)), 6)
    (call,) = job([[collective("all_to_all", 0, received_bytes=0)]] * 2, 2).calls
    assert (call.matrix_bytes, call.size_bytes) == (((0, 0), (0, 0)), 0)


@pytest.mark.parametrize(("ranks", "large"), [(256, False), (257, True)])
def test_an_exchange_of_too_many_ranks(ranks, large):
    """Is said to be even if there are more than 256, not because some have no trace."""
    read = job([[collective("all_to_all", 6, received_bytes=9)]] * 2, ranks)
    assert bool(said(read, "all_to_all of more than 256 ranks: 1")) == large
    assert [call.size_bytes for call in read.calls] == [9]


def test_the_skew_on_clocks_of_which_one_was_late_once():
    """Rank 1 begins 3 s later each time; that a call ended there later does not move its clock, a call alone counts not."""
    ends = [(100, 100), (200, 210), (300, 300)]
    calls = [
        [collective(start_s=end - 10 + 3 * rank, end_s=end) for end in both]
        for rank, both in enumerate(zip(*ends, strict=True))
    ]
    calls[1][1].start_s = 193
    calls[0].append(collective("broadcast", start_s=400, end_s=450))
    (note,) = said(job(calls, 2), "skew")
    assert "waited 3 s for the last (median of 3), 3 s at most; rank 1 was last in 3" in note


@pytest.mark.parametrize(
    "groups", [[(0, 1), (2, 3), (0, 2), (1, 3)], [(1, 3), (0, 2), (2, 3), (0, 1)], [(0, 1), (2, 3)]]
)
def test_the_skew_of_ranks_in_several_groups(groups):
    """On clocks of which each is 100 s ahead of another one: rank 1 is 1 s late for rank 0, rank 3 always 2 s."""
    calls = [[], [], [], []]
    for number, ranks in enumerate(groups * 3):
        for rank in ranks:
            clock_s = 1000 + 100 * rank + 10 * number
            late_s = 2 if rank == 3 else int(rank == 1 and ranks == (0, 1))
            about = {"group": str(ranks), "ranks": ranks}
            calls[rank].append(collective(start_s=clock_s + late_s, end_s=clock_s + 5, **about))
    (note,) = said(job(calls, 4), "skew")
    assert f"waited 1.5 s for the last (median of {3 * len(groups)}), 2 s at most" in note


def test_what_a_rank_waited():
    """In collectives that several ranks measured, for the one that took least; not in transfers."""
    calls = [
        [collective(measured_s=5, ranks=(0, 1)), send(0, 1, measured_s=9), collective(measured_s=4, ranks=(0, 2))],
        [collective(measured_s=3, ranks=(0, 1)), recv(0, 1, measured_s=1)],
        [collective(measured_s=7, ranks=(2, 3)), collective(ranks=(0, 2))],
    ]
    traces = traces_of(calls)
    matching = match_calls(traces, calls, rank_model(traces, 4), Omissions())
    assert [waited_s(matching, rank) for rank in range(3)] == [2, 0, None]
