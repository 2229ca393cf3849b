"""Crosstalk and bit errors: known values, and that less noise never makes more errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opticcl.errors import ParameterError
from opticcl.optics.crosstalk import ber_of_q, ber_of_snr, q_for_ber, snr_for_ber
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


@pytest.mark.parametrize(
    "call",
    [
        lambda: snr_for_ber(0.0),
        lambda: q_for_ber(0.7),
        lambda: ber_of_snr(-1.0),
    ],
)
def test_what_has_no_meaning_is_refused(call):
    """Error rates that do not exist, and ratios in decibels."""
    with pytest.raises(ParameterError):
        call()
