"""A collective at many sizes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

import opticcl
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics import fabric
from opticcl.plans.sweep import MOST_SIZES, fastest_of, sizes_by, sweep


@given(st.integers(1, 10**6), st.integers(0, 10**9), st.floats(1.05, 100))
def test_sizes_rise_from_the_smallest_to_the_largest(smallest, more, factor):
    """By about the factor, none twice."""
    found = sizes_by(smallest, smallest + more, factor)
    assert found[0] == smallest
    assert found == sorted(set(found))
    assert found[-1] <= smallest + more < (found[-1] + 1) * factor + 1
    for earlier, later in pairwise(found):
        assert earlier * factor - factor - 1 <= later <= max(earlier * factor + factor + 1, earlier + 1)


@pytest.mark.parametrize(("smallest", "largest", "factor"), [(0, 8, 2), (9, 8, 2), (1, 8, 1), (1, 8, float("nan"))])
def test_sizes_that_make_no_sense(smallest, largest, factor):
    """One line each."""
    with pytest.raises(ParameterError, match="sweep: "):
        sizes_by(smallest, largest, factor)
    with pytest.raises(ParameterError, match=f"more than {MOST_SIZES}"):
        sizes_by(10**6, 10**9, 1.0001)


@examples(6)
@given(st.sampled_from(["ideal:nodes=7", "lightpath:shape=2x3", "sipac:radix=2,levels=3", "torus:shape=3x3"]))
def test_every_row_is_what_compile_and_simulate_say(where):
    """Algorithm, time and verdict; bus bandwidth as nccl-tests define it."""
    found = sweep(fabric(where), "all_reduce", [1, 1000, 10**6, 10**9], assumptions="published")
    n = found.fabric.num_nodes
    for point in found.points:
        alone = opticcl.compile(where, "all_reduce", point.size_bytes, assumptions="published")
        assert point.total_s == pytest.approx(alone.simulate(assumptions="published").total_s, rel=1e-12)
        assert point.total_s >= point.lower_bound_s * (1 - 1e-9)
        assert point.algorithm_bytes_per_s == pytest.approx(point.size_bytes / point.total_s)
        assert point.bus_bytes_per_s == pytest.approx(point.algorithm_bytes_per_s * 2 * (n - 1) / n)
        assert point.bus_bytes_per_s <= found.fabric.node_rate_bits_per_s / 8 * (1 + 1e-9)
        assert point.verdict == "right"
    assert [row["size_bytes"] for row in found.rows()] == [1, 1000, 10**6, 10**9]


def test_the_fastest_of_several():
    """At each size, those that tie within 5 % too; the small rate loses where bytes count."""
    slow, quick = (
        sweep(fabric("ideal", nodes=4, rate=rate), "all_gather", [8, 10**9], assumptions="published")
        for rate in (1e9, 1e12)
    )
    assert fastest_of([slow, quick]) == [[1, 0], [1]]
    assert fastest_of([quick, quick]) == [[0, 1], [0, 1]]


def test_what_cannot_be_swept():
    """A barrier has no size; a named algorithm that declines is not replaced."""
    where = fabric("ideal", nodes=4)
    with pytest.raises(ParameterError, match="barrier has no message"):
        sweep(where, "barrier", [1], assumptions="published")
    with pytest.raises(UnsupportedError, match="wrht cannot do all_reduce on ideal"):
        sweep(where, "all_reduce", [1], algorithm="wrht", assumptions="published")


def test_a_wrong_plan_is_reported():
    """The printed RAMP tables do not sum up."""
    found = sweep(
        fabric("ramp:groups=3,racks=3,wavelengths=6"),
        "all_reduce",
        [10**6],
        algorithm="ramp:variant=published",
        assumptions="published",
    )
    assert found.points[0].verdict == "wrong"
    assert not found.points[0].ranked
