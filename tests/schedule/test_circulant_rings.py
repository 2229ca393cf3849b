"""Rings of several strides on a TeraRack."""

from dataclasses import replace

import numpy as np
import pytest
from tests.schedule.oracle import check

from opticcl.assumptions import assumptions
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan
from opticcl.plans.plan import compile
from opticcl.schedule import reason_declined
from opticcl.schedule.circulant_rings import Levels, shared_wavelengths
from opticcl.verify import verify

COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier"]
SHAPES = [(12,), (3, 4), (4, 3), (2, 2, 3), (3, 5), (3, 3, 3), (9,)]
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


def name_of(radices, stands):
    """As a caller writes it."""
    return f"circulant_rings:radices={'x'.join(map(str, radices))},stands={stands}"


def nodes(radices):
    """A TeraRack of that many."""
    return fabric("terarack", nodes=int(np.prod(radices)))


@pytest.mark.parametrize("radices", SHAPES)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_right_at_every_rank(radices, collective):
    """Odd and even levels, at once and in turn: data, light and claims."""
    where = nodes(radices)
    for stands in (True, False):
        check(name_of(radices, stands), collective, where)
        plan = compile(where, collective, "1MB", algorithm=name_of(radices, stands))
        assert plan.verify().ok
        assert plan.verify(every_chunk=True).ok


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


@pytest.mark.parametrize(("size", "name", "due"), [("1MB", "4x8x32", 95.37), ("10MB", "32x32,stands=False", 199.55)])
def test_on_1024_nodes(size, name, due):
    """All chunks judged, and times beside WRHT's 678 us and 6.08 ms."""
    plan = compile("terarack", "all_reduce", size, algorithm=f"circulant_rings:radices={name}")
    assert plan.verify().ok
    assert plan.simulate(**PLAIN).total_s == pytest.approx(due * 1e-6, rel=1e-4)


def test_four_levels_of_an_all_to_all():
    """21 steps instead of 22 of three levels."""
    plan = compile("terarack", "all_to_all", "1KB", assumptions=assumptions("common", **PLAIN))
    assert plan.algorithm == "circulant_rings:radices=2x4x4x32"
    assert plan.schedule.num_steps == 21
    assert plan.verify().ok


@pytest.mark.parametrize(("radices", "nodes"), [("8x32", 256), ("16x17", 272)])
def test_all_nodes_do_the_same(radices, nodes):
    """The claim is true for even radices too, so that one chunk of each orbit proves all."""
    plan = compile(
        f"terarack:nodes={nodes}", "all_reduce", "1MB", algorithm=f"circulant_rings:radices={radices},stands=False"
    )
    assert f"symmetry of order {nodes}, checked" in str(plan.verify())


def test_idle_circuits_that_clash():
    """A stride on the wavelengths of another is refused, also while it is idle."""
    where = nodes((3, 5))
    plan = compile(where, "all_reduce", "1MB", algorithm=name_of((3, 5), True)).circuits

    def moved(i):
        (circuits,) = plan.rounds(i)
        return (replace(circuits, wavelength_lo=np.where(circuits.transfer < 0, 0, circuits.wavelength_lo)),)

    verdict = verify(CircuitPlan(where, plan.schedule, moved))
    assert not verdict.ok
    assert "wavelength_clash" in str(verdict)


def test_a_side_that_is_missing():
    """Without the sums from behind, ranks miss contributions."""
    where = nodes((15,))
    plan = compile(where, "reduce_scatter", "1MB", algorithm="circulant_rings")
    half = replace(plan.schedule, step=lambda i: plan.schedule.step(i).take(slice(0, 15)), symmetries=())
    assert not verify(CircuitPlan(where, half, lambda i: ())).ok


@pytest.mark.parametrize(
    ("algorithm", "collective", "name", "text"),
    [
        ("circulant_rings:radices=3x4", "all_reduce", "terarack:nodes=13", "radices=3x4 is not a product"),
        ("circulant_rings:radices=1x13", "all_reduce", "terarack:nodes=13", "radices=1x13 is not a product"),
        ("circulant_rings:radices=128x8", "all_reduce", "terarack", "need 129 wavelengths of 64"),
        ("circulant_rings", "broadcast", "terarack", "it does all_reduce"),
        ("circulant_rings", "all_reduce", "torus:shape=4x4", "it needs a terarack fabric"),
    ],
)
def test_declined(algorithm, collective, name, text):
    """With a reason."""
    assert text in reason_declined(algorithm, collective, fabric(name))


@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "all_gather"])
def test_the_last_level_is_a_run(collective):
    """However many steps the last level takes, a plan holds the first of them, and all chunks are proven from one."""
    plan = compile("terarack:nodes=1024", collective, "1GB", algorithm="circulant_rings")
    runs, twice = plan.schedule.step.function.runs, 1 + (collective == "all_reduce")
    assert sorted(run.count for run in runs) == sorted([1, 511] * twice)
    verdict = str(plan.verify())
    assert f"{twice * 512 * 2 * 1024:,} transfers" in verdict
    assert "symmetry of order 1,024, checked" in verdict
