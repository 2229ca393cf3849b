"""Kernels of list scheduling: one round at a time, with times that are computed by hand."""

from math import inf
from types import SimpleNamespace

import numpy as np
import pytest
from tests.interpreted import interpreted

from opticcl.ir import Op
from opticcl.simulate import _list_kernels as kernels


@pytest.fixture(autouse=True)
def _plainly():
    with interpreted(kernels):
        yield


def circuit(transfer=0, latency=0.0, duration=1.0, charged=0.0, exchanged=False, units=(), uses=()):
    """A circuit; uses are (first member, members of the pool, setting, offset, setting time)."""
    return SimpleNamespace(**locals())


def place(items, transfers=((0.0, -1, -inf),), members=(), units=3, **options):
    """Place items of a round.

    Args:
        items: lists of circuits.
        transfers: (when its data is there, who brought it, when it must not arrive before) of each.
        members: (setting, set since, dark since) of each device.
        units: number of them.
        options: other arguments of the kernel.
    """
    all_of = [one for item in items for one in item]
    uses = [use for one in all_of for use in one.uses]
    first, pool, setting, offset, time = np.array(uses, float).reshape(-1, 5).T
    there_s, there_by, no_sooner_s = np.array(transfers).T
    held, set_s, dark_s = np.array(members, float).reshape(-1, 3).T
    n = len(all_of)
    given = {
        "item_at": np.cumsum([0, *map(len, items)]),
        "circuit_transfer": np.array([one.transfer for one in all_of]),
        **{f"{name}_s": np.array([getattr(one, name) for one in all_of]) for name in ("latency", "duration", "charged")},
        "on_change": False, "exchanged": np.array([one.exchanged for one in all_of]), "control_s": 0.0,
        "units_at": np.cumsum([0, *(len(one.units) for one in all_of)]),
        "units": np.array([unit for one in all_of for unit in one.units], int),
        "uses_at": np.cumsum([0, *(len(one.uses) for one in all_of)]),
        "use_first": first.astype(int), "use_pool": pool.astype(int), "use_setting": setting.astype(int),
        "use_offset_s": offset, "use_time_s": time,
        "unit_s": np.zeros(units), "unit_from_s": np.zeros(units), "unit_by": np.full(units, -1),
        "setting": held.astype(int), "set_s": set_s, "dark_s": dark_s,
        "there_s": there_s, "there_by": there_by.astype(int), "no_sooner_s": no_sooner_s, "first_flow": 10,
        "slot_s": 0.0, "warm": False, "at_arrival": True, "early": True, "beside": False, "shared_buffers": True,
        "released_s": np.zeros(n), "released_by": np.zeros(n, int), "control_from_s": np.zeros(n), "start_s": np.zeros(n),
        "changes": np.zeros((2, len(uses)), int), "changes_s": np.zeros((2, len(uses))),
        "taken": np.zeros(len(uses), int), "marked": np.zeros(len(members), int), "marks": 1,
        **options,
    }  # fmt: skip
    changes = range(kernels.place_items(**given))
    (member, setting), (begin, done) = given["changes"], given["changes_s"]
    return SimpleNamespace(**{**given, "changes": [(member[i], begin[i], done[i], setting[i]) for i in changes]})


# --- what an item waits for -------------------------------------------------------------------------------------------


def test_an_item_waits_for_the_last_of_its_data():
    """The first of those that come last released it; an idle circuit waits for no data."""
    transfers = [(3.0, 7, -inf), (5.0, 8, -inf), (5.0, 9, -inf), (4.0, 6, -inf), (99.0, 99, -inf)]
    together = [circuit(transfer=t) for t in (0, 1, 2, 3, -1)]
    found = place([together, [circuit(transfer=-1)]], transfers)
    assert found.start_s.tolist() == [5.0] * 5 + [0.0]
    assert found.released_by.tolist() == [8] * 5 + [-1]


def test_an_item_waits_for_the_last_of_its_units():
    """Data that is there as early as a unit is free counts; an idle circuit that frees one passes on why it started itself."""
    state = {
        "unit_s": np.array([3.0, 6.0, 6.0]),
        "unit_from_s": np.array([3.0, 2.0, 1.0]),
        "unit_by": np.array([4, 5, 6]),
    }
    found = place([[circuit(units=(0, 1, 2))]], **state)
    assert (found.start_s[0], found.released_s[0], found.released_by[0]) == (6.0, 2.0, 5)
    found = place([[circuit(units=(0,))]], [(3.0, 8, -inf)], unit_s=np.array([3.0]), unit_from_s=np.array([3.0]))
    assert (found.start_s[0], found.released_by[0]) == (3.0, 8)


