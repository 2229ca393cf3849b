"""What the light of a fabric has left: its worst and its typical path, element by element, and the worst path of a plan.

Budget      one path: power behind each element, margin, noise of the amplifiers, where each value comes from
budget      the worst or the typical path of a fabric, whatever the schedule; a formula, also for 65,536 nodes
plan_budget the worst path that the circuits of a compiled plan take, measured on all of them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from opticcl.data import load
from opticcl.errors import UnsupportedError
from opticcl.ir import CircuitPlan, Fabric
from opticcl.physics.chain import ROUNDING_DB, Chain, optical_snr_db
from opticcl.physics.light import Counts, LightPath, light_path_of
from opticcl.physics.optics import Optics, chain_of, check_channels

__all__ = ["Budget", "Line", "Which", "budget", "plan_budget"]

Which = Literal["worst", "typical"]


@dataclass(frozen=True, slots=True)
class Line:
    """One element of a path.

    Args:
        element: its kind.
        count: how many of it; a mean on a typical path, so it need not be whole.
        loss_db: of all of them, by splitting too [dB].
        gain_db: what they add, less than their gain where they saturate [dB].
        power_dbm: behind them [dBm].
        basis: where its values come from: paper, assumed, fitted, given.
    """

    element: str
    count: float
    loss_db: float
    gain_db: float
    power_dbm: float
    basis: str


@dataclass(frozen=True, slots=True)
class Budget:
    """Power along one path of light.

    Args:
        fabric: name.
        preset: whose values.
        path: which path, in words.
        launch_dbm: power at its beginning [dBm].
        lines: element by element; those that neither lose nor add are left out.
        penalty_db: what the signal's own faults cost [dB].
        received_dbm: at the detector, less the penalty [dBm].
        sensitivity_dbm: what the detector needs [dBm].
        floor_dbm: what no place may fall below [dBm], None if there is no such demand.
        margin_db: what is left, at the detector or at the lowest place, whichever is less [dB].
        basis: where launch, penalty and sensitivity come from, as in `Line`; by name.
        optical_snr_db: behind all amplifiers in 12.5 GHz, None without amplifiers whose noise is known [dB].
    """

    fabric: str
    preset: str
    path: str
    launch_dbm: float
    lines: tuple[Line, ...]
    penalty_db: float
    received_dbm: float
    sensitivity_dbm: float
    floor_dbm: float | None
    margin_db: float
    basis: Mapping[str, str]
    optical_snr_db: float | None

    @property
    def closes(self) -> bool:
        """Whether enough light arrives."""
        return self.margin_db >= -ROUNDING_DB

    @property
    def lowest_dbm(self) -> float:
        """Least power on the path [dBm]."""
        return min([self.launch_dbm, *(line.power_dbm for line in self.lines)])

    @property
    def loss_db(self) -> float:
        """Everything that is lost, amplifiers not counted [dB]."""
        return sum(line.loss_db for line in self.lines)


def budget(fabric: Fabric, values: Optics, which: Which = "worst") -> Budget:
    """The worst or the typical path of a fabric.

    Args:
        fabric: optical.
        values: of its elements.
        which: worst: the path that loses most, by formula; typical: mean over all pairs that one circuit can join.
    Raises: UnsupportedError: no light path. ParameterError: values are missing, or wavelengths lie outside the band.
    """
    path = light_path_of(fabric)
    check_channels(fabric)
    if which == "typical":
        chain = chain_of(path, values, path.typical > 0)
        return _budget_of(fabric.name, path, chain, values, path.typical, "typical: mean over all pairs of nodes")
    chain = chain_of(path, values)
    worst = int(np.argmin(chain.margin_db(path.extremes)))
    return _budget_of(fabric.name, path, chain, values, path.extremes[worst], f"worst: {path.names[worst]}")


def plan_budget(plan: CircuitPlan, values: Optics) -> Budget:
    """The worst path that a circuit of the plan takes; every circuit of every round is looked at.

    Raises: UnsupportedError: no light path, or the plan has no circuit. ParameterError: values are missing.
    """
    from opticcl.verify.budget import lit_rounds

    path = light_path_of(plan.fabric)
    least, found = np.inf, None
    for lit in lit_rounds(plan, values):
        row = int(np.argmin(lit.margin_db))
        if lit.margin_db[row] < least:
            least = float(lit.margin_db[row])
            ends = f"{lit.circuits.src[row]} -> {lit.circuits.dst[row]}, step {lit.steps.start} of {plan.schedule.name}"
            found = (lit.chain, lit.counts[row].copy(), ends)
    if found is None:
        raise UnsupportedError(f"{plan.fabric.name}: {plan.schedule.name} on one node needs no light")
    chain, counts, ends = found
    return _budget_of(plan.fabric.name, path, chain, values, counts, f"worst of the plan: {ends}")


def _budget_of(name: str, path: LightPath, chain: Chain, values: Optics, counts: Counts, which: str) -> Budget:
    powers = chain.powers_dbm(counts)[0]
    return Budget(
        fabric=name,
        preset=values.preset,
        path=which,
        launch_dbm=chain.launch_dbm,
        lines=tuple(_lines(path, chain, values, counts, powers)),
        penalty_db=chain.penalty_db,
        received_dbm=float(chain.received_dbm(counts)[0]),
        sensitivity_dbm=chain.sensitivity_dbm,
        floor_dbm=None if np.isinf(chain.floor_dbm) else chain.floor_dbm,
        margin_db=float(chain.margin_db(counts)[0]),
        basis={name: _basis(values, name) for name in ("launch", "penalty", "sensitivity")},
        optical_snr_db=_noise(path, chain, values, counts, powers),
    )


def _lines(path: LightPath, chain: Chain, values: Optics, counts: Counts, powers: Counts) -> Iterator[Line]:
    before = chain.launch_dbm
    for k, element in enumerate(path.elements):
        lost = float(counts[k] * chain.loss_db[k] + (counts[k] > 0) * chain.once_db[k])
        added = float(powers[k] - before + lost)
        if lost or chain.gain_db[k]:
            yield Line(
                element.kind, float(counts[k]), lost, added if chain.gain_db[k] else 0.0, float(powers[k]),
                _basis(values, element.kind),
            )  # fmt: skip
        before = float(powers[k])


def _basis(values: Optics, kind: str) -> str:
    """Where the values of an element (or one such as launch) come from, each word once."""
    words = []
    for name, value in values.values.items():
        if (name == kind and value.value is not None) or (name.startswith(f"{kind}.") and value.value):
            word = value.source.partition(":")[0]
            words.append(word if word in ("assumed", "fitted", "given") else "paper")
    return " + ".join(sorted(set(words)))


def _noise(path: LightPath, chain: Chain, values: Optics, counts: Counts, powers: Counts) -> float | None:
    """Optical signal-to-noise ratio, None where an amplifier's noise is not known or there is none."""
    figures, inputs = [], []
    before = np.concatenate([[chain.launch_dbm], powers[:-1]])
    for k, element in enumerate(path.elements):
        if chain.gain_db[k] and counts[k] > 0:
            figure = values.get(f"{element.kind}.noise")
            if figure is None:
                return None
            figures.append(figure)
            inputs.append(before[k] - counts[k] * chain.loss_db[k] - chain.once_db[k])
    if not figures:
        return None
    constants = load("constants.toml")
    photon = constants["planck"]["value"] * constants["telecom_frequency"]["value"]
    return optical_snr_db(inputs, figures, photon, constants["noise_bandwidth"]["value"])
