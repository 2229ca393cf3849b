"""Every fabric crossed with every algorithm, at even and odd sizes.

What is accepted is verified, executed on integers against NumPy, held against the lower bound and generated twice.
"""

import numpy as np
import pytest
from tests.matrix import cases, cells, compiled, is_deep, promised, shared_out

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.collective import COLLECTIVES, Request
from opticcl.errors import UnsupportedError
from opticcl.execute import execute
from opticcl.execute.reference import expected_results, matches
from opticcl.fabrics import FABRICS, fabric
from opticcl.ir.phases import PhaseRows
from opticcl.registry import write_call
from opticcl.schedule import ALGORITHMS, generate
from opticcl.simulate import class_bounds, least_fixed_s, least_transfer_s, profile, schedule_facts
from opticcl.verify import verify

PUBLISHED = assumptions("published")


@pytest.mark.parametrize(("name", "algorithm", "number"), shared_out(cells(), third=1))
def test_cell(name, algorithm, number):
    """A cell of the matrix: right, exact, not faster than light, and the same again; for every collective and size."""
    some, others = ([case for case in cases(name) if is_deep(*case) is deep] for deep in (False, True))
    assert checked(name, algorithm, some) or checked(name, algorithm, others)


@pytest.mark.deep
@pytest.mark.parametrize(("name", "algorithm"), cells())
def test_cell_at_more_sizes(name, algorithm):
    """The same at the other sizes and roots; some algorithms are made for none of these."""
    checked(name, algorithm, [case for case in cases(name) if is_deep(*case)])


WHOLE = "lightpath:waveguides=2,switch_unit=waveguide"
"""A machine whose switches move whole waveguides, of which there are few."""

OF_LIGHTPATH = [algorithm for name, algorithm in cells() if name == "lightpath"]


@pytest.mark.parametrize("algorithm", ["lumorph:radix=4", "disjoint_trees"])
def test_cell_of_whole_waveguides(algorithm):
    """The same on LIGHTPATH's other reading of switches: every operation at one odd number of nodes."""
    assert checked(WHOLE, algorithm, [case for case in cases("lightpath") if case[0] == 9])


@pytest.mark.deep
@pytest.mark.parametrize("algorithm", OF_LIGHTPATH)
def test_cell_of_whole_waveguides_at_more_sizes(algorithm):
    """The same by every algorithm at more sizes, of which some suit it."""
    checked(WHOLE, algorithm, [case for case in cases("lightpath") if case[0] in (2, 5, 8, 12, 16)])


def checked(name, algorithm, tried):
    """Check every plan of a cell that there is, and return their number."""
    accepted = 0
    for size, request in tried:
        plan = compiled(name, algorithm, size, request)
        if not isinstance(plan, str):
            check(plan, f"{name} {algorithm} {request} at {size}")
            accepted += 1
    return accepted


