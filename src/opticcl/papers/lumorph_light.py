"""LUMORPH's claims about LIGHTPATH's light: waveguides of a tile, losses, error rates, lasers."""

from __future__ import annotations

import math

import numpy as np

from opticcl.estimate.budget import budget
from opticcl.fabrics import fabric, light_table
from opticcl.ir.light import Optics
from opticcl.optics.crosstalk import ber_of_q, q_for_ber
from opticcl.optics.values import optics
from opticcl.papers import Found, claim, found
from opticcl.plans.limits import limits

RATES = (10e9, 15e9, 20e9)  # section 7 [bit/s]
MEASURED = 6.96e-13  # section 7: bit error rate at the first of them


def _waveguides_alone(budget_db: float) -> Optics:
    """The printed losses of waveguides and seams, with this power budget [dB]; all other losses are 0."""
    given = {"launch": 0.0, "sensitivity": -budget_db, "modulator.loss": 0.0, "mzi.loss": 0.0}
    return optics(light_table("lightpath"), "literal", given)


@claim("lumorph", "L22")
def pairs_of_waveguides() -> Found:
    """Round the edge of a tile, two waveguides a pair."""
    sides = _tile_sides()
    pairs = 2 * sum(sides) / light_table("lightpath").geometry["waveguide_pitch"] / 2
    return found(pairs > 10_000, pairs=pairs, short_mm=min(sides) * 1e3, long_mm=max(sides) * 1e3)


def _tile_sides() -> tuple[float, float]:
    """Height and width of a tile [m]."""
    side = float(light_table("lightpath").geometry["wafer_side"])
    return side / light_table("lightpath").geometry["board_rows"], side / light_table("lightpath").geometry[
        "board_columns"
    ]


@claim("lumorph", "L23")
def loss_across_a_board() -> Found:
    """Corner to corner of 4 x 8 tiles, waveguides and seams alone."""
    path = budget(fabric("lightpath:shape=4x8"), _waveguides_alone(0.0))
    seams_db = sum(line.loss_db for line in path.lines if line.element == "stitch")
    return found(round(path.loss_db, 2), seams_db=seams_db, waveguide_db=path.loss_db - seams_db)


@claim("lumorph", "L23.hop")
def loss_of_a_hop() -> list[float]:
    """Along a row and along a column."""
    shapes = ("1x2", "2x1")
    return [round(budget(fabric(f"lightpath:shape={s}"), _waveguides_alone(0.0)).loss_db, 2) for s in shapes]


@claim("lumorph", "L23.reach")
def reach_at_10_db() -> list[float | None]:
    """Tiles along a row and along a column."""
    return [limit.value for limit in limits(fabric("lightpath:shape=4x8"), _waveguides_alone(10.0))]


@claim("lumorph", "L24")
def error_rates() -> list[float]:
    """At the three rates if the noise grows with the bandwidth, from what was measured at the first."""
    q = q_for_ber(MEASURED)
    rates = [float(ber_of_q(q / math.sqrt(rate / RATES[0]))) for rate in RATES]
    return [float(f"{value:.3g}") for value in np.array(rates)]


@claim("lumorph", "L25")
def lasers_of_a_tile() -> list[int]:
    """In sections 2.1 and 3."""
    return [fabric("lightpath").lasers_per_port] * 2