@pytest.mark.parametrize(("at_arrival", "free_s"), [(True, 3.0), (False, 2.0)])
def test_units_are_free_once_data_has_arrived_or_left(at_arrival, free_s):
    """An idle circuit frees them when its light ends; what another one of the round freed later stays."""
    light = {"duration": 2.0, "latency": 1.0}
    circuits = [circuit(0, units=(0,), **light), circuit(-1, units=(1,), **light)]
    circuits += [circuit(0, units=(0, 2)), circuit(1, units=(2,))]
    found = place([circuits], [(0.0, -1, -inf)] * 2, at_arrival=at_arrival)
    assert found.unit_s.tolist() == [free_s, 2.0, 1.0]
    assert found.unit_from_s.tolist() == [free_s, 0.0, 1.0]
    assert found.unit_by.tolist() == [10, -1, 10]


@pytest.mark.parametrize(("shared", "start"), [(True, 4.5), (False, 0.0)])
def test_data_does_not_arrive_before_the_buffer_is_free(shared, start):
    """Its last bit arrives latency and duration behind its start; an idle circuit brings nothing."""
    transfers = [(0.0, -1, 7.0), (0.0, -1, 50.0)]
    found = place([[circuit(0, latency=0.5, duration=2.0), circuit(-1)]], transfers, shared_buffers=shared)
    assert found.start_s.tolist() == [start] * 2


@pytest.mark.parametrize(("setting", "charged"), [(3, 0.0), (4, 5.0)])
def test_a_change_is_charged_where_a_device_has_another_setting(setting, charged):
    """To all circuits of the item; where every step is charged, whether it changes or not."""
    items = [[circuit(charged=5.0, uses=((0, 1, 3, 0.0, 5.0),)), circuit(charged=5.0)]]
    found = place(items, members=[(setting, 0.0, 0.0)], on_change=True)
    assert found.start_s.tolist() == [charged] * 2
    assert found.charged_s.tolist() == [charged] * 2
    always = place(items, members=[(3, 0.0, 0.0)])
    assert always.start_s.tolist() == [5.0] * 2


def test_a_member_that_stands_is_used_before_one_that_is_charged():
    """Although light still passes it for longer than the other one takes to change."""
    items = [[circuit(charged=1.0, uses=((0, 2, 3, 0.0, 1.0),))]]
    members = [(3, 0.0, 4.0), (7, 0.0, 0.0)]
    assert place(items, members=members, on_change=True).taken.tolist() == [0]
    assert place(items, members=members).taken.tolist() == [1]


# --- members of pools -------------------------------------------------------------------------------------------------


def test_circuits_of_a_round_take_different_members():
    """Both want the setting of the first member; the third finds none free and takes the first."""
    uses = [circuit(uses=[(2, 2, 5, 0.0, 3.0)]) for _ in range(3)]
    members = [(0, 0.0, 0.0), (0, 0.0, 0.0), (5, 0.0, 0.0), (4, 0.0, 0.0)]
    found = place([uses[:2]], members=members)
    assert found.taken.tolist() == [2, 3]
    assert found.changes == [(3, 0.0, 3.0, 5)]
    assert found.start_s.tolist() == [3.0] * 2
    assert place([uses], members=members).taken.tolist() == [2, 3, 2]
    for items in ([uses], [[one] for one in uses]):
        found = place(items, members=[(5, 0.0, 0.0)] * 4, control_s=2.0)
        assert (found.taken.tolist(), found.changes) == ([2, 3, 2], [])
        # what no member is free for counts as a change
        assert (found.control_from_s < inf).tolist() == [len(items) == 1] * 2 + [True]


