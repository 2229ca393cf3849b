"""Rounds of cells: the order of the transfers of a sender, what makes two rounds equal, delays, limits and ticks."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines import packet, packet_result
from tests.profiles import examples
from tests.simulate.plans import by_hand

from opticcl.assumptions import assumptions
from opticcl.errors import ParameterError
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan
from opticcl.simulate import _cells as cells_module
from opticcl.simulate import _packet_kernels as kernels
from opticcl.simulate._cell_flows import CellFlows, CellLinks
from opticcl.simulate._cell_rounds import _Cells, _digest
from opticcl.simulate._cells import _Kernel, _round_trips
from opticcl.simulate.dependencies import Flows, released_together
from opticcl.simulate.engines import simulate
from opticcl.simulate.guards import EventLimit
from opticcl.simulate.latency import path_latency
from opticcl.simulate.options import PacketOptions

LIGHT = assumptions("published", compute="none", control="none")


def cells_of(where, limit=None, **options):
    """Cells on a fabric, with nothing recorded."""
    limit = limit or EventLimit("packet", 10**8)
    return _Cells(where, path_latency(where, LIGHT), PacketOptions(**options), limit, lambda *_: None, None)


# --- turns ------------------------------------------------------------------------------------------------------------


@examples(50)
@given(st.lists(st.tuples(*(st.integers(0, top) for top in (3, 5, 2))), max_size=25))
def test_sender_r_begins_with_its_rth_receiver(rows):
    """Over each of its links: receivers in ascending order, from the r-th on, and round to the one before it."""
    src, dst, link = np.array(rows, np.int64).reshape(-1, 3).T
    found = cells_of(fabric("ideal:nodes=4")).send_order(src, dst, link)
    due = np.full(len(rows), -1)
    for sender, over in {(s, k) for s, _, k in rows}:
        mine = sorted((i for i, (s, _, k) in enumerate(rows) if (s, k) == (sender, over)), key=lambda i: rows[i][1])
        begin = sender % len(mine)
        for turn, i in enumerate(mine[begin:] + mine[:begin]):
            due[i] = turn
    assert found.tolist() == due.tolist()


def test_shuffled_turns_are_a_permutation_that_the_seed_decides():
    """Any order of all transfers; the next call draws another one."""
    src, dst, link = np.arange(20) // 5, np.arange(20), np.zeros(20, np.int64)
    drawn = {}
    for seed in (0, 0, 1):
        cells = cells_of(fabric("ideal:nodes=4"), order="shuffled", seed=seed)
        orders = [cells.send_order(src, dst, link).tolist() for _ in range(2)]
        assert sorted(orders[0]) == sorted(orders[1]) == list(range(20))
        assert orders[0] != orders[1]
        assert drawn.setdefault(seed, orders) == orders
    assert drawn[0] != drawn[1]


# --- rounds -----------------------------------------------------------------------------------------------------------


def test_rounds_are_equal_in_links_paths_bytes_and_delays():
    """The same links in paths of other lengths, other bytes or other delays are another round."""
    one = CellFlows(np.ones(2), np.zeros(2), np.zeros(2), np.array([0, 1]), np.array([1, 2]), np.array([0, 1, 0]))
    others = [
        replace(one, amount=np.array([1.0, 2.0])),
        replace(one, delay_s=np.array([0.0, 1e-9])),
        replace(one, path_at=np.array([0, 2]), path_n=np.array([2, 1])),
        replace(one, hops=np.array([0, 1, 2])),
    ]
    assert _digest(one) == _digest(replace(one, amount=np.ones(2)))
    assert len({_digest(flows) for flows in (one, *others)}) == 5


def test_a_round_without_circuits_takes_no_time():
    """As a plan of a file may have it."""
    plan = by_hand(fabric("ideal:nodes=3"), [(0, 1, 0, 0, 4, 1), (0, 2, 0, 4, 4, 1)])
    (circuits,) = plan.rounds(0)
    empty = CircuitPlan(plan.fabric, plan.schedule, lambda i: (circuits, circuits.take(np.zeros(0, np.int64))))
    for engine in ("packet", "flow"):
        expected = simulate(plan, 10**6, LIGHT, engine=engine, record=True)
        found = simulate(empty, 10**6, LIGHT, engine=engine, record=True)
        assert found.timeline.total_s == expected.timeline.total_s
        assert found.timeline.num_rounds == 2
        assert found.traffic.transfers.end_s.tolist() == expected.traffic.transfers.end_s.tolist()


@pytest.mark.parametrize("options", [{}, {"buffer_bytes": 1000}])
def test_cells_are_subtracted_from_the_limit(options):
    """Two transfers of four cells over two links each, by either kernel; a limit of one cell less refuses them."""
    plan = by_hand(fabric("ideal:nodes=3"), [(0, 1, 0, 0, 4, 1), (0, 2, 0, 4, 4, 1)])
    limit = EventLimit("packet", 100)
    cells = cells_of(plan.fabric, limit, cell_bytes=1000, **options)
    cells.run_round(plan.schedule.step(0), plan.rounds(0)[0], 1000.0, 1)
    assert limit.left == 100 - 2 * 4 * 2


@pytest.mark.parametrize(
    ("specification", "seed", "options"),
    [
        ("torus:shape=4x4", 3, {"forwarding": "cut_through"}),
        ("torus:shape=4x4", 4, {"buffer_bytes": 8192}),
        ("superpod:nodes=16", 5, {"queue": "input"}),
    ],
)
def test_a_step_alone_is_the_same_in_both_modes(specification, seed, options):
    """Cells that meet at one time go in the same order: all transfers of one step begin together in both modes."""
    random = np.random.default_rng(seed)
    where = fabric(specification, **({"link_latency": 0} if seed == 3 else {}))
    src = random.integers(0, 16, 60)
    dst = (src + random.integers(1, 16, 60)) % 16
    plan = by_hand(where, [(0, s, d, 0, n, 1) for s, d, n in zip(src, dst, random.integers(1, 4, 60), strict=True)])
    ends = [
        np.sort(packet_result(plan, 200_000, LIGHT, mode=mode, **options).traffic.transfers.end_s)
        for mode in ("barrier", "asynchronous")
    ]
    assert ends[0].tolist() == ends[1].tolist()


# --- without barriers -------------------------------------------------------------------------------------------------


def alone(where, **columns):
    """A transfer of 1,000 bytes over link 0 that waits for nothing, and its dependencies."""
    given = {"bytes": 1000.0, "gap": 0.0, "control": 0.0, "compute": 0.0, "path_at": 0, "path_n": 1, **columns}
    return Flows({name: np.array([value]) for name, value in given.items()}, np.zeros(1, np.int32)), released_together(
        1
    )


def test_a_transfer_starts_after_its_message_gap_and_its_control_exchange():
    """Both before the first cell: a microsecond and three, then 1,000 bytes at a byte a nanosecond."""
    where = fabric("ideal:nodes=2,rate=8Gb/s,latency=0s")
    found = cells_of(where, cell_bytes=1000).run_all(*alone(where, gap=1e-6, control=3e-6))
    assert found.finished.tolist() == pytest.approx([5e-6], rel=1e-12)
    assert found.released.tolist() == [0.0]
    assert found.caused_by.tolist() == [-1]


def test_a_deadlock_counts_the_transfers_that_have_begun():
    """Five that wait for each other's buffers; five of the step behind them have not begun."""
    ring = [(step, s, (s + 2) % 5, 0, 8, 1) for step in (0, 1) for s in range(5)]
    plan = by_hand(fabric("torus:shape=5"), ring, num_steps=2)
    with pytest.raises(ParameterError, match="deadlock of 5 transfers"):
        packet(plan, 10**6, LIGHT, buffer_bytes=4096, mode="asynchronous")


