"""OpTree: all-gathers that are right, on the fewest steps, with the wavelengths that its stages need."""

from itertools import product
from math import prod

import pytest

import opticcl
from opticcl.schedule.optree import stages_of


def steps_of_a_block(stages, w):
    """By the table in the head of the module."""
    blocks, steps = 1, 0.0
    for stage in stages:
        steps += blocks * stage.rounds(w) / stage.width(w)
        blocks *= stage.radix
    return steps


@pytest.mark.parametrize(
    ("nodes", "w"),
    [(1, 64), (2, 1), (3, 1), (7, 4), (7, 64), (9, 1), (12, 4), (15, 4), (16, 64), (27, 4), (30, 64), (36, 1)],
)
def test_all_gathers_are_verified(nodes, w):
    """Data and light, on few wavelengths and on many; each step has as many rounds as its stage says."""
    plan = opticcl.compile(
        f"terarack:nodes={nodes},wavelengths={w}", "all_gather", "1MB", algorithm="optree", ignore_light=True
    )
    assert plan.verify().ok
    rounds = [len(plan.circuits.rounds(i)) for i in range(plan.schedule.num_steps)]
    assert rounds == [stage.rounds(w) for stage in stages_of(nodes, w)]


@pytest.mark.parametrize("stages", ["2x2x3x3", "6x6", "9x4", "4x9", "36", "3x12"])
def test_other_stages_are_verified(stages):
    """However the nodes are divided, odd numbers of them too."""
    where = "terarack:nodes=36,wavelengths=3"
    plan = opticcl.compile(where, "all_gather", "1MB", algorithm=f"optree:stages={stages}", ignore_light=True)
    assert plan.verify().ok
    assert plan.schedule.num_steps == len(stages.split("x"))


def divisions(nodes):
    """All orders of factors."""
    return [(nodes,)] + [(m, *rest) for m in range(2, nodes) if nodes % m == 0 for rest in divisions(nodes // m)]


@pytest.mark.parametrize(("nodes", "w"), [*product([8, 12, 30, 64, 96], [1, 3, 8, 64])])
def test_no_other_stages_take_fewer_steps(nodes, w):
    """Every way to divide the nodes is tried."""
    least = min(steps_of_a_block(stages_of(nodes, w, radices), w) for radices in divisions(nodes))
    found = stages_of(nodes, w)
    assert prod(stage.radix for stage in found) == nodes
    assert steps_of_a_block(found, w) == pytest.approx(least)


@pytest.mark.parametrize(("m", "k", "w"), [(4, 5, 64), (4, 4, 32), (2, 6, 1), (8, 2, 8)])
def test_equal_stages_take_the_steps_of_the_formula(m, k, w):
    """(2 k - 1) N^(1 + 1/k) / 8 w, where all divisions leave nothing over; m = 2 has a wavelength more in the first stage."""
    nodes = m**k
    first_has_more = nodes / 2 * 1 / w - nodes * m / 8 / w if m == 2 else 0
    formula = (2 * k - 1) * nodes * m / (8 * w) + first_has_more
    assert steps_of_a_block(stages_of(nodes, w, (m,) * k), w) == pytest.approx(formula)


def test_far_nodes_are_sent_a_block_and_neighbours_many():
    """Stage 1 goes round the ring, the last one stays within a segment."""
    plan = opticcl.compile(
        "terarack:nodes=16,wavelengths=8", "all_gather", 16, algorithm="optree:stages=4x4", ignore_light=True
    )
    first, last = plan.schedule.step(0), plan.schedule.step(1)
    assert (set(first.chunk_n.tolist()), set(last.chunk_n.tolist())) == ({1}, {4})
    assert set(((first.dst - first.src) % 16).tolist()) == {4, 8, 12}
    assert (last.src // 4 == last.dst // 4).all()