@pytest.mark.parametrize(
    ("members", "offset", "taken", "start"),
    [
        (
            [(5, 0.0, 10.0), (4, 0.0, 6.0)],
            0.0,
            1,
            9.0,
        ),  # light passes the one that stands for longer than another is set
        ([(5, 0.0, 8.0), (4, 0.0, 6.0)], 0.0, 0, 8.0),
        ([(4, 0.0, 5.0), (5, 0.0, 8.0)], 0.0, 1, 8.0),  # both at 8: the one that stands
        ([(5, 0.0, 8.0), (4, 0.0, 5.0)], 0.0, 0, 8.0),
        ([(5, 0.0, 9.0), (5, 0.0, 8.0)], 0.0, 1, 8.0),
        ([(4, 0.0, 9.0), (5, 12.5, 8.0)], 0.0, 0, 12.0),  # set sooner than the other stands
        (
            [(4, 0.0, 2.0), (4, 0.0, 1.0)],
            4.0,
            0,
            2.0,
        ),  # both in time for light that comes 4 s behind the start: the first
        ([(4, 0.0, 5.0), (4, 0.0, 4.0)], 4.0, 1, 3.0),
    ],
)
def test_the_member_that_is_ready_first(members, offset, taken, start):
    """Data is there after 2 s; a setting takes 3 s and ends when light comes, behind the light that passes before."""
    found = place([[circuit(uses=[(0, 2, 5, offset, 3.0)])]], [(2.0, 1, -inf)], members)
    assert (found.taken[0], found.start_s[0]) == (taken, start)
    dark = members[taken][2]
    due = (
        [] if members[taken][0] == 5 else [(taken, max(dark, start + offset - 3.0), max(dark + 3.0, start + offset), 5)]
    )
    assert found.changes == due
    assert found.dark_s[taken] == start + offset + 1.0


def test_a_device_of_its_own():
    """It is no member of a pool: light that passes it does not delay light, and circuits of a round use it together."""
    both = [circuit(uses=[(0, 1, 5, 0.0, 3.0)], duration=2.0), circuit(uses=[(0, 1, 5, 0.0, 3.0)])]
    found = place([both], members=[(5, 0.0, 10.0)], control_s=2.0)
    assert (found.start_s.tolist(), found.changes) == ([0.0] * 2, [])
    found = place([both], members=[(4, 0.0, 10.0)], control_s=2.0)
    assert (found.start_s.tolist(), found.changes) == ([13.0] * 2, [(0, 10.0, 13.0, 5)])
    assert found.dark_s.tolist() == [15.0]


def test_light_that_reaches_a_device_behind_its_start():
    """The first item sets a device until light reaches it; what follows with another offset waits until it is set."""
    late, soon = circuit(uses=[(0, 1, 5, 2.0, 6.0)]), circuit(uses=[(0, 1, 5, 0.5, 6.0)])
    found = place([[late], [soon]], members=[(4, 0.0, 0.0)])
    assert found.start_s.tolist() == [4.0, 5.5]
    assert (found.changes, found.set_s.tolist(), found.dark_s.tolist()) == ([(0, 0.0, 6.0, 5)], [6.0], [7.0])


@pytest.mark.parametrize(("early", "begin"), [(True, 2.0), (False, 4.0)])
def test_what_is_charged_a_control_exchange(early, begin):
    """An item with one circuit that is, whichever; it begins once its data is there, or its unit too."""
    units = {"unit_s": np.array([4.0, 4.0, 4.0])}
    items = [[circuit(exchanged=True, units=(0,)), circuit()], [circuit(units=(1,)), circuit(exchanged=True)]]
    found = place([*items, [circuit(units=(2,))]], [(2.0, 1, -inf)], control_s=3.0, early=early, **units)
    assert found.control_from_s.tolist() == [begin] * 4 + [inf]
    assert found.start_s.tolist() == [begin + 3.0] * 4 + [4.0]


# --- chunks -----------------------------------------------------------------------------------------------------------

RANKS, CHUNKS = 3, 6


def chunks_of(row):
    """Chunks of a transfer (sender, receiver, first chunk, chunks, distance, operation)."""
    return [row[2] + k * row[4] for k in range(row[3])]


