"""Decibels: ratios and powers on a logarithmic scale, in numbers or arrays.

A level in dB is ten times the logarithm of a ratio of powers; dBm is dB over one milliwatt. Losses are positive decibels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError

__all__ = ["db_of_ratio", "dbm_of_watts", "ratio_of_db", "splitting_loss_db", "sum_dbm"]

Number = float | npt.NDArray[np.float64]

MILLIWATT = 1e-3  # the reference of dBm [W]


def db_of_ratio(ratio: Any) -> Any:
    """Decibels of a ratio of powers.

    >>> db_of_ratio(100.0), float(db_of_ratio(2.0).round(4))
    (np.float64(20.0), 3.0103)

    Args: ratio: number or array, above 0.
    Raises: ParameterError: a ratio that is not above 0.
    """
    values = np.asarray(ratio, np.float64)
    if not (values > 0).all():
        raise ParameterError(f"decibels: a ratio of {values.min():g} has none; it must be above 0")
    return 10 * np.log10(values)


def ratio_of_db(db: Any) -> Any:
    """Ratio of powers of decibels.

    >>> ratio_of_db(20.0)
    np.float64(100.0)
    """
    return 10 ** (np.asarray(db, np.float64) / 10)


def dbm_of_watts(watts: Any) -> Any:
    """Level of a power.

    >>> dbm_of_watts(0.001)
    np.float64(0.0)

    Raises: ParameterError: a power that is not above 0.
    """
    return db_of_ratio(np.asarray(watts, np.float64) / MILLIWATT)


def sum_dbm(levels_dbm: Any) -> Any:
    """Level of several powers together, along the last axis, however far from a milliwatt they are.

    >>> float(sum_dbm([0.0, 0.0]).round(4)), float(sum_dbm([-9000.0, -9000.0]).round(4))
    (3.0103, -8996.9897)
    """
    levels = np.asarray(levels_dbm, np.float64)
    most = levels.max(axis=-1, keepdims=True)
    return most[..., 0] + db_of_ratio(ratio_of_db(levels - most).sum(axis=-1))


def splitting_loss_db(ways: Any) -> Any:
    """What each of `ways` equal parts of the light has lost: 10 log10(ways).

    >>> [float(splitting_loss_db(ways).round(2)) for ways in (1, 32, 2048)]
    [0.0, 15.05, 33.11]

    Raises: ParameterError: fewer ways than one.
    """
    if np.min(ways) < 1:
        raise ParameterError(f"splitter: {np.min(ways):g} ways; at least 1")
    return db_of_ratio(ways)
