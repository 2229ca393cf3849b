"""ODDL's claims about its light: switches, link budget, amplifiers, wavelengths and the prototype's delays."""

from __future__ import annotations

import numpy as np

from opticcl.estimate.budget import Budget, budget
from opticcl.fabrics import fabric, light_table
from opticcl.fabrics.oddl import BAND_HZ
from opticcl.optics.clos import ThreeStage
from opticcl.optics.micro_rings import frequency_hz
from opticcl.optics.values import optics
from opticcl.papers import Found, claim, found, printed_claims


def _margin(shape: str, loss_db: float | None = None) -> float:
    """Of the worst path, with another loss of a switch of 32 ports if one is given [dB]."""
    settings = {} if loss_db is None else {"wss32.loss": loss_db}
    return budget(fabric("oddl", shape=shape), optics(light_table("oddl"), "literal", settings)).margin_db


@claim("oddl", "O7")
def clos_of_64_ports() -> list[int]:
    """Ports, modules, and whether it is non-blocking in the strict sense (1)."""
    switch = ThreeStage(ports_per_edge=8, edges=8, middles=16)
    return [switch.ports, switch.modules, int(switch.strict_sense_non_blocking)]


@claim("oddl", "O11")
def loss_of_8_ports() -> float:
    return budget(fabric("oddl:shape=8x8x8"), optics(light_table("oddl"))).loss_db


@claim("oddl", "O12")
def closes_without_amplifier() -> list[bool]:
    """8 ports, 32 ports of 17 dB, 32 ports of 25 dB."""
    return [margin >= 0 for margin in margins()]


@claim("oddl", "O12.margins")
def margins() -> list[float]:
    return [round(margin, 1) for margin in (_margin("8x8x8"), _margin("32x32", 17.0), _margin("32x32", 25.0))]


@claim("oddl", "O13")
def larger_switch_closes() -> Found:
    """The Clos of 64 ports."""
    clos = _clos_of_64_ports()
    stages = next(line.count for line in clos.lines if line.element == "wss8")
    return found(clos.margin_db >= 0, stages=stages, loss_db=clos.loss_db)


@claim("oddl", "O13.margin")
def margin_of_the_clos() -> Found:
    clos = _clos_of_64_ports()
    return found(round(clos.margin_db, 1), loss_db=clos.loss_db, allowed_db=clos.launch_dbm - clos.sensitivity_dbm)


def _clos_of_64_ports() -> Budget:
    return budget(fabric("oddl", shape="64"), optics(light_table("oddl"), "literal"))


@claim("oddl", "O37")
def prototype_in_c_band() -> Found:
    low_thz, high_thz = (end / 1e12 for end in BAND_HZ)
    used_thz = [float(frequency_hz(metres)) / 1e12 for metres in (1565.941e-9, 1546.5377e-9)]
    return found([low_thz <= thz <= high_thz for thz in used_thz], thz=used_thz[0], low_thz=low_thz, high_thz=high_thz)


@claim("oddl", "O38")
def delays_fit_their_use() -> bool:
    """The laser is retuned within a step, the switch is not and must be set once per job."""
    laser, switch = printed_claims("oddl")["O38"]["table"]
    return bool(laser < fabric("oddl").reconfiguration_s < switch)


@claim("oddl", "O40")
def simulated_over_expected() -> list[float]:
    """Both simulated delays, 5 and 10 us, over 2 us of a link and 1 us of a control switch: least and most."""
    made = [fabric("oddl", reconfiguration=delay, control_switch_delay=delay).parameters for delay in ("5us", "10us")]
    ratios = [p["reconfiguration"] / 2e-6 for p in made] + [p["control_switch_delay"] / 1e-6 for p in made]
    return [round(float(np.min(ratios)), 3), round(float(np.max(ratios)), 3)]
