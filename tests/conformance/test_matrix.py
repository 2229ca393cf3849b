"""Every fabric crossed with every algorithm, at even and odd sizes.

What accepts is verified, executed on integers against NumPy, held against the lower bound and made twice; what declines is
printed with its reason at the end of the run (tests/conftest.py).
"""

import numpy as np
import pytest
from tests.matrix import SIZES, cells, compiled

from opticcl.circuits import lower
from opticcl.errors import UnsupportedError
from opticcl.execute import execute
from opticcl.fabric import FABRICS, fabric, fabric_at_scale
from opticcl.schedule import ALGORITHMS, generate
from opticcl.simulate import assumptions, closed_form
from opticcl.verify import verify


@pytest.mark.parametrize(("name", "algorithm"), list(cells()))
def test_cell(name, algorithm):
    """A cell of the matrix at every size: right, exact, not faster than light, and the same again."""
    for size in SIZES:
        plan = compiled(name, algorithm, size)
        if isinstance(plan, str):  # declined
            continue
        schedule = plan.schedule
        verdict = verify(plan)
        assert verdict.ok, f"{name} {algorithm} at {size}: {verdict}"
        assert verdict.exhaustive
        data = np.random.default_rng(size).integers(-1000, 1000, (size, 3, 5))
        for result in execute(schedule, data):
            assert np.array_equal(result, data.sum(axis=0)), f"{name} {algorithm} at {size}"
        for message in (0, 1, 12_345, 10**9):
            timeline = closed_form(plan, message, assumptions())
            assert timeline.total_s >= timeline.lower_bound_s * (1 - 1e-9)
            assert (timeline.total_s == 0) == (size == 1)
        again = lower(plan.fabric, generate(algorithm, "all_reduce", plan.fabric))
        for i in range(schedule.num_steps):
            for one, other in zip(plan.rounds(i), again.rounds(i), strict=True):
                assert all(np.array_equal(getattr(one, c), getattr(other, c)) for c in one.__slots__)


def test_no_fabric_and_no_algorithm_is_left_out():
    """Every fabric has an algorithm and every algorithm a fabric at 16 nodes."""
    pairs = set()
    for name in FABRICS.names():
        for algorithm in ALGORITHMS.names():
            made = fabric_at_scale(name, 16)
            try:
                lower(made, generate(algorithm, "all_reduce", made))
            except UnsupportedError:
                continue
            pairs.add((name, algorithm))
    assert {f for f, _ in pairs} == set(FABRICS.names())
    assert {a for _, a in pairs} == set(ALGORITHMS.names())


@pytest.mark.parametrize(
    "shape",
    [
        (3, 3, 6),
        (4, 4, 8),
        (5, 3, 10),
        (5, 5, 10),
        (7, 7, 21),
        (8, 4, 16),
        (8, 8, 16),
        (8, 8, 32),
        (11, 11, 33),
        (16, 4, 32),
        (16, 8, 32),
        (6, 4, 12),
        (10, 3, 20),
        (9, 9, 18),
    ],
)
def test_ramp_shapes(shape):
    """The RAMP configurations of the notes, and groups that are neither prime nor powers of two."""
    made = fabric("ramp", groups=shape[0], racks=shape[1], wavelengths=shape[2])
    assert verify(lower(made, generate("ramp", "all_reduce", made))).ok
