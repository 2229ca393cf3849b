"""Clos networks: the switch of ODDL, Clos's condition, and how many modules light passes."""

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opticcl.errors import ParameterError
from opticcl.optics.clos import ThreeStage, clos_modules, clos_stages


def test_the_switch_of_oddl():
    """Section 3.B: 64 ports of 8 + 16 + 8 modules, strictly non-blocking since 16 >= 15."""
    switch = ThreeStage(8, 8, 16)
    assert (switch.ports, switch.modules) == (64, 32)
    assert switch.strict_sense_non_blocking
    assert not ThreeStage(8, 8, 14).strict_sense_non_blocking


def blocks(n, r, m):
    """Whether some set of standing connections leaves input 0 and output 0 free and no middle that joins them."""
    ports = range(1, n * r)
    choices = [None, *product(ports, range(m))]  # of the other inputs: nothing, or an output by a middle
    for standing in product(choices, repeat=len(ports)):
        links = [(i, *choice) for i, choice in zip(ports, standing, strict=True) if choice]
        uses = [use for i, j, k in links for use in ((0, i // n, k), (1, j // n, k))]
        if len({j for _, j, _ in links}) < len(links) or len(set(uses)) < len(uses):
            continue  # two inputs on one output, or on one link: this cannot stand
        if not any((0, 0, k) not in uses and (1, 0, k) not in uses for k in range(m)):
            return True
    return False


@pytest.mark.parametrize(("n", "r"), [(1, 2), (2, 2)])
def test_clos_condition_by_trying_everything(n, r):
    """2n - 1 middles never block, one fewer can, for the shapes small enough to try all."""
    assert not blocks(n, r, 2 * n - 1)
    if n > 1:
        assert blocks(n, r, 2 * n - 2)


@given(st.integers(1, 5000), st.integers(2, 64))
def test_stages_are_odd_and_just_enough(ports, size):
    """Modules of size k in 2s - 1 stages make k^s ports."""
    stages = clos_stages(ports, size)
    assert stages % 2 == 1
    assert size ** ((stages + 1) // 2) >= ports
    assert stages == 1 or size ** ((stages - 1) // 2) < ports


@given(st.integers(1, 5000), st.integers(2, 64))
def test_modules_fit_together(ports, size):
    """Every output inside leads to an input, the edges have as many ports outside as asked for, none is split further."""
    modules = clos_modules(ports, size)
    assert len(modules) == clos_stages(ports, size)
    links = [(before.modules * before.outputs, after.modules * after.inputs) for before, after in pairwise(modules)]
    middle = len(links) // 2
    assert all(outside >= inside for outside, inside in links[middle:])
    assert all(inside >= outside for outside, inside in links[:middle])
    assert max(min(stage.inputs, stage.outputs) for stage in modules) <= size
    if ports > size:
        edges = -(-ports // size)
        assert modules[0] == (edges, size, 2 * size)
        assert modules[-1] == (edges, 2 * size, size)
    else:
        assert modules == ((1, ports, ports),)


def test_impossible_networks_are_refused():
    """No modules, or modules of a single port."""
    with pytest.raises(ParameterError):
        ThreeStage(0, 8, 16)
    with pytest.raises(ParameterError):
        clos_stages(8, 1)
