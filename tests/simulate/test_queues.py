"""Queues in order: the same answers as the packet kernel, to the tick, and where they apply."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.simulate import _cells as cells_module
from opticcl.simulate import _queues as queues_module
from opticcl.simulate._cell_flows import CellFlows, CellLinks
from opticcl.simulate._cells import run_cells
from opticcl.simulate._queues import run_queues
from opticcl.simulate.dependencies import Dependencies
from opticcl.simulate.guards import EventLimit
from opticcl.simulate.options import PacketOptions

CELL = 64
ANSWERS = ("finished", "released", "caused_by", "passed", "carried", "busy_s", "queue", "dropped")


def at_once(n):
    """Flows that nothing holds back, in one group."""
    none, together = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    return Dependencies(
        np.array([0, n]), together, np.zeros(1, np.int64), np.array([0, 1]), together, np.full(1, -1), none, none[:0], n
    )


def random_traffic(seed, num_links, num_flows, longest, circles):
    """Links of few rates and latencies, and paths over them: rising, or, with circles, in any order. Times coincide often."""
    rng = np.random.default_rng(seed)
    rates, latencies = (
        [[8e9], [8e9, 2e9], rng.uniform(1e9, 9e9, 4)],
        [[64e-9], [1e-9, 8e-9], rng.uniform(1e-9, 1e-7, 4)],
    )
    links = CellLinks(
        rng.choice(rates[seed % 3], num_links) / 8, rng.choice(latencies[seed // 3 % 3], num_links), seed % 2 * 8e-9
    )
    length = np.minimum(rng.integers(1, longest + 1, num_flows), num_links)
    paths = [rng.choice(num_links, n, replace=False) for n in length]
    hops = np.concatenate([p if circles else np.sort(p) for p in paths])
    order = np.argsort([p[0] if circles else p.min() for p in paths], kind="stable")
    amount = rng.choice([1, 7.5, CELL, CELL + 1, 10 * CELL, 20.5 * CELL], num_flows)
    delay = rng.choice([0, 0, 8e-9, 64e-9, 1e-5], num_flows)
    return links, CellFlows(
        amount, delay, np.zeros(num_flows), (np.cumsum(length) - length)[order], length[order], hops
    )


def both(links, flows, options):
    """(answer of the queues, answer of the packet kernel)."""
    waits, quiet = at_once(len(flows.amount)), lambda *_: None
    found = run_queues(links, flows, waits, options, 10**8, 1e-15, quiet, 1000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells_module, "run_queues", lambda *_: None)
        return found, run_cells(links, flows, waits, options, EventLimit("packet", 10**8), quiet)


@examples(60)
@given(
    seed=st.integers(0, 2**32 - 1),
    num_links=st.integers(1, 150),
    num_flows=st.integers(1, 120),
    longest=st.integers(1, 6),
    circles=st.booleans(),
    forwarding=st.sampled_from(["store_and_forward", "cut_through"]),
    order=st.sampled_from(["interleaved", "sequential"]),
)
def test_the_same_answers(seed, num_links, num_flows, longest, circles, forwarding, order):
    """On any links and paths: each time, byte and queue, also in windows of one tick and with few rows for cells."""
    links, flows = random_traffic(seed, num_links, num_flows, longest, circles)
    options = PacketOptions(cell_bytes=CELL, forwarding=forwarding, order=order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queues_module, "FIRST_ROWS", 2)
        patch.setattr(queues_module, "CELLS", 1 + seed % 50)
        patch.setattr(queues_module, "CELLS_A_LINK", 0)
        found, expected = both(links, flows, options)
    assert found is not None
    for name in ANSWERS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)


def line(amount=10 * CELL, latency_s=8e-9):
    """Three transfers over two links, one behind the other."""
    links = CellLinks(np.full(2, 1e9), np.full(2, latency_s), 0.0)
    flows = CellFlows(
        np.full(3, float(amount)),
        np.zeros(3),
        np.zeros(3),
        np.array([0, 2, 3]),
        np.array([2, 1, 1]),
        np.array([0, 1, 0, 1]),
    )
    return links, flows


def test_two_links_by_hand():
    """Link 0 alternates; link 1 sends two of its own cells before the first that comes to it, and then alternates."""
    found, _ = both(*line(), PacketOptions(cell_bytes=CELL))
    assert found.passed == 40
    assert found.carried.tolist() == [20 * CELL, 20 * CELL]
    assert found.busy_s == pytest.approx([20 * 64e-9] * 2)
    assert found.finished == pytest.approx([20 * 64e-9 + 2 * 8e-9, 20 * 64e-9 + 8e-9, 18 * 64e-9 + 8e-9])
    assert found.queue.tolist() == [0, CELL]


@pytest.mark.parametrize(
    ("options", "applies"),
    [
        ({}, True),
        ({"forwarding": "cut_through"}, True),
        ({"queue": "input"}, False),
        ({"buffer_bytes": 4 * CELL}, False),
        ({"transport": "windowed"}, False),
    ],
)
def test_where_they_apply(options, applies):
    """Only where cells wait for nothing but the cells before them."""
    found, expected = both(*line(), PacketOptions(cell_bytes=CELL, **options))
    assert (found is not None) == applies
    assert np.isfinite(expected.finished).all()


def test_where_they_do_not_apply():
    """Nothing to send takes no time, a head that is everywhere at once neither; what waits for others; more than is allowed."""
    options, quiet = PacketOptions(cell_bytes=CELL), lambda *_: None
    assert both(*line(amount=0), options)[0] is None
    assert both(*line(latency_s=0), options)[0] is not None
    assert both(*line(latency_s=0), PacketOptions(cell_bytes=CELL, forwarding="cut_through"))[0] is None
    links, flows = line()
    alone = at_once(3)
    for change in (
        {"waits": np.ones(1, np.int64)},
        {"feeds": np.zeros(1, np.int64)},
        {"next_block": np.zeros(1, np.int64)},
    ):
        assert run_queues(links, flows, alone._replace(**change), options, 10**8, 1e-15, quiet, 1000) is None
    assert run_queues(links, flows, alone, options, 39, 1e-15, quiet, 1000) is None
    assert run_queues(links, flows, alone, options, 40, 1e-15, quiet, 1000).passed == 40
    assert run_queues(links, flows, alone, options, 40, 1e-25, quiet, 1000) is None  # 4e18 ticks are not many


def found_on(links, flows, tick_s=1e-15, **options):
    """The answer of the queues, of flows that nothing holds back."""
    options = PacketOptions(cell_bytes=CELL, **options)
    return run_queues(links, flows, at_once(len(flows.amount)), options, 10**8, tick_s, lambda *_: None, 1000)


def one_after_the_other(latency_s, capacity=1e9, delay_s=0.0, base_s=0.0):
    """One cell over a line of links."""
    links = CellLinks(np.full(len(latency_s), capacity), np.array(latency_s), base_s)
    one, n = np.zeros(1, int), np.array([len(latency_s)])
    return links, CellFlows(np.full(1, 64.0), np.full(1, delay_s), np.zeros(1), one, n, np.arange(n[0]))


def test_no_flow_and_sums_are_not_for_queues():
    """Nothing to send, and flows that others wait for until they are summed."""
    links, flows = line()
    assert found_on(links, CellFlows(*np.zeros((3, 0)), *np.zeros((3, 0), int))) is None
    assert (
        found_on(links, CellFlows(flows.amount, flows.delay_s, np.ones(3), flows.path_at, flows.path_n, flows.hops))
        is None
    )


def test_rows_and_links_have_numbers_of_few_bits(monkeypatch):
    """Three flows over four links; one link that another leads to."""
    for name, fits, where in (("MOST_ROWS", 4, queues_module), ("STARTS", 2, queues_module.kernels)):
        monkeypatch.setattr(where, name, fits)
        assert found_on(*line()) is not None
        monkeypatch.setattr(where, name, fits - 1)
        assert found_on(*line()) is None
        monkeypatch.undo()


def test_cells_of_one_tick_in_a_circle():
    """Two links, each behind the other: both cells cross the first in one tick, then the second."""
    links = CellLinks(np.full(2, 1e9), np.zeros(2), 0.0)
    none = np.zeros(2)
    flows = CellFlows(np.full(2, 64.0), none, none, np.array([0, 2]), np.array([2, 2]), np.array([0, 1, 1, 0]))
    assert found_on(links, flows, 64e-9).finished.tolist() == [2 * 64e-9] * 2


def test_only_a_link_before_another_needs_time():
    """A head that is at its receiver at once reaches no other link too early."""
    links, flows = line()
    links = CellLinks(links.capacity, np.array([8e-9, 0.0]), 0.0)
    assert found_on(links, flows, forwarding="cut_through") is not None
    links = CellLinks(links.capacity, np.array([0.0, 8e-9]), 0.0)
    assert found_on(links, flows, forwarding="cut_through") is None


@pytest.mark.parametrize(
    ("given", "applies"),
    [
        ({"latency_s": [1000.0] * 2}, True),
        ({"latency_s": [1200.0] * 2}, False),  # 2^60 femtoseconds are 1,153 seconds
        ({"latency_s": [1e-9], "delay_s": 1200.0}, False),
        ({"latency_s": [1e-9], "base_s": 1200.0}, False),
        ({"latency_s": [1e-9], "capacity": 64 / 1200.0}, False),
        ({"latency_s": [400.0], "delay_s": 200.0, "base_s": 200.0, "capacity": 64 / 400.0}, False),
        ({"latency_s": [1100.0] * 4}, True),
        ({"latency_s": [1100.0] * 5}, False),  # it arrives behind 2^62
    ],
)
def test_times_have_62_bits(given, applies):
    """And what is added to a time 60."""
    found = found_on(*one_after_the_other(**given))
    assert (found is not None) == applies
    if applies:
        assert found.finished == pytest.approx([sum(given["latency_s"])])


def test_the_last_tick_is_a_time():
    """A sum of exactly 2^60 is refused, an arrival at exactly 2^62 is not; small times are not either, whatever the tick."""
    assert found_on(*one_after_the_other([2.0**60], 64.0), 1.0) is None
    latency_s = [2.0**59] * 7 + [2.0**59 - 1024]
    found = found_on(*one_after_the_other(latency_s, 64.0, 1024.0 - 8), 1.0)  # and eight ticks of sending
    assert found.finished.tolist() == [2.0**62]
    assert found_on(*line(), 1e-18) is not None


def test_progress_is_told_between_slices():
    """How many of the cells have been sent."""
    told = []
    run_queues(*line(), at_once(3), PacketOptions(cell_bytes=CELL), 10**8, 1e-15, lambda *one: told.append(one), 10)
    assert told
    assert [(what, total) for what, _, total in told] == [("simulate cells", 40)] * len(told)
    passed = [number for _, number, _ in told]
    assert passed == sorted(set(passed))
    assert 10 <= passed[0] <= passed[-1] <= 40


def test_rows_of_cells_double(monkeypatch):
    """From as many as there are to begin with; a free one is taken to the last."""
    monkeypatch.setattr(queues_module, "FIRST_ROWS", 1)
    assert found_on(*one_after_the_other([1e-9])).rows == 1
    rows = found_on(*line()).rows
    assert rows > 2
    assert rows & (rows - 1) == 0
