"""Combs and micro-rings: the testbed of SiPAC, and switches whose rings do not fit the comb."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opticcl.errors import ParameterError
from opticcl.optics.micro_rings import (
    dropped_lines,
    frequency_hz,
    lines_of_span,
    range_for,
    spacing_m,
    span_hz,
    undropped_lines,
    wavelength_m,
)


def test_numbers_of_the_testbed():
    """SiPAC section IV-A, notes S10, S11, S39: 1.582 and 1.612 nm, 9.025 and 9.031 lines, channels of the grid."""
    assert [spacing_m(201.5e9, at) * 1e9 for at in (1534e-9, 1548e-9)] == pytest.approx([1.582, 1.611], abs=2e-3)
    assert lines_of_span(span_hz(1534.07e-9, 1548.48e-9), 201.5e9) == pytest.approx(9.025, abs=1e-3)
    assert lines_of_span(span_hz(1532.48e-9, 1546.87e-9), 201.5e9) == pytest.approx(9.031, abs=1e-3)
    assert frequency_hz(np.array([1550.12e-9, 1556.55e-9])) / 1e9 == pytest.approx([193400, 192601], abs=1)


@given(st.floats(1e-6, 2e-6))
def test_wavelength_and_frequency_there_and_back(at):
    """c over c over lambda."""
    assert wavelength_m(frequency_hz(at)) == pytest.approx(at)


def test_eight_rings_on_a_period_of_nine():
    """Notes S12, S12b: rings drop 2 or 3 lines of 22, lines 8 and 17 go to nobody; nine rings take all."""
    counts = dropped_lines(np.arange(9), 9.025, 22).sum(axis=1)
    assert set(counts.tolist()) == {2, 3}
    assert undropped_lines(8, 9.025, 22) == [8, 17]
    assert undropped_lines(9, 9.025, 22) == []


@given(st.integers(1, 16), st.integers(1, 64))
def test_a_switch_whose_rings_match_takes_every_line_once(rings, lines):
    """With a range of as many lines as rings, each line has one ring, its number modulo the rings."""
    rings = min(rings, lines)
    dropped = dropped_lines(np.arange(rings), range_for(rings, 1.0), lines)
    assert (dropped.sum(axis=0) == 1).all()
    assert (dropped.argmax(axis=0) == np.arange(lines) % rings).all()


def test_a_range_that_is_too_short_gives_a_line_to_two_rings():
    """Range of seven lines, eight rings: lines 0 and 7 share a ring's resonance."""
    assert dropped_lines(np.arange(8), 7.0, 8).sum(axis=0).max() == 2


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: frequency_hz(0.0), "not above 0"),
        (lambda: wavelength_m(-1.0), "not above 0"),
        (lambda: dropped_lines([22], 9.0, 22), "try 0 to 21"),
        (lambda: dropped_lines([0], 0.5, 22), "at least 1"),
        (lambda: lines_of_span(1e12, 0.0), "not above 0"),
    ],
)
def test_what_no_comb_has_is_refused(call, says):
    """Rings tuned to no line, ranges below a line."""
    with pytest.raises(ParameterError, match=says):
        call()
