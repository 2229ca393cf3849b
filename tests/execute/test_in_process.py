"""Schedules on real arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import fabrics

import opticcl
from opticcl.errors import ParameterError

TYPES = ["int8", "uint8", "int16", "int64", "uint64", "float16", "float32", "float64", "complex64", "bool"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (2, 0), (64,)])
def test_every_type_and_shape(dtype, shape):
    """Sums of whole numbers are exact in every type; small types wrap as NumPy's do."""
    plan = opticcl.compile("ideal:nodes=5", "all_reduce", "1KB", algorithm="ring")
    data = np.random.default_rng(1).integers(0, 60, (5, *shape)).astype(dtype)
    for result in plan.execute(data):
        assert result.dtype == data.dtype
        assert result.shape == shape
        assert np.array_equal(result, data.sum(axis=0, dtype=dtype))


@settings(max_examples=30, deadline=None)
@given(fabrics(), st.integers(0, 70))
def test_every_fabric_and_length(fabric, length):
    """Messages that the chunks do not divide, shorter than the chunks, and of nothing."""
    plan = opticcl.compile(fabric, "all_reduce", "1KB")
    data = np.random.default_rng(2).integers(-(2**40), 2**40, (fabric.num_nodes, length))
    assert all(np.array_equal(result, data.sum(axis=0)) for result in plan.execute(data))


def test_what_was_given_stays():
    """Arrays in, new arrays out."""
    plan = opticcl.compile("ideal:nodes=3", "all_reduce", 8, algorithm="ring")
    data = [np.full(4, rank) for rank in range(3)]
    results = plan.execute(data)
    assert [a.tolist() for a in data] == [[0] * 4, [1] * 4, [2] * 4]
    results[0][:] = 9
    assert results[1].tolist() == [3] * 4


@pytest.mark.parametrize(
    "arrays",
    [
        [np.zeros(3)] * 2,
        [np.zeros(3), np.zeros(4), np.zeros(3)],
        [np.zeros(3), np.zeros(3, int), np.zeros(3)],
        [np.array(["a"])] * 3,
        [np.array([object()])] * 3,
    ],
)
def test_arrays_that_do_not_fit(arrays):
    """One line that says which array and why."""
    plan = opticcl.compile("ideal:nodes=3", "all_reduce", 8, algorithm="ring")
    with pytest.raises(ParameterError, match="execute: "):
        plan.execute(arrays)