# --- what the kernel works on -----------------------------------------------------------------------------------------


def one_flow(amount=1.0, delay_s=0.0, compute_s=0.0, hops=(0,)):
    """Cells of one transfer."""
    columns = (np.array([value]) for value in (amount, delay_s, compute_s, 0, len(hops)))
    return CellFlows(*columns, np.array(hops))


def fits(rate=1e9, latency_s=0.0, base_s=0.0, tick_s=2.0**-60, flow=None, **options):
    """Whether the times of a transfer over one link are less than 2**62 ticks, 4 s."""
    links = CellLinks(np.array([rate]), np.array([latency_s]), base_s)
    options = PacketOptions(cell_bytes=1, **options)
    return _Kernel(links, flow or one_flow(), released_together(1), options, 10**8, tick_s).fits


def test_the_times_up_to_the_next_event_are_below_the_last_tick():
    """Each time alone up to it, two of them only together; with a window the return and the notice of a loss too."""
    for name in ("latency_s", "base_s"):
        assert fits(**{name: 3.5})
        assert not fits(**{name: 4.5})
    for name in ("delay_s", "compute_s"):
        assert fits(flow=one_flow(**{name: 3.5}))
        assert not fits(flow=one_flow(**{name: 4.5}))
    assert fits(rate=1 / 3.5)
    assert not fits(rate=1 / 4.5)
    assert not fits(latency_s=2.5, flow=one_flow(compute_s=2.5))
    assert not fits(base_s=2.5, flow=one_flow(delay_s=2.5))
    assert not fits(rate=np.inf, latency_s=4.0)
    windowed = {"transport": "windowed"}
    assert fits(latency_s=0.5, **windowed)  # and 0.5 s back; it is noticed after two round trips of 1 s
    assert not fits(latency_s=0.8, **windowed)
    assert fits(latency_s=1.0, retransmit_s=1.5, **windowed)
    assert not fits(latency_s=1.0, retransmit_s=2.5, **windowed)


