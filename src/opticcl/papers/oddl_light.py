"""ODDL's claims about its light: switches, link budget, amplifiers, wavelengths and the prototype's delays."""

from __future__ import annotations

import numpy as np

from opticcl.data import load
from opticcl.evaluate.budget import budget
from opticcl.fabric import fabric
from opticcl.papers import claim
from opticcl.physics.clos import ThreeStage
from opticcl.physics.optics import optics
from opticcl.physics.ring import in_band


def _margin(shape: str, loss_db: float | None = None) -> float:
    """Of the worst path, with another loss of a switch of 32 ports if one is given [dB]."""
    settings = {} if loss_db is None else {"wss32.loss": loss_db}
    return budget(fabric("oddl", shape=shape), optics("oddl", "literal", settings)).margin_db


@claim("oddl", "O7")
def clos_of_64_ports() -> list[int]:
    """Ports, modules, and whether it is non-blocking in the strict sense (1)."""
    switch = ThreeStage(ports_per_edge=8, edges=8, middles=16)
    return [switch.ports, switch.modules, int(switch.strict_sense_non_blocking)]


@claim("oddl", "O11")
def loss_of_8_ports() -> float:
    return budget(fabric("oddl:shape=8x8x8"), optics("oddl")).loss_db


@claim("oddl", "O12")
def closes_without_amplifier() -> list[bool]:
    """8 ports, 32 ports of 17 dB, 32 ports of 25 dB."""
    return [margin >= 0 for margin in (_margin("8x8x8"), _margin("32x32", 17.0), _margin("32x32", 25.0))]


@claim("oddl", "O12.margins")
def margins() -> list[float]:
    return [round(margin, 1) for margin in (_margin("8x8x8"), _margin("32x32", 17.0), _margin("32x32", 25.0))]


@claim("oddl", "O13")
def larger_switch_closes() -> bool:
    """The Clos of 64 ports."""
    return _margin("64") >= 0


@claim("oddl", "O13.margin")
def margin_of_the_clos() -> float:
    return round(_margin("64"), 1)


@claim("oddl", "O37")
def prototype_in_c_band() -> list[bool]:
    constants = load("constants.toml")
    ends = (constants[f"c_band_{end}"]["value"] for end in ("low", "high"))
    return in_band([1565.941e-9, 1546.5377e-9], *ends).tolist()


@claim("oddl", "O38")
def delays_fit_their_use() -> bool:
    """The laser is retuned within a step, the switch is not: it must stand for a whole job."""
    laser, switch = load("papers/oddl_light.toml")["O38"]["table"]
    return bool(laser < fabric("oddl").reconfiguration_s < switch)


@claim("oddl", "O40")
def simulated_over_expected() -> list[float]:
    """Both simulated delays, 5 and 10 us, over 2 us of a link and 1 us of a control switch: least and most."""
    made = [fabric("oddl", reconfiguration=delay, control_switch_delay=delay).parameters for delay in ("5us", "10us")]
    ratios = [p["reconfiguration"] / 2e-6 for p in made] + [p["control_switch_delay"] / 1e-6 for p in made]
    return [round(float(np.min(ratios)), 3), round(float(np.max(ratios)), 3)]
