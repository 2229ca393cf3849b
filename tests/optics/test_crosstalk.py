"""Crosstalk and bit errors: known values, and that less noise never makes more errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opticcl.errors import ParameterError
from opticcl.optics.crosstalk import ber_of_q, ber_of_snr, crosstalk_ratio, q_for_ber, signal_to_noise, snr_for_ber
from opticcl.optics.decibels import db_of_ratio


def test_the_linear_ratio_of_equation_13():
    """WRHT: 80.12, which is 19.04 dB, for 1e-9; 19.04 put in as it stands gives 4.3e-3."""
    assert snr_for_ber(1e-9) == pytest.approx(80.12, abs=5e-3)
    assert db_of_ratio(snr_for_ber(1e-9)) == pytest.approx(19.04, abs=5e-3)
    assert ber_of_snr(19.04) == pytest.approx(4.3e-3, rel=0.01)


def test_q_of_the_textbook():
    """Q = 6 is 1e-9, Q = 7 is 1.3e-12."""
    assert ber_of_q([6.0, 7.0]) == pytest.approx([9.87e-10, 1.28e-12], rel=0.01)


@given(st.floats(1e-15, 0.4))
def test_there_and_back(ber):
    """The ratio and the Q of an error rate have that error rate."""
    assert ber_of_snr(snr_for_ber(ber)) == pytest.approx(ber)
    assert ber_of_q(q_for_ber(ber)) == pytest.approx(ber, rel=1e-6)


@given(st.floats(0, 200), st.floats(0, 50))
def test_errors_fall_with_the_signal(snr, more):
    """Monotone, and never more than one half."""
    assert ber_of_snr(snr + more) <= ber_of_snr(snr) <= 0.5
    assert ber_of_q(snr + more) <= ber_of_q(snr) <= 0.5


@given(st.integers(0, 1000), st.integers(0, 1000), st.floats(1e-6, 1e-2), st.floats(0, 1e-2))
def test_more_interfaces_leak_more(first, more, receiver, transmitter):
    """Equation 12 is linear in the interfaces, so the ratio falls with them."""
    near, far = (1 / (crosstalk_ratio(n, receiver, transmitter) + 1e-9) for n in (first, first + more))
    assert far <= near


def test_signal_over_noise():
    """Crosstalk and other noise add up."""
    assert signal_to_noise(1e-3, 1e-5, 1e-5) == pytest.approx(50)
    assert signal_to_noise(np.array([1.0, 2.0]), 0.5) == pytest.approx([2.0, 4.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: snr_for_ber(0.0),
        lambda: q_for_ber(0.7),
        lambda: ber_of_snr(-1.0),
        lambda: signal_to_noise(1.0, 0.0),
        lambda: signal_to_noise(-1.0, 1.0),
        lambda: crosstalk_ratio(1, -0.1, 0.0),
    ],
)
def test_what_has_no_meaning_is_refused(call):
    """Error rates that do not exist, negative powers, no noise at all."""
    with pytest.raises(ParameterError):
        call()
