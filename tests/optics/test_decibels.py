"""Decibels: both ways, sums, splitting, and what has none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opticcl.errors import ParameterError
from opticcl.optics.decibels import db_of_ratio, dbm_of_watts, ratio_of_db, splitting_loss_db, sum_dbm

LEVELS = st.floats(-200, 200)


@given(LEVELS)
def test_there_and_back(db):
    """A ratio's decibels make the ratio again, and a power its level."""
    assert db_of_ratio(ratio_of_db(db)) == pytest.approx(db, abs=1e-9)
    assert dbm_of_watts(1e-3 * ratio_of_db(db)) == pytest.approx(db, abs=1e-9)


@given(LEVELS, LEVELS)
def test_ratios_multiply_where_decibels_add(first, second):
    """The law of the logarithm."""
    assert db_of_ratio(ratio_of_db(first) * ratio_of_db(second)) == pytest.approx(first + second, abs=1e-9)


@given(st.lists(st.floats(-60, 30), min_size=1, max_size=6))
def test_powers_together_are_more_than_the_strongest(levels):
    """And at most the strongest as often as there are powers."""
    total = float(sum_dbm(levels))
    assert max(levels) - 1e-9 <= total <= max(levels) + float(splitting_loss_db(len(levels))) + 1e-9


def test_known_levels():
    """One milliwatt is 0 dBm, half of it 3.01 dB less, and 1:32 splitters lose 15.05 dB."""
    assert dbm_of_watts(1e-3) == pytest.approx(0.0)
    assert dbm_of_watts(np.array([1.0, 5e-4])) == pytest.approx([30.0, -3.0103], abs=1e-4)
    assert splitting_loss_db([1, 32, 2048]) == pytest.approx([0.0, 15.0515, 33.1133], abs=1e-4)


@pytest.mark.parametrize("call", [lambda: db_of_ratio(0.0), lambda: dbm_of_watts([-1e-3, 1.0])])
def test_nothing_has_no_level(call):
    """Zero and negative powers are refused with their value."""
    with pytest.raises(ParameterError, match="must be above 0"):
        call()


def test_less_than_one_way_is_refused():
    """A splitter has at least one way."""
    with pytest.raises(ParameterError, match="at least 1"):
        splitting_loss_db(0)