def drawn(draw):
    """Transfers, and four tables of every rank and chunk: of few times, so that some are equal."""
    rows = []
    for _ in range(5):
        src, lo, by = draw.integers(0, RANKS), draw.integers(0, CHUNKS), draw.integers(1, 4)
        n = draw.integers(1, (CHUNKS - 1 - lo) // by + 2)
        rows.append((*map(int, (src, draw.integers(0, RANKS), lo, n, by)), int(draw.integers(0, 4))))
    ready, left, copied = draw.integers(0, 4, (3, RANKS, CHUNKS)) * 1.0
    return rows, ready, draw.integers(0, 100, (RANKS, CHUNKS)), left, copied


@pytest.mark.parametrize("seed", range(8))
def test_what_is_there_and_what_must_leave_first(seed):
    """Of the chunks of a transfer the last one that is ready, of equal ones the first; what is moved is gone."""
    rows, ready, ready_by, left, copied = drawn(np.random.default_rng(seed))
    n, held = len(rows), (ready.copy(), ready_by, left, copied.copy())
    there_s, there_by, no_sooner_s = np.full(n, 9.0), np.full(n, 9), np.full(n, 9.0)
    kernels.read_chunks(*np.array(rows).T, *held, there_s, there_by, no_sooner_s)
    for i, row in enumerate(rows):
        src, dst, op, chunks = row[0], row[1], row[5], chunks_of(row)
        last = max(chunks, key=lambda c: ready[src, c])
        assert there_s[i] == ready[src, last]
        assert there_s[i] == 0 or there_by[i] == ready_by[src, last]
        before = ready if op == Op.COPY else copied
        assert no_sooner_s[i] == max(max(left[dst, c], before[dst, c]) for c in chunks)
    moved = {(row[0], c) for row in rows if row[5] & 2 for c in chunks_of(row)}
    for table, kept in ((held[0], ready), (held[3], copied)):
        assert table.tolist() == [
            [-inf if (r, c) in moved else kept[r, c] for c in range(CHUNKS)] for r in range(RANKS)
        ]


@pytest.mark.parametrize("seed", range(8))
def test_what_arrives_takes_its_place(seed):
    """Once its chunk has left; sums of a rank follow each other by the arrival of their data; the last one counts."""
    draw = np.random.default_rng(seed)
    rows, ready, ready_by, left, copied = drawn(draw)
    left_s, arrived_s = draw.integers(0, 6, (2, len(rows))) * 1.0
    adds = [i for i, row in enumerate(rows) if row[5] & Op.REDUCE]
    jobs = [adds[:2], adds[2:]] if seed % 2 else [[i] for i in adds]
    rank, moved = draw.integers(0, RANKS, len(jobs)), draw.integers(1, 5, len(jobs))
    memory_s, found = draw.integers(0, 4, RANKS) * 1.0, [t.copy() for t in (ready, ready_by, left, copied)]
    memory, arrived, summed = memory_s.copy(), arrived_s.copy(), np.zeros(len(rows))
    job_at, job_rows = np.cumsum([0, *map(len, jobs)]), np.concatenate([*jobs, []]).astype(int)
    kernels.write_chunks(
        *np.array(rows).T, left_s, arrived, 10, job_at, job_rows, rank, moved, 0.5, memory, *found, summed
    )
    places = (
        [[(row[0], c) for c in chunks_of(row)] for row in rows],
        [[(row[1], c) for c in chunks_of(row)] for row in rows],
    )
    for i, sent in enumerate(places[0]):
        for place in sent:
            left[place] = max(left[place], left_s[i])
    due = [max([arrived_s[i], *(left[place] for place in places[1][i])]) for i in range(len(rows))]
    ends = list(due)
    begins = [max([0.0, *(due[i] for i in job)]) for job in jobs]
    for j in sorted(range(len(jobs)), key=lambda j: begins[j]):
        memory_s[rank[j]] = max(begins[j], memory_s[rank[j]]) + moved[j] * 0.5
        for i in jobs[j]:
            ends[i] = max(ends[i], memory_s[rank[j]])
    for i, row in enumerate(rows):
        for place in places[1][i]:
            if row[5] == Op.COPY:
                ready[place] = copied[place] = due[i]
                ready_by[place] = 10 + i
            elif ends[i] >= ready[place]:
                ready[place], ready_by[place] = ends[i], 10 + i
    assert (arrived.tolist(), summed.tolist(), memory.tolist()) == (due, ends, memory_s.tolist())
    for table, expected in zip(found, (ready, ready_by, left, copied), strict=True):
        assert table.tolist() == expected.tolist()
