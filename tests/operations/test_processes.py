"""Real processes over UDP on this machine."""

from __future__ import annotations

import time

import numpy as np
import pytest

import opticcl
from opticcl.errors import ControlError, ParameterError, UnsupportedError
from opticcl.ir import CircuitPlan
from opticcl.operations.oddl_control.processes import Faults, run


def plan_of(fabric: str = "oddl:shape=8", algorithm: str = "halving_doubling", **given: object) -> CircuitPlan:
    """An all-reduce."""
    return opticcl.compile(fabric, "all_reduce", 1000, algorithm=algorithm, **given).circuits  # type: ignore[arg-type]


def integers(nodes: int, *shape: int) -> np.ndarray:
    """Random integers, one array a node."""
    return np.random.default_rng(3).integers(-(10**9), 10**9, (nodes, *shape))


def test_eight_nodes_reach_the_exact_sum_with_a_fifth_of_the_messages_lost():
    """Some are also duplicated, delayed and preceded by garbage; the garbage is refused."""
    arrays = integers(8, 7, 13)  # 91 numbers, which 8 chunks do not divide
    ran = run(plan_of(), arrays, Faults(loss=0.2, duplicate=0.1, garbage=0.2, delay_s=0.01, seed=1))
    assert all((result == arrays.sum(axis=0)).all() for result in ran.results)
    assert ran.results[0].shape == (7, 13)
    assert ran.lost > 0
    assert ran.repeated > 0
    assert ran.garbage > 0
    assert 0 < ran.refused <= ran.garbage


def test_a_ring_on_part_of_a_machine():
    """Nodes that send to one and receive from another; addresses are those of the machine."""
    arrays = integers(3, 5)
    ran = run(plan_of("oddl:shape=4x4", "ring", nodes=[4, 6, 5]), arrays, Faults(loss=0.2, seed=2))
    assert all((result == arrays.sum(axis=0)).all() for result in ran.results)


def test_a_node_that_dies_in_mid_step_is_named_in_time():
    """Its peers give up after their timeout, and all processes end."""
    began = time.monotonic()
    with pytest.raises(ControlError) as caught:
        run(plan_of("oddl:shape=4"), integers(4, 8), Faults(dies=(3, 1)), timeout_s=1.0)
    text = str(caught.value)
    assert "node 3 ended with exit code 9 before it was done" in text
    assert "timed out waiting for node(s)" in text
    assert "all processes have ended" in text
    assert "\n" not in text
    assert time.monotonic() - began < 30


def test_bad_input_is_refused_before_anything_starts():
    """Wrong plans, arrays and faults."""
    plan = plan_of("oddl:shape=2", "ring")
    with pytest.raises(UnsupportedError, match="ideal has no control units"):
        run(plan_of("ideal:nodes=2", "ring"), integers(2, 4))
    gather = opticcl.compile("oddl:shape=2", "all_gather", 8, algorithm="ring").circuits
    with pytest.raises(UnsupportedError, match="not all_gather"):
        run(gather, integers(2, 4))
    with pytest.raises(ParameterError, match="128 processes; at most 64"):
        run(plan_of("oddl:shape=8x16"), integers(128, 4))
    with pytest.raises(ParameterError, match="give 2 arrays of one shape and type"):
        run(plan, integers(3, 4))
    with pytest.raises(ParameterError, match="cannot be reduced"):
        run(plan, np.array([["a"], ["b"]]))
    with pytest.raises(ParameterError, match="no node 7 whose failure could be injected"):
        run(plan, integers(2, 4), Faults(dies=(7, 0)))
    with pytest.raises(ParameterError, match="timeout=0 s must be positive"):
        run(plan, integers(2, 4), timeout_s=0)
    with pytest.raises(ParameterError, match="loss=1 is not a fraction"):
        Faults(loss=1)
    with pytest.raises(ParameterError, match="delay=-1 s"):
        Faults(delay_s=-1)
