"""SiPAC's claims about combs, micro-rings and rates: sections I, III-B and IV."""

from __future__ import annotations

import math

import numpy as np

from opticcl.fabrics import fabric, light_table
from opticcl.fabrics.sipac import SHEET
from opticcl.ir import Circuits
from opticcl.optics.chain import Chain
from opticcl.optics.decibels import ratio_of_db
from opticcl.optics.micro_rings import (
    dropped_lines,
    frequency_hz,
    lines_of_span,
    range_for,
    spacing_m,
    span_hz,
    undropped_lines,
    wavelength_m,
)
from opticcl.optics.values import optics
from opticcl.papers import Found, claim, found, printed_claims
from opticcl.training.device import device
from opticcl.training.model import Layer
from opticcl.training.partition.layout import Layout
from opticcl.training.partition.shares import Configuration, memory_of
from opticcl.units import format_bytes

SPACING = float(light_table("sipac").geometry["comb_spacing"])
LINES = int(light_table("sipac").geometry["testbed_lines"])
R1, R2 = (1534.07e-9, 1548.48e-9), (1532.48e-9, 1546.87e-9)  # section IV-A: what each ring takes [m]
TESTBED_PORTS = 8
AREA_MM2 = 0.4  # section III-B


def _fsr_lines() -> float:
    """Free spectral range of the testbed's rings in comb lines."""
    return float(lines_of_span(span_hz(*R1), SPACING))


@claim("sipac", "S6")
def outputs_of_a_wavelength() -> int:
    """Outputs that a circuit of one input on one wavelength can reach, most over all inputs and wavelengths."""
    made = fabric("sipac", radix=TESTBED_PORTS, levels=1, wavelengths=2 * TESTBED_PORTS)
    ports, lines = np.arange(TESTBED_PORTS), np.arange(made.num_wavelengths)
    src, dst, line = (axis.ravel() for axis in np.meshgrid(ports, ports, lines, indexing="ij"))
    apart = src != dst
    src, dst, line = src[apart], dst[apart], line[apart]
    circuits = Circuits.of(np.arange(len(src)), src, dst, 0, line, 1, np.zeros((len(src), 1), np.int64))
    refused = np.concatenate([fault.circuits for fault in made.faults(circuits)])
    reaches = np.setdiff1d(np.arange(len(src)), refused)
    return int(np.bincount(src[reaches] * made.num_wavelengths + line[reaches]).max())


@claim("sipac", "S7")
def link_rate() -> float:
    return float(SHEET["comb_lines"]) * 128e9


@claim("sipac", "S8", 2)
@claim("sipac", "S8o", 1)
def density(directions: int) -> Found:
    """Of a link of 64 channels of 16 Gb/s on 0.4 mm^2 [bit/s/mm^2]."""
    link = fabric("sipac:radix=2,levels=1,wavelengths=64", node_rate=64 * 16e9)
    value = directions * link.node_rate_bits_per_s / AREA_MM2
    return found(value, tbps=value / 1e12)


@claim("sipac", "S9")
def loss_of_a_bus() -> float:
    """A chain of the 127 cells that are off resonance on a bus of 128 ports [dB]."""
    each = np.array([optics(light_table("sipac")).loss_db("ring_pass")])
    nothing = np.zeros(1)
    chain = Chain(0.0, each, nothing, nothing, nothing + np.inf, 0.0)
    return -float(chain.received_dbm(np.array([127.0]))[0])


@claim("sipac", "S10")
def spacing() -> list[float]:
    """At both ends of the band that the rings take [nm]."""
    return [round(spacing_m(SPACING, at) * 1e9, 1) for at in (1534e-9, 1548e-9)]


@claim("sipac", "S11")
def lines_of_r1() -> Found:
    lines = _fsr_lines()
    return found(lines, off_ghz=(lines - round(lines)) * SPACING / 1e9)


@claim("sipac", "S11.R2")
def lines_of_r2() -> float:
    return float(lines_of_span(span_hz(*R2), SPACING))


@claim("sipac", "S11.range")
def range_of_nine_lines() -> Found:
    """From the shorter wavelength of R1 [nm]."""
    off_ghz = (_fsr_lines() - 9) * SPACING / 1e9
    return found(float(wavelength_m(frequency_hz(R1[0]) - 9 * SPACING) - R1[0]) * 1e9, off_ghz=off_ghz)


@claim("sipac", "S12")
def fewest_lines_of_a_ring() -> int:
    return int(_dropped().min())


@claim("sipac", "S12.most")
def most_lines_of_a_ring() -> Found:
    dropped = _dropped()
    return found(int(dropped.max()), rings=int((dropped == dropped.max()).sum()), all=LINES, range=round(_fsr_lines()))


def _dropped() -> np.ndarray:
    """Lines that each ring drops, one tuned to each line of a free spectral range."""
    return dropped_lines(np.arange(9), _fsr_lines(), LINES).sum(axis=1)


@claim("sipac", "S12b")
def lines_that_no_ring_drops() -> Found:
    lines = undropped_lines(TESTBED_PORTS, _fsr_lines(), LINES)
    return found(lines, range=round(_fsr_lines()), ports=TESTBED_PORTS)


@claim("sipac", "S12b.range")
def range_for_eight_rings() -> Found:
    """At the shorter wavelength of R1 [nm]."""
    span = range_for(TESTBED_PORTS, SPACING)
    nm = round(float(wavelength_m(frequency_hz(R1[0]) - span) - R1[0]) * 1e9, 2)
    return found(nm, ports=TESTBED_PORTS, range=round(_fsr_lines()))


@claim("sipac", "S39")
def testbed_frequencies() -> list[float]:
    """To 0.1 THz, which is the grid's distance [THz]."""
    return [round(float(frequency_hz(at)) / 1e12, 1) for at in (1550.12e-9, 1556.55e-9)]


@claim("sipac", "S40")
def memory_of_a_model() -> Found:
    """A model of 10^12 parameters; and what our partitioner keeps with Adam in half precision."""
    layer = Layer("all", "linear", tensors=(10**12,), macs=0, outputs=0, activations=0)
    choices = Configuration(
        batch=1,
        layout=Layout(),
        micro_batches=1,
        device=device("a100"),
        precision="fp16",
        efficiency=1.0,
        optimiser="adam",
        activations="kept",
    )
    parameters = sum(layer.tensors)
    return found(format_bytes(20 * parameters), ours_bytes=memory_of([layer], choices).state_bytes / parameters)


@claim("sipac", "S45")
def finesse_for_the_crosstalk() -> Found:
    """Finesse with which a single Lorentzian ring suppresses the next comb line by the printed ratio."""
    ratio = float(ratio_of_db(printed_claims("sipac")["S45"]["suppression_db"]))
    width_hz = 2 * SPACING / math.sqrt(ratio - 1)
    return found(float(f"{span_hz(*R1) / width_hz:.3g}"), width_ghz=width_hz / 1e9)
