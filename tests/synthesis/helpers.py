"""Helpers of the synthesis tests."""

import numpy as np

from opticcl.execute import execute
from opticcl.execute.reference import expected_results, random_arrays
from opticcl.fabrics import fabric
from opticcl.synthesis import Synthesis
from opticcl.synthesis.wafer import Wafer, wafer_of
from opticcl.verify import verify


def wafer(shape: str, lasers: int, waveguides: int = 40, **more) -> Wafer:
    """The optical resources of a whole grid."""
    return wafer_of(fabric("lightpath", shape=shape, lasers=lasers, waveguides=waveguides, **more))


def assert_right(found: Synthesis) -> None:
    """The plan is verified, a step is a round, the bound holds, and integers come out as NumPy computes them."""
    plan = found.circuits
    assert verify(plan).ok
    assert all(len(plan.rounds(i)) == 1 for i in range(found.num_steps))
    assert found.num_steps >= found.lower_bound
    wanted = plan.schedule.collective
    arrays = random_arrays(wanted, 8 * 5 * wanted.num_chunks, "int64", 1)
    for result, due in zip(execute(plan.schedule, arrays), expected_results(wanted, arrays), strict=True):
        assert (result is None) == (due is None)
        assert result is None or np.array_equal(result, due)
