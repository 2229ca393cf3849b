"""Rings of several strides on a TeraRack."""

import numpy as np
import pytest
from tests.schedule.oracle import check

from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric, job
from opticcl.plans.plan import compile
from opticcl.schedule.circulant_rings import Levels, shared_wavelengths

COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier"]
SHAPES = [(12,), (3, 4), (4, 3), (2, 2, 3), (3, 5), (3, 3, 3), (9,)]
DIRECT = [
    ((8,), 1),
    ((7,), 1),
    ((6, 2), 1),
    ((3, 6), 2),
    ((4, 3), 2),
    ((5, 4, 2), 2),
    ((10, 3), 1),
    ((2, 4, 3), 3),
    ((5, 7), 1),
]
PLAIN = {
    "endpoint": 1e-6,
    "transceiver": 0.0,
    "message_gap": 0.0,
    "fibre": 0.0,
    "waveguide": 0.0,
    "hop": 0.0,
    "compute": "none",
}
"""One microsecond a step and nothing else."""


def name_of(radices, stands, direct=0):
    """As a caller writes it."""
    return f"circulant_rings:radices={'x'.join(map(str, radices))},stands={stands},direct={direct}"


def nodes(radices):
    """A TeraRack of that many."""
    return fabric("terarack", nodes=int(np.prod(radices)))


@pytest.mark.parametrize("radices", SHAPES)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_right_at_every_rank(radices, collective):
    """Odd and even levels, at once and in turn: data and light."""
    where = nodes(radices)
    for stands in (True, False):
        check(name_of(radices, stands), collective, where)


@pytest.mark.parametrize("radices", SHAPES)
@pytest.mark.parametrize("collective", COLLECTIVES[:4])
@pytest.mark.parametrize("stands", [True, False])
def test_closed_form(radices, collective, stands):
    """Settings, steps and bytes of each level on its wavelengths."""
    where, levels, size = nodes(radices), Levels(radices), 1_000_000
    moves, twice = collective == "all_to_all", 1 + (collective == "all_reduce")
    w, wire_s = where.lasers_per_port, 8 * size / where.rate_bits_per_s
    widths = shared_wavelengths(levels, w, moves) if stands else [w // s for s in levels.strides]
    settings = 1 if stands else len(radices) + (twice - 1) * (len(radices) - 1)
    carried = 0.0
    for number, (b, s, k) in enumerate(zip(radices, levels.strides, widths, strict=True)):
        each_way = b / 8 if b % 2 == 0 and number == len(radices) - 1 else b // 2 * (b // 2 + 1) / (2 * b)
        carried += (each_way if moves else (b - 1) / (2 * s * b)) / k
    due = settings * 25e-6 + twice * (sum(b // 2 for b in radices) * 1e-6 + carried * wire_s)
    found = compile(where, collective, size, algorithm=name_of(radices, stands)).simulate(**PLAIN)
    assert found.total_s == pytest.approx(due, rel=1e-9)


def direct_wavelengths(b, stride):
    """Of a direct level with one wavelength a circuit: the lengths of the circuits of one node in b, each way [count]."""
    nearer = sum(range(1, (b + 1) // 2)) * stride
    return nearer if b % 2 else nearer + -(-b // 2 * stride // 2)


@pytest.mark.parametrize(("radices", "direct"), DIRECT)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_direct_levels(radices, direct, collective):
    """Data and light of levels in one step, and their closed form at odd and even shapes."""
    where, levels, size = nodes(radices), Levels(radices, direct), 1_000_000
    moves, twice = collective == "all_to_all", 1 + (collective in ("all_reduce", "barrier"))
    assert levels.wavelengths[:direct] == tuple(map(direct_wavelengths, radices[:direct], levels.strides[:direct]))
    for stands in (True, False):
        widths = levels.widths(where.lasers_per_port, stands, moves)
        check(name_of(radices, stands, direct), collective, where)
        plan = compile(where, collective, size, algorithm=name_of(radices, stands, direct))
        steps, carried = 0, 0.0
        for number, (b, s, k) in enumerate(zip(radices, levels.strides, widths, strict=True)):
            if number < direct:
                steps, carried = steps + 1, carried + 1 / ((b if moves else s * b) * k)
                continue
            each_way = b / 8 if b % 2 == 0 and number == len(radices) - 1 else b // 2 * (b // 2 + 1) / (2 * b)
            steps, carried = steps + b // 2, carried + (each_way if moves else (b - 1) / (2 * s * b)) / k
        settings = 1 if stands else len(radices) + (twice - 1) * (len(radices) - 1)
        wire_s = 0.0 if collective == "barrier" else 8 * size / where.rate_bits_per_s
        due = settings * 25e-6 + twice * (steps * 1e-6 + carried * wire_s)
        assert plan.simulate(**PLAIN).total_s == pytest.approx(due, rel=1e-9)


@pytest.mark.parametrize("number", [4, 5, 8, 13])
@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "all_gather", "barrier"])
def test_a_folded_ring_passes_one_node_at_most(number, collective):
    """Right at every rank, with half of the wavelengths for each way; never from the last node on to the first."""
    where = fabric("terarack", nodes=number)
    check("circulant_rings:folded=true", collective, where)
    plan = compile(where, collective, "1MB", algorithm="circulant_rings:folded=true").circuits
    for step in range(plan.schedule.num_steps):
        (circuits,) = plan.rounds(step)
        assert circuits.num_hops().max() <= 2
        assert set(circuits.wavelength_n.tolist()) == {where.lasers_per_port // 2}
        assert (np.abs(circuits.dst - circuits.src) <= 2).all()


@pytest.mark.parametrize(
    ("machine", "parameters"),
    [("terarack:nodes=3", ""), ("terarack:nodes=8,wavelengths=1", ""), ("terarack:nodes=8", ",radices=2x4")],
)
def test_no_folded_ring(machine, parameters):
    """Too few nodes or wavelengths, or several levels."""
    with pytest.raises(UnsupportedError, match=r"a folded ring has one level|folded rings of 1 group "):
        compile(fabric(machine), "all_reduce", "1MB", algorithm=f"circulant_rings:folded=true{parameters}")


def test_a_job_on_neighbours_takes_a_folded_ring():
    """From its last node to its first light would pass most interfaces of the ring: 1,146 dB short."""
    where = job(fabric("terarack", nodes=512), range(64))
    closes = compile(where, "all_reduce", "100MB")
    assert closes.algorithm == "circulant_rings:folded=True"
    assert closes.verify(budget="typical").ok
    assert closes.simulate().total_s < 1e-3
    apart = compile(job(fabric("terarack", nodes=512), range(0, 512, 8)), "all_reduce", "100MB")
    alone = compile(fabric("terarack", nodes=64), "all_reduce", "100MB")
    assert apart.verify(budget="typical").ok
    assert apart.simulate().total_s < 1.05 * alone.simulate().total_s
