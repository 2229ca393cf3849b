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
