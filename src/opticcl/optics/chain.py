"""Elements one after the other: power along the path, its lowest place, the margin, and where amplifiers belong.

All powers are levels [dBm], all losses and gains decibels; arrays have a row for each path and a column for each element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir.light import Counts
from opticcl.optics.decibels import dbm_of_watts, sum_dbm

__all__ = ["Chain", "amplifier_places", "optical_snr_db"]

Levels = npt.NDArray[np.float64]

ROUNDING_DB = 1e-9  # sums of decibels are exact to this
MOST_AMPLIFIERS = 1000  # in cascade; more than any machine has


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of elements with its values, a column each.

    Args:
        launch_dbm: power at its beginning [dBm].
        loss_db: of one piece, float64 (elements,) [dB].
        once_db: lost once wherever there is at least one piece, such as by splitting, float64 (elements,) [dB].
        gain_db: of one piece, 0 where it does not amplify, float64 (elements,) [dB].
        most_dbm: what an amplifier gives at most, infinite where nothing limits, float64 (elements,) [dBm].
        sensitivity_dbm: what the detector needs [dBm].
        floor_dbm: what no place on the path may fall below [dBm]; minus infinity if there is no such demand.
        penalty_db: what the signal's own faults cost at the detector [dB].
    Raises: ParameterError: a negative loss, gain or penalty.
    """

    launch_dbm: float
    loss_db: Levels
    once_db: Levels
    gain_db: Levels
    most_dbm: Levels
    sensitivity_dbm: float
    floor_dbm: float = -np.inf
    penalty_db: float = 0.0

    def __post_init__(self) -> None:
        for name, values in (("loss", self.loss_db), ("splitting loss", self.once_db), ("gain", self.gain_db)):
            if len(values) and not values.min() >= 0:
                other = "gain" if name == "loss" else "loss"
                raise ParameterError(f"chain: a {name} of {values.min():g} dB is negative; it would be a {other}")
        if not self.penalty_db >= 0:
            raise ParameterError(f"chain: a penalty of {self.penalty_db:g} dB is negative; 0 or more")

    def powers_dbm(self, counts: Counts) -> Levels:
        """Power behind each element, float64 (paths, elements) [dBm]."""
        counts = np.atleast_2d(counts)
        powers = np.empty(counts.shape)
        for k, power in enumerate(self._walk(counts)):
            powers[:, k] = power
        return powers

    def received_dbm(self, counts: Counts) -> Levels:
        """Power at the detector, less the penalty, float64 (paths,) [dBm]."""
        return self._ends(counts)[0] - self.penalty_db

    def margin_db(self, counts: Counts) -> Levels:
        """By how much the light does more than it must, at the detector or where it comes closest to the floor.

        Returns: float64 (paths,) [dB]; below 0 the light does not close.
        """
        last, lowest = self._ends(counts)
        return np.minimum(last - self.penalty_db - self.sensitivity_dbm, lowest - self.floor_dbm)

    def closes(self, counts: Counts) -> npt.NDArray[np.bool_]:
        """Whether enough light arrives on each path, bool (paths,)."""
        enough: npt.NDArray[np.bool_] = self.margin_db(counts) >= -ROUNDING_DB
        return enough

    def _walk(self, counts: Counts) -> Iterator[Levels]:
        """Power behind each element in turn, float64 (paths,)."""
        power: Levels = np.full(len(counts), float(self.launch_dbm))
        for k in range(counts.shape[1]):
            pieces = counts[:, k]
            power = power - pieces * self.loss_db[k] - (pieces > 0) * self.once_db[k]
            if self.gain_db[k]:
                amplified = np.minimum(power + pieces * self.gain_db[k], np.maximum(self.most_dbm[k], power))
                power = np.where(pieces > 0, amplified, power)
            yield power

    def _ends(self, counts: Counts) -> tuple[Levels, Levels]:
        """Power at the end and at the lowest place, without keeping what lies between."""
        counts = np.atleast_2d(counts)
        last = lowest = np.full(len(counts), float(self.launch_dbm))
        for power in self._walk(counts):
            last, lowest = power, np.minimum(lowest, power)
        return last, lowest


def amplifier_places(
    launch_dbm: float,
    loss_db: npt.ArrayLike,
    gain_db: float,
    sensitivity_dbm: float,
    floor_dbm: float = -np.inf,
    most_dbm: float = np.inf,
) -> list[int]:
    """Before which elements amplifiers must stand, as few of them as do: each as late as the light allows.

    To wait is never worse: the same gain is added, and an amplifier that saturates clips less of it. With a floor, an
    amplifier stands before the element that would break it; without, all that are needed stand before the detector.

    Args:
        launch_dbm: power at the beginning [dBm].
        loss_db: of each element, in order, (elements,) [dB].
        gain_db: of one amplifier [dB].
        sensitivity_dbm, floor_dbm: what the detector and every place needs [dBm].
        most_dbm: what an amplifier gives at most [dBm].
    Returns: places in ascending order; `elements` is the one before the detector, and a place may come twice.
    Raises: ParameterError: no number of amplifiers is enough.

    >>> amplifier_places(0.0, [12.0, 12.0, 12.0], 20.0, -10.0, floor_dbm=-20.0)
    [1, 3]
    """
    losses = np.append(np.asarray(loss_db, np.float64), 0.0)
    if losses.min() < 0 or gain_db < 0:
        raise ParameterError(f"amplifiers: loss {losses.min():g} dB, gain {gain_db:g} dB; neither is negative")
    needed = np.append(np.full(len(losses) - 1, floor_dbm), sensitivity_dbm)
    places: list[int] = []
    power = launch_dbm
    for place, (loss, least) in enumerate(zip(losses.tolist(), needed.tolist(), strict=True)):
        short = least + loss - power - ROUNDING_DB
        if short > 0:
            number = short / gain_db if gain_db else np.inf
            power = max(power, min(power + gain_db * ceil(min(number, MOST_AMPLIFIERS)), most_dbm))
            if power - loss < least - ROUNDING_DB:
                raise ParameterError(
                    f"amplifiers: element {place} loses {loss:g} dB and must leave {least:g} dBm, but amplifiers of "
                    f"{gain_db:g} dB give {power:g} dBm at most; try a stronger one"
                )
            places += [place] * ceil(number)
        power -= loss
    return places


def optical_snr_db(
    inputs_dbm: npt.ArrayLike, noise_figures_db: npt.ArrayLike, photon_w_s: float, bandwidth_hz: float
) -> float:
    """Optical signal-to-noise ratio behind a chain of amplifiers [dB].

    Each adds noise of F h f B at its input; the inverse ratios add up: 1/OSNR = sum F h f B / P.

    Args:
        inputs_dbm: signal at the input of each amplifier, (amplifiers,) [dBm].
        noise_figures_db: F of each, (amplifiers,) [dB].
        photon_w_s: energy h f of a photon [J].
        bandwidth_hz: B in which the noise is counted [Hz].
    Returns: infinite without amplifiers.
    """
    if np.size(inputs_dbm) == 0:
        return float("inf")
    noise_dbm = np.asarray(noise_figures_db, np.float64) + dbm_of_watts(photon_w_s * bandwidth_hz)
    return -float(sum_dbm(noise_dbm - np.asarray(inputs_dbm, np.float64)))
