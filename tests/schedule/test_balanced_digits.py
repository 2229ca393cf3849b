"""Balanced digits: data of every collective on odd and even radices, the law of a step, what is declined."""

import numpy as np
import pytest
from tests.schedule.oracle import check

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric
from opticcl.schedule.digit_shifts import COLLECTIVES

CASES = {  # nodes, planes, parameters
    "own links": (12, 3, ""),
    "one digit": (7, 2, "radices=7,shifts=1x6"),
    "ternary, held": (27, 2, "cuts=2,shifts=1x26x9x18"),
    "even digits": (16, 2, "radices=4x4"),
    "rows and columns": (12, 2, "sides=3x4,shifts=4x1"),
    "rows and columns both ways": (16, 4, "sides=4x4,shifts=4x12x1x3"),
    "levels of two sides": (24, 3, "sides=4x6,radices=2x2x2x3"),
    "a plane that stands idle": (8, 2, "sides=2x4,radices=2x4,shifts=4x1"),
}


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("case", CASES)
def test_every_rank_gets_what_is_due(collective, case):
    """Every chunk and all light."""
    nodes, planes, given = CASES[case]
    if "cuts" in given and collective in ("all_gather", "all_reduce"):
        given = ""  # steps in another order
    plan = opticcl.compile(
        f"ocs:nodes={nodes},planes={planes}", collective, "1 MB", algorithm=f"balanced_digits:{given}".rstrip(":")
    )
    assert plan.verify(every_chunk=True, exact=True).ok
    assert plan.simulate().total_s >= plan.simulate().lower_bound_s


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_integers_on_real_arrays(collective):
    """As the reference computes them."""
    check("balanced_digits:sides=2x4,shifts=4x1", collective, fabric("ocs:nodes=8,planes=2"))


def test_rows_and_columns_take_what_the_closed_form_says():
    """9 x 9 on two planes: two steps of 1 us + 8 links of 1 us + 36 blocks of half a message over 9 at 100 GB/s."""
    where = "ocs:nodes=81,planes=2,rate=800Gb/s,reconfiguration=1ms,hop_delay=1us,endpoint_latency=1us"
    plan = opticcl.compile(where, "all_to_all", "1 MB", algorithm="balanced_digits:sides=9x9,shifts=9x1")
    took = plan.simulate(assumptions=assumptions("published", initial="warm", compute="none")).total_s
    assert took == pytest.approx(2 * (1e-6 + 8e-6 + 36 * 1e6 / 18 / 100e9), rel=1e-6)


def test_a_step_of_balanced_ternary_digits_takes_a_link():
    """27 nodes, +w and -w on a plane each: three steps of one link with a third of a message, two changes."""
    where = "ocs:nodes=27,planes=2,rate=800Gb/s,reconfiguration=10us,hop_delay=1us,endpoint_latency=1us"
    plan = opticcl.compile(where, "all_to_all", "3 MB", algorithm="balanced_digits")
    took = plan.simulate(assumptions=assumptions("published", initial="warm", compute="none")).total_s
    assert took == pytest.approx(3 * (2e-6 + 1e6 / 100e9) + 2 * 10e-6, rel=1e-6)


def test_all_planes_carry_the_same_where_digits_are_odd():
    """On rings both ways, whatever the side."""
    plan = opticcl.compile(
        "ocs:nodes=25,planes=4", "all_to_all", 10**6, algorithm="balanced_digits:sides=5x5,shifts=5x20x1x4"
    )
    for step in range(plan.schedule.num_steps):
        (circuits,) = plan.circuits.rounds(step)
        transfers = plan.schedule.step(step)
        load = np.zeros(4 * 25)
        np.add.at(load, circuits.hops % 100, transfers.size_chunks()[circuits.transfer[circuits.hop_owner()]])
        assert (load == load[0]).all()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("sides=3x5", "sides=3x5 has 15 nodes, not 12"),
        ("sides=1x12", "sides=1x12 has a side of one node; leave it out"),
        ("radices=5x2", "radices=5x2 are not as many factors of each of the sides 12"),
        ("sides=3x4,radices=3x2x2", "radices=3x2x2 are not as many factors of each of the sides 3x4"),
        ("radices=12x1", "radices=12x1 has a digit of one value"),
        ("cuts=1", "cuts=1 without shifts; give 2 shifts a segment"),
        ("shifts=1", "shifts=1 are 1; 1 segments on 2 planes need 2"),
        ("radices=3x4,cuts=2,shifts=1x2x3x4", "cuts=2 are not ascending below the 2 steps"),
        ("shifts=1x12", "shifts=1x12 are not all 1 to 11"),
        ("radices=12,shifts=2x4", "in step 0 no plane of the shifts 2x4 leads from node 0 to node 1; try shift 1"),
    ],
)
def test_what_it_declines(given, reason):
    """In one line, with what to try."""
    with pytest.raises(UnsupportedError) as caught:
        opticcl.compile("ocs:nodes=12,planes=2", "all_to_all", 1000, algorithm=f"balanced_digits:{given}")
    assert reason in str(caught.value)
