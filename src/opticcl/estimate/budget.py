"""Light budget of a fabric: its worst and its typical path, element by element, and the worst path of a plan.

Budget      one path: power behind each element, margin, noise of the amplifiers, source of each value
budget      the worst or the typical path of a fabric, independent of any schedule; a formula, also for 65,536 nodes
plan_budget the worst path of all circuits of a compiled plan
best_budget either of them with the values of the paper where they suffice, else with the typical ones
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, TypeVar

import numpy as np

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.files import read_toml
from opticcl.ir import CircuitPlan, Fabric
from opticcl.ir.light import LITERAL, Counts, LightPath, Optics
from opticcl.optics.budget import round_budgets
from opticcl.optics.chain import ROUNDING_DB, Chain, optical_snr_db
from opticcl.optics.decibels import db_of_ratio
from opticcl.optics.values import chain_of, check_channels, light_path_of, optics

__all__ = ["TYPICAL", "Budget", "Line", "Which", "best_budget", "budget", "plan_budget"]

TYPICAL = "typical"
"""The preset that has a value for every element, some of them assumed."""

Which = Literal["worst", "typical"]

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Line:
    """One element of a path.

    Args:
        element: kind.
        count: of that element; a mean on a typical path, so not always an integer [count].
        loss_db: of all of them, splitting included [dB].
        gain_db: effective gain of all of them, reduced by saturation [dB].
        power_dbm: behind them [dBm].
        basis: of the values: paper, assumed, fitted, given.
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
        preset: of the values.
        path: in words.
        launch_dbm: power at its start [dBm].
        lines: one per element; elements without loss and gain are left out.
        penalty_db: power penalty of the signal [dB].
        received_dbm: at the detector, minus the penalty [dBm].
        sensitivity_dbm: of the detector [dBm].
        floor_dbm: least power allowed at any place [dBm]; None if there is no such limit.
        margin_db: at the detector or at the lowest place, whichever is less [dB].
        basis: of launch, penalty and sensitivity, as in `Line`; by name.
        optical_snr_db: behind all amplifiers in 12.5 GHz [dB]; None without amplifiers whose noise figure is known.
        joined_amplifiers: the most amplifiers that a coupler joins and whose noise is in it [count].
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
    joined_amplifiers: int = 1

    @property
    def closes(self) -> bool:
        """Whether the margin is not negative."""
        return self.margin_db >= -ROUNDING_DB

    @property
    def lowest_dbm(self) -> float:
        """Least power on the path [dBm]."""
        return min([self.launch_dbm, *(line.power_dbm for line in self.lines)])

    @property
    def loss_db(self) -> float:
        """Sum of all losses, without the gain of amplifiers [dB]."""
        return sum(line.loss_db for line in self.lines)

    def record(self) -> dict[str, Any]:
        """The budget as plain values."""
        return {
            "fabric": self.fabric,
            "preset": self.preset,
            "path": self.path,
            "closes": self.closes,
            "margin_db": self.margin_db,
            "launch_dbm": self.launch_dbm,
            "received_dbm": self.received_dbm,
            "sensitivity_dbm": self.sensitivity_dbm,
            "floor_dbm": self.floor_dbm,
            "lowest_dbm": self.lowest_dbm,
            "penalty_db": self.penalty_db,
            "optical_snr_db": self.optical_snr_db,
            "joined_amplifiers": self.joined_amplifiers,
            "basis": dict(self.basis),
            "elements": [
                {
                    "element": line.element,
                    "count": line.count,
                    "loss_db": line.loss_db,
                    "gain_db": line.gain_db,
                    "power_dbm": line.power_dbm,
                    "basis": line.basis,
                }
                for line in self.lines
            ],
        }


def budget(fabric: Fabric, values: Optics, which: Which = "worst") -> Budget:
    """The worst or the typical path of a fabric.

    Args:
        fabric: optical.
        values: of its elements.
        which: worst: the path of the greatest loss, by formula; typical: mean over all pairs that one circuit can join.
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
    """The worst path of all circuits of a plan.

    Raises: UnsupportedError: no light path, or the plan has no circuit. ParameterError: values are missing.
    """
    path = light_path_of(plan.fabric)
    least, weakest = np.inf, None
    rounds = round_budgets(plan, values)
    for checked in islice(rounds, 1) if path.uniform else rounds:
        row = int(np.argmin(checked.margin_db))
        if checked.margin_db[row] < least:
            least = float(checked.margin_db[row])
            src, dst = checked.circuits.src[row], checked.circuits.dst[row]
            ends = f"{src} -> {dst}, step {checked.steps.start} of {plan.schedule.name}"
            weakest = (checked.chain, checked.counts[row].copy(), ends)
    if weakest is None:
        raise UnsupportedError(
            f"{plan.fabric.name}: {plan.schedule.name} on one node has no circuits; try 2 nodes or more"
        )
    chain, counts, ends = weakest
    return _budget_of(plan.fabric.name, path, chain, values, counts, f"worst of the plan: {ends}")


def best_budget(
    fabric: Fabric,
    find: Callable[[Optics], Found],
    preset: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> tuple[Optics, Found, str]:
    """A budget with the values of a preset: the given one, else those of the paper or, where one is missing, the typical ones.

    Args:
        fabric: optical.
        find: computes the budget, or what is wanted of it, from values.
        preset: of the values; None: chosen.
        settings: values that are changed, by name, as text.
    Returns: values, budget, and why the values are not those of the paper; "" where they are, or a preset is given.
    Raises: UnknownNameError, UnsupportedError; ParameterError: the preset lacks a value.
    """
    table = light_path_of(fabric).table
    values = optics(table, preset or LITERAL, settings)
    try:
        return values, find(values), ""
    except ParameterError as refusal:
        if preset is not None or TYPICAL not in table.presets:
            raise
        missing = str(refusal).partition(";")[0]
    values = optics(table, TYPICAL, settings)
    return values, find(values), f"values: preset {TYPICAL}, some of them assumed; {missing}"


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
        joined_amplifiers=max(element.joined for element in path.elements),
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
    """Basis of the values of an element, or of one value such as launch; each word once."""
    words = []
    for name, value in values.values.items():
        if (name == kind and value.value is not None) or (name.startswith(f"{kind}.") and value.value):
            word = value.source.partition(":")[0]
            words.append(word if word in ("assumed", "fitted", "given") else "paper")
    return " + ".join(sorted(set(words)))


def _noise(path: LightPath, chain: Chain, values: Optics, counts: Counts, powers: Counts) -> float | None:
    """Optical signal-to-noise ratio, with the noise of joined amplifiers; None without any or where a figure is unknown."""
    figures, inputs = [], []
    before = np.concatenate([[chain.launch_dbm], powers[:-1]])
    for k, element in enumerate(path.elements):
        if chain.gain_db[k] and counts[k] > 0:
            figure = values.get(f"{element.kind}.noise")
            if figure is None:
                return None
            figures.append(figure + float(db_of_ratio(element.joined)))
            inputs.append(before[k] - counts[k] * chain.loss_db[k] - chain.once_db[k])
    if not figures:
        return None
    constants = read_toml("opticcl.optics", "constants.toml")
    photon = constants["planck"]["value"] * constants["telecom_frequency"]["value"]
    return optical_snr_db(inputs, figures, photon, constants["noise_bandwidth"]["value"])
