"""Shifts by digits: data of every collective on odd shapes, volume, all chunks of a large machine."""

import numpy as np
import pytest
from tests.schedule.oracle import check

import opticcl
from opticcl.fabrics import fabric
from opticcl.schedule.digit_shifts import COLLECTIVES, held_shifts, shift_steps

SHAPES = ("1", "2", "5", "2x3", "3x2", "2x2x3", "3x5", "4x1x2")


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("radices", SHAPES)
def test_every_rank_gets_what_is_due(collective, radices):
    """Every chunk, on links of its own and on a ring that stands."""
    n = int(np.prod([int(radix) for radix in radices.split("x")]))
    for held in ("", ",shifts=1" if n > 1 else ""):
        plan = opticcl.compile(
            f"ocs:nodes={n}", collective, f"{n} KB", algorithm=f"digit_shifts:radices={radices}{held}"
        )
        assert plan.verify(every_chunk=True, exact=True).ok
        assert plan.simulate().total_s >= plan.simulate().lower_bound_s


def test_volume_and_steps():
    """4 x 3: a node sends 3/4 + 2/3 messages in an all_to_all, 11/12 in a reduce_scatter, in 5 steps."""
    for collective, chunks in (("all_to_all", 9 + 8), ("reduce_scatter", 11), ("all_gather", 11), ("all_reduce", 22)):
        plan = opticcl.compile("ocs:nodes=12", collective, "12 KB", algorithm="digit_shifts:radices=4x3")
        steps = [plan.schedule.step(i) for i in range(plan.schedule.num_steps)]
        assert len(steps) == (10 if collective == "all_reduce" else 5)
        assert sum(int(step.size_chunks()[step.src == 0].sum()) for step in steps) == chunks
        assert len(held_shifts(plan.schedule)) == len(steps)


def test_the_steps_of_an_all_reduce_are_mirrored():
    """So that the middle shift stands for two steps."""
    digit, value = shift_steps("all_reduce", (2, 4))
    assert digit.tolist() == digit[::-1].tolist()
    assert value.tolist() == [1, 1, 2, 3, 3, 2, 1, 1]


def test_all_chunks_of_a_large_machine():
    """By the rotation that the schedule claims."""
    plan = opticcl.compile("ocs:nodes=4096", "all_to_all", "1 GB", algorithm="digit_shifts:cuts=4x8,shifts=1x16x256")
    verdict = plan.verify()
    assert verdict.ok
    assert "one of 4,096 chunks played" in str(verdict)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_integers_on_real_arrays(collective):
    """As the reference computes them."""
    check("digit_shifts:cuts=1,shifts=1x1", collective, fabric("ocs:nodes=6"))
