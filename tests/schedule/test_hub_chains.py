"""Chains of hubs on a TeraRack."""

from dataclasses import replace

import numpy as np
import pytest
from tests.schedule.oracle import check
from tests.schedule.test_circulant_rings import PLAIN

from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan
from opticcl.plans.plan import compile
from opticcl.schedule import reason_declined
from opticcl.verify import verify

SHAPES = [(7,), (12,), (3, 5), (4, 3), (2, 3, 4), (3, 3, 3)]


@pytest.mark.parametrize("radices", SHAPES)
@pytest.mark.parametrize("halves", [True, False])
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_data_light_and_time(radices, halves, collective):
    """From two roots; the closed form is depth + S - 1 steps on the wavelengths of a level."""
    n, pieces, size = int(np.prod(radices)), 3, 960_000
    where = fabric("terarack", nodes=n, wavelengths=6)
    name = f"hub_chains:radices={'x'.join(map(str, radices))},pipeline={pieces},halves={halves}"
    for root in (0, n // 2):
        check(name, Request(collective, root), where)
        plan = compile(where, Request(collective, root), size, algorithm=name)
        assert plan.verify().ok
        depth = sum(b - 1 if halves else b // 2 for b in radices)
        piece_s = 8 * size / (1 + halves) / pieces / (6 // len(radices) * where.rate_bits_per_s)
        due = 25e-6 + (depth + pieces - 1) * (1e-6 + piece_s)
        assert plan.simulate(**PLAIN).total_s == pytest.approx(due, rel=1e-9)


def test_on_1024_nodes():
    """1 GB in 4.1 ms; a pipelined tree takes 115."""
    plan = compile("terarack", "broadcast", "1GB", algorithm="hub_chains:radices=32x32,pipeline=256,halves=True")
    assert plan.simulate(**PLAIN).total_s < 4.3e-3
    small = compile("terarack", "broadcast", "1MB", algorithm="hub_chains:radices=8x8x16,pipeline=4")
    assert small.verify().ok


def test_levels_on_the_same_wavelengths_clash():
    """Chains of two levels pass the same segments."""
    where = fabric("terarack:nodes=12")
    plan = compile(where, "broadcast", "1MB", algorithm="hub_chains:radices=3x4").circuits

    def moved(i):
        (circuits,) = plan.rounds(i)
        return (replace(circuits, wavelength_lo=np.zeros_like(circuits.wavelength_lo)),)

    verdict = verify(CircuitPlan(where, plan.schedule, moved))
    assert not verdict.ok
    assert "wavelength_clash" in str(verdict)


@pytest.mark.parametrize(
    ("algorithm", "collective", "name", "text"),
    [
        ("hub_chains:radices=3x4", "broadcast", "terarack:nodes=13", "radices=3x4 is not a product"),
        (
            "hub_chains:radices=2x2x3",
            "broadcast",
            "terarack:nodes=12,wavelengths=2",
            "3 levels need as many wavelengths",
        ),
        ("hub_chains:pipeline=0", "broadcast", "terarack:nodes=12", "pipeline=0 is not 1 to"),
        ("hub_chains", "all_reduce", "terarack:nodes=12", "it does broadcast, reduce"),
    ],
)
def test_declined(algorithm, collective, name, text):
    """With a reason."""
    assert text in reason_declined(algorithm, collective, fabric(name))


def test_gigabytes_go_along_one_chain_each_way():
    """With 1 us a step `auto` cuts 10 GB into as many pieces as about the root of steps times steps that the time is worth."""
    plan = compile("terarack:nodes=160", "broadcast", "10GB", assumptions=assumptions("common", **PLAIN))
    assert plan.algorithm == "hub_chains:radices=160,pipeline=1280,halves=True"
    due = 25e-6 + (159 + 1279) * (1e-6 + 10e9 * 8 / 2 / 1280 / (64 * 40e9))
    assert plan.simulate(**PLAIN).total_s == pytest.approx(due, rel=1e-6)
