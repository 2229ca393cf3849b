"""Crosstalk and bit errors: signal over noise, error rate, Q.

Ratios are linear here. Equation 11 of the WRHT paper defines its ratio in decibels and equation 13 puts that same ratio
into an exponential, which is right for the linear one only: 19.04 there gives 4.3e-3, and 80.12, which is 19.04 dB, 1e-9.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opticcl.errors import ParameterError

__all__ = ["ber_of_q", "ber_of_snr", "q_for_ber", "snr_for_ber"]

_erfc = np.frompyfunc(math.erfc, 1, 1)


def ber_of_snr(snr: Any) -> Any:
    """Bit error rate of a linear signal-to-noise ratio: exp(-SNR / 4) / 2.

    >>> float(f"{ber_of_snr(80.12):.3g}"), float(f"{ber_of_snr(19.04):.2g}")
    (1e-09, 0.0043)

    Source: WRHT equation 13. Reading: its SNR is linear, see above.
    """
    if np.min(snr) < 0:
        raise ParameterError(f"bit error rate: a linear ratio of {np.min(snr):g} is negative; give no decibels")
    return 0.5 * np.exp(-np.asarray(snr, np.float64) / 4)


def snr_for_ber(ber: float) -> float:
    """Linear signal-to-noise ratio that the error rate needs: 4 ln(0.5 / BER).

    >>> round(snr_for_ber(1e-9), 2)
    80.12

    Raises: ParameterError: not above 0 and at most one half.
    """
    return 4 * math.log(0.5 / _checked(ber))


def ber_of_q(q: Any) -> Any:
    """Bit error rate of two levels in Gaussian noise: erfc(Q / sqrt 2) / 2.

    >>> float(f"{ber_of_q(6.0):.3g}")
    9.87e-10
    """
    return np.float64(0.5) * np.asarray(_erfc(np.asarray(q, np.float64) / math.sqrt(2)), np.float64)


def q_for_ber(ber: float) -> float:
    """Q that the error rate needs.

    >>> round(q_for_ber(1e-9), 3)
    5.998

    Raises: ParameterError: not above 0 and at most one half.
    """
    from statistics import NormalDist  # its modules take longer to import than all of optics

    return -NormalDist().inv_cdf(_checked(ber))


def _checked(ber: float) -> float:
    if not 0 < ber <= 0.5:
        raise ParameterError(f"bit error rate: {ber:g} is not above 0 and at most 0.5")
    return ber
