"""SiPAC's claims about combs, micro-rings and rates: sections I, III-B and IV."""

from __future__ import annotations

import numpy as np

from opticcl.fabric import fabric
from opticcl.fabric.sipac import SHEET
from opticcl.papers import claim
from opticcl.physics.chain import Chain
from opticcl.physics.optics import geometry, optics
from opticcl.physics.ring import (
    dropped_lines,
    frequency_hz,
    lines_of_span,
    range_for,
    spacing_m,
    span_hz,
    undropped_lines,
    wavelength_m,
)
from opticcl.units import format_bytes

SPACING = float(geometry("sipac", "comb_spacing"))
LINES = int(geometry("sipac", "testbed_lines"))
R1, R2 = (1534.07e-9, 1548.48e-9), (1532.48e-9, 1546.87e-9)  # section IV-A: what each ring takes [m]
TESTBED_PORTS = 8


def _fsr_lines() -> float:
    """Free spectral range of the testbed's rings in comb lines."""
    return float(lines_of_span(span_hz(*R1), SPACING))


@claim("sipac", "S6")
def outputs_of_a_wavelength() -> int:
    """Outputs at which light of one wavelength from one input is heard, most over all inputs and wavelengths."""
    made = fabric("sipac", radix=TESTBED_PORTS, levels=1, wavelengths=2 * TESTBED_PORTS)
    groups = np.arange(made.num_wavelengths) % TESTBED_PORTS
    inputs, outputs = np.ogrid[:TESTBED_PORTS, :TESTBED_PORTS]
    dropped = (outputs - inputs)[..., None] % TESTBED_PORTS == groups
    return int(dropped.sum(axis=1).max())


@claim("sipac", "S7")
def link_rate() -> float:
    return float(SHEET["comb_lines"]) * 128e9


def _density(directions: int) -> float:
    """Of 64 channels of 16 Gb/s on 0.4 mm^2 [bit/s/mm^2]."""
    return directions * 64 * 16e9 / 0.4


@claim("sipac", "S8")
def density_both_ways() -> float:
    return _density(2)


@claim("sipac", "S8o")
def density_one_way() -> float:
    return _density(1)


@claim("sipac", "S9")
def loss_of_a_bus() -> float:
    """A chain of the 127 cells that are off resonance on a bus of 128 ports [dB]."""
    each = np.array([optics("sipac").loss_db("ring_pass")])
    nothing = np.zeros(1)
    chain = Chain(0.0, each, nothing, nothing, nothing + np.inf, 0.0)
    return -float(chain.received_dbm(np.array([127.0]))[0])


@claim("sipac", "S10")
def spacing() -> list[float]:
    """At both ends of the band that the rings take [nm]."""
    return [round(spacing_m(SPACING, at) * 1e9, 1) for at in (1534e-9, 1548e-9)]


@claim("sipac", "S11")
def lines_of_r1() -> float:
    return _fsr_lines()


@claim("sipac", "S11.R2")
def lines_of_r2() -> float:
    return float(lines_of_span(span_hz(*R2), SPACING))


@claim("sipac", "S11.range")
def range_of_nine_lines() -> float:
    """From the shorter wavelength of R1 [nm]."""
    return float(wavelength_m(frequency_hz(R1[0]) - 9 * SPACING) - R1[0]) * 1e9


@claim("sipac", "S12")
def fewest_lines_of_a_ring() -> int:
    return int(_dropped().min())


@claim("sipac", "S12.most")
def most_lines_of_a_ring() -> int:
    return int(_dropped().max())


def _dropped() -> np.ndarray:
    """Lines that each ring drops, one tuned to each line of a free spectral range."""
    return dropped_lines(np.arange(9), _fsr_lines(), LINES).sum(axis=1)


@claim("sipac", "S12b")
def lines_that_nobody_drops() -> list[int]:
    return undropped_lines(TESTBED_PORTS, _fsr_lines(), LINES)


@claim("sipac", "S12b.range")
def range_for_eight_rings() -> float:
    """At the shorter wavelength of R1 [nm]."""
    span = range_for(TESTBED_PORTS, SPACING)
    return round(float(wavelength_m(frequency_hz(R1[0]) - span) - R1[0]) * 1e9, 2)


@claim("sipac", "S39")
def testbed_frequencies() -> list[float]:
    """To 0.1 THz, which is the grid's distance [THz]."""
    return [round(float(frequency_hz(at)) / 1e12, 1) for at in (1550.12e-9, 1556.55e-9)]


@claim("sipac", "S40")
def memory_of_a_model() -> str:
    """10^12 parameters of 20 bytes."""
    return format_bytes(1e12 * 20)
