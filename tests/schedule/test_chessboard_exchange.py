"""All-to-all along rows and columns at once."""

import numpy as np
import pytest
from tests.schedule.oracle import check

from opticcl.circuits import lower
from opticcl.collective import as_request
from opticcl.fabrics import fabric
from opticcl.plans.plan import compile
from opticcl.schedule import all_variants, generate
from opticcl.verify import verify


@pytest.mark.parametrize("given", ["2x2", "4x6", "6x10", "8x4,lasers=2", "8x8,lasers=4", "12x12,lasers=4"])
def test_right_at_every_rank(given):
    """Two steps, by colours of edges where the formula of lasers has nothing to say, and by that."""
    assert check("chessboard_exchange", "all_to_all", fabric(f"lightpath:shape={given}")).num_steps == 2


def test_data_of_each_step():
    """4 x 6: black nodes send blocks of a column to relays of their colour, then those of 6 nodes along a column."""
    schedule = generate("chessboard_exchange", "all_to_all", fabric("lightpath:shape=4x6"))
    for number, sizes in enumerate([{0: 4, 1: 6}, {0: 6, 1: 4}]):
        step = schedule.step(number)
        colour, to = ((end // 6 + end % 6) % 2 for end in (step.src, step.dst))
        assert {(own, size) for own, size in zip(colour.tolist(), step.size_chunks().tolist(), strict=True)} == set(
            sizes.items()
        )
        assert np.bincount(colour).tolist() == [12 * (5, 3)[number], 12 * (3, 5)[number]]
        assert (colour == to).all() or number == 1


@pytest.mark.parametrize(("side", "lasers"), [(8, 4), (16, 4), (12, 5), (20, 8), (28, 8), (32, 16)])
def test_rounds_and_waveguides(side, lasers):
    """A laser a place of a line in side / lasers rounds a step, on side / 8 + 3 waveguides."""
    where = fabric(f"lightpath:shape={side}x{side},lasers={lasers},waveguides={side // 8 + 3}")
    plan = lower(where, generate("chessboard_exchange", "all_to_all", where))
    assert [len(plan.rounds(i)) for i in range(2)] == [-(-side // lasers)] * 2
    every = np.concatenate([circuits.wavelength_n for circuits in plan.rounds(0)])
    assert (every == 1).all()
    assert verify(plan).ok
    fewer = fabric(f"lightpath:shape={side}x{side},lasers={lasers},waveguides=1")
    plan = lower(fewer, generate("chessboard_exchange", "all_to_all", fewer))
    assert verify(plan).ok
    assert len(plan.rounds(0)) > -(-side // lasers)


def test_time():
    """Alpha and a change a round, both parts of (n - 1) / n of the message on all lasers; cells are as fast."""
    where = fabric("lightpath:shape=16x16,lasers=4")
    plan = compile(where, "all_to_all", 10**7, algorithm="chessboard_exchange")
    rounds, rate = 2 * 16 // 4, 4 * where.rate_bits_per_s
    due = rounds * (where.latency_s + where.reconfiguration_s) + 2 * 8e7 / rate
    assert plan.simulate(assumptions="published").total_s == pytest.approx(due, rel=1e-9)
    for engine in ("packet", "device"):
        assert plan.simulate(engine, assumptions="published").total_s <= due * (1 + 1e-9)


@pytest.mark.parametrize(
    ("given", "offered"),
    [
        ("32x32", True),
        ("8x12,lasers=4", True),
        ("16x16", False),
        ("20x18", False),
        ("32x32,dead_lasers=5:0", False),
    ],
)
def test_when_a_search_tries_it(given, offered):
    """Where the nodes of a line take several rounds, on sides that are multiples of four, if nothing has failed."""
    where = fabric(f"lightpath:shape={given}")
    assert ("chessboard_exchange" in all_variants(as_request("all_to_all"), where)) is offered


@pytest.mark.parametrize(("side", "due_us"), [(128, 758.267), pytest.param(256, 917.906, marks=pytest.mark.deep)])
def test_largest_machines(side, due_us):
    """16,384 and 65,536 nodes: 100 MB within 1.4 of twice the message on all lasers, every chunk and all light."""
    plan = compile(f"lightpath:shape={side}x{side}", "all_to_all", "100MB", algorithm="chessboard_exchange")
    time_s = plan.simulate(assumptions="common").total_s
    assert time_s == pytest.approx(due_us * 1e-6, rel=1e-5)
    assert time_s < 1.4 * 2 * 8e8 / (16 * 150e9)
    verdict = plan.verify()
    assert verdict.ok
    assert verdict.exhaustive
    assert verdict.circuits == 2 * side**2 * (side - 1)