def check(plan, where):
    """One plan, from all sides."""
    wanted, size = plan.schedule.collective, plan.fabric.num_nodes
    verdict = verify(plan)
    assert verdict.ok, f"{where}: {verdict}"
    assert verdict.exhaustive, where

    data = np.random.default_rng(size).integers(-1000, 1000, (size, *shape_of_message(wanted)))
    for rank, (result, due) in enumerate(
        zip(execute(plan.schedule, data), expected_results(wanted, data), strict=True)
    ):
        assert matches(result, due, size), f"{where}: rank {rank}"

    steps = plan.schedule.steps
    for i, sends in enumerate(steps.sends):  # without a list; of a function only where it is known
        listed = len(steps(i)) > 0
        assert sends == listed or (listed and not isinstance(steps.phases[steps.phase_of(i)[0]].rows, PhaseRows)), where

    bounds = list(class_bounds(plan.schedule, plan.fabric, PUBLISHED))
    least = least_fixed_s(schedule_facts(plan.schedule, plan.fabric), plan.fabric, PUBLISHED)
    for run, least_s in zip(range(len(bounds) + 1), least, strict=True):
        assert least_s <= sum(bound.fixed_s for bound in bounds[run:]) * (1 + 1e-9), where
    times = profile(plan, PUBLISHED)
    for message in (0, 12_345, 10**9):
        timeline = times.timeline(message)
        assert timeline.total_s >= timeline.lower_bound_s * (1 - 1e-9), where
        for i, (took_s, bound) in enumerate(
            zip(timeline.step_s, bounds, strict=True)
        ):  # or `auto` passes over the fastest
            assert bound.fixed_s + (bound.moving_s + bound.summing_s) * message <= took_s * (1 + 1e-9), where
            assert bound.moving_s * message <= timeline.transfer_s[i] * (1 + 1e-9), where
            assert bound.summing_s * message <= timeline.compute_s[i] * (1 + 1e-9), where
        least_s = least_transfer_s(wanted, plan.fabric, message, PUBLISHED)
        assert least_s <= timeline.transfer_s.sum() * (1 + 1e-9), where
        assert (timeline.total_s > 0) == (plan.schedule.num_steps > 0), where
    assert plan.schedule.num_steps > 0 or size == 1 or wanted.name == "send_recv", where

    again = lower(plan.fabric, generate(written(plan), request_of(wanted), plan.fabric))
    for i in {0, plan.schedule.num_steps // 2, plan.schedule.num_steps - 1} if plan.schedule.num_steps else ():
        for one, other in zip(plan.rounds(i), again.rounds(i), strict=True):
            assert all(np.array_equal(getattr(one, c), getattr(other, c)) for c in one.__slots__), where


def shape_of_message(wanted):
    """A small odd shape that the collective can cut."""
    if wanted.owner is None:
        return (3, 5)
    return (3, 2) if wanted.name in ("all_gather", "gather", "send_recv") else (3 * wanted.num_ranks, 2)


def request_of(wanted):
    """What was asked for."""
    return Request(wanted.name, wanted.root, wanted.shift)


def written(plan):
    """The algorithm of a plan as a user writes it."""
    return write_call(plan.schedule.name, {k: v for k, v in plan.schedule.parameters.items() if v is not None})


def test_every_system_has_every_operation():
    """What the papers promise: some algorithm does each operation on each optical system at 16 nodes."""
    for name, collective in promised():
        plans = (compiled(name, algorithm, 16, Request(collective)) for algorithm in ALGORITHMS.names())
        assert any(not isinstance(plan, str) for plan in plans), f"{name} {collective}"


def test_no_fabric_and_no_algorithm_is_left_out():
    """Every fabric has an algorithm and every algorithm a fabric; some need other channels, sides or parts."""
    machines = [fabric(written) for written in (
        "sipac:radix=3,levels=2,failed=switch:1", "sipac:radix=4,levels=2,channels=ring", "lightpath:shape=4x4,failed=laser:5",
        "oddl:shape=4x4",
    )]  # fmt: skip
    rest = set(ALGORITHMS.names()) - {algorithm.partition(":")[0] for _, algorithm in cells()}
    assert {name for name, _ in cells()} == set(FABRICS.names())
    for algorithm in rest:
        assert any(is_compiled(algorithm, collective, made) for made in machines for collective in COLLECTIVES), (
            algorithm
        )


def is_compiled(algorithm, collective, made):
    """Whether a fabric has circuits for an algorithm."""
    try:
        lower(made, generate(algorithm, collective, made))
    except UnsupportedError:
        return False
    return True


@pytest.mark.parametrize("shape", [(6, 4, 12), (10, 3, 20), (9, 9, 18)])
def test_ramp_without_a_field(shape):
    """Groups that are neither prime nor a power of two."""
    groups, racks, wavelengths = shape
    made = fabric("ramp", groups=groups, racks=racks, wavelengths=wavelengths)
    assert verify(lower(made, generate("ramp", "all_reduce", made))).ok
