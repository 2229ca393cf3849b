"""LUMORPH's claims about LIGHTPATH's light: waveguides of a tile, losses, error rates, lasers."""

from __future__ import annotations

import math

import numpy as np

from opticcl.evaluate.budget import budget
from opticcl.evaluate.limits import limits
from opticcl.fabric import fabric
from opticcl.papers import claim
from opticcl.physics.crosstalk import ber_of_q, q_for_ber
from opticcl.physics.optics import Optics, geometry, optics

RATES = (10e9, 15e9, 20e9)  # section 7 [bit/s]
MEASURED = 6.96e-13  # section 7: bit error rate at the first of them


def _waveguides_alone(budget_db: float) -> Optics:
    """The printed losses, with so much light to lose and nothing else on the way."""
    given = {"launch": 0.0, "sensitivity": -budget_db, "modulator.loss": 0.0, "mzi.loss": 0.0}
    return optics("lightpath", "literal", given)


@claim("lumorph", "L22")
def pairs_of_waveguides() -> bool:
    """Round the edge of a tile, two waveguides a pair."""
    side = float(geometry("lightpath", "wafer_side"))
    edges = 2 * (side / geometry("lightpath", "board_rows") + side / geometry("lightpath", "board_columns"))
    return bool(edges / geometry("lightpath", "waveguide_pitch") / 2 > 10_000)


@claim("lumorph", "L22.edge")
def waveguides_of_an_edge() -> int:
    """Along the shorter edge of a tile."""
    side = float(geometry("lightpath", "wafer_side")) / max(
        geometry("lightpath", "board_rows"), geometry("lightpath", "board_columns")
    )
    return int(side / geometry("lightpath", "waveguide_pitch"))


@claim("lumorph", "L23")
def loss_across_a_board() -> float:
    """Corner to corner of 4 x 8 tiles, waveguides and seams alone."""
    return round(budget(fabric("lightpath:shape=4x8"), _waveguides_alone(0.0)).loss_db, 2)


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
    found = [float(ber_of_q(q / math.sqrt(rate / RATES[0]))) for rate in RATES]
    return [float(f"{value:.3g}") for value in np.array(found)]


@claim("lumorph", "L25")
def lasers_of_a_tile() -> list[int]:
    """In sections 2.1, 3 and 7."""
    return [fabric("lightpath").lasers_per_port] * 3