def test_a_round_trip_is_the_way_there_with_its_sendings_and_the_way_back():
    """Of every path, also where paths overlap; a transfer's own latency counts each way."""
    links = CellLinks(np.array([1.0, 2.0, 4.0]), np.array([10.0, 20.0, 40.0]), 100.0)
    flows = CellFlows(np.ones(2), np.zeros(2), np.zeros(2), np.array([0, 1]), np.array([2, 2]), np.array([0, 1, 2]))
    back_s, trip_s = _round_trips(links, flows, 8.0)
    assert back_s.tolist() == [130.0, 160.0]
    assert trip_s.tolist() == [2 * 130.0 + 8 + 4, 2 * 160.0 + 4 + 2]


def test_two_events_of_every_link_and_transfer_have_a_place():
    """The end of a sending and an arrival; an acknowledgement and a loss."""
    kernel = _Kernel(
        CellLinks(np.full(3, 1e9), np.zeros(3), 0.0),
        one_flow(hops=(0, 2)),
        released_together(1),
        PacketOptions(),
        10,
        1e-15,
    )
    assert len(kernel._heap) == 2 * (3 + 1)
    assert len(kernel._idle) == 3


def test_progress_is_counted_in_cells_and_links(monkeypatch):
    """Two transfers of four cells over two links each; cells that are sent again count no more than all."""
    monkeypatch.setattr(cells_module, "SLICE", 5)
    plan = by_hand(fabric("ideal:nodes=3"), [(0, 1, 0, 0, 4, 1), (0, 2, 0, 4, 4, 1)])
    reports = []
    options = {"buffer_bytes": 1000, "transport": "windowed", "window": 1, "retransmit_s": 1e-6}
    packet(plan, 8000, LIGHT, cell_bytes=1000, progress=lambda *what: reports.append(what), **options)
    inside = [(done, total) for what, done, total in reports if what == "simulate cells"]
    assert {total for _, total in inside} == {16}
    assert [done for done, _ in inside] == sorted(done for done, _ in inside)
    assert inside[0][0] < 5 < inside[-1][0] <= 16


def test_rows_for_cells_double():
    """The free ones are chained, and those that were free before come last."""
    kernel = _Kernel(
        CellLinks(np.ones(1), np.zeros(1), 0.0), one_flow(), released_together(1), PacketOptions(), 10, 1e-15
    )
    kernel._grow()
    first = kernel._state["free"][0]
    assert (first, kernel._state["num_free"][0], len(kernel._cells)) == (0, 4096, 4096)
    kernel._state["free"], kernel._state["num_free"] = 7, 2  # two that an event took no row of
    kernel._cells["time"] = 5
    kernel._grow()
    assert (kernel._state["free"][0], kernel._state["num_free"][0], len(kernel._cells)) == (4096, 2 + 4096, 8192)
    following = kernel._cells["following"]
    assert following[4096:-1].tolist() == list(range(4097, 8192))
    assert following[-1] == 7
    assert (kernel._cells["time"][:4096] == 5).all()
    assert kernels.SPARE < 4096
