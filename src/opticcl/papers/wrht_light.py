"""WRHT's claims about loss and crosstalk: section 4.4. No value is printed, so what can be checked is the algebra."""

from __future__ import annotations

from opticcl.fabrics import fabric, light_table
from opticcl.optics.crosstalk import ber_of_snr, snr_for_ber
from opticcl.optics.decibels import db_of_ratio, ratio_of_db
from opticcl.optics.values import optics
from opticcl.papers import claim, printed_claims

LIMIT = float(light_table("terarack").geometry["bit_error_rate"])


@claim("wrht", "W17")
def missing_for_the_largest_group() -> list[str]:
    """Values of equations 7 to 10 that the paper does not print."""
    return optics(light_table("terarack")).missing(
        ["launch", "modulator.loss", "interface.loss", "penalty", "sensitivity"]
    )


@claim("wrht", "W18")
def error_rate_of_the_linear_ratio() -> float:
    """What equation 13 gives for the ratio that is 19.04 dB."""
    return float(ber_of_snr(ratio_of_db(printed_claims("wrht")["W18.ratio"]["corrected"])))


@claim("wrht", "W18.ratio")
def ratio_needed() -> float:
    """In decibels."""
    return round(float(db_of_ratio(snr_for_ber(LIMIT))), 2)


@claim("wrht", "W18.db")
def error_rate_of_the_decibels() -> float:
    """What equation 13 gives for the number of decibels that equation 11 defines."""
    return float(f"{ber_of_snr(db_of_ratio(snr_for_ber(LIMIT))):.2g}")


@claim("wrht", "W19")
def missing_for_the_crosstalk() -> list[str]:
    """Values of equation 12 that the paper does not print."""
    return optics(light_table("terarack")).missing(["crosstalk.receiver", "crosstalk.transmitter"])


@claim("wrht", "W39")
def wavelengths_of_a_node() -> int:
    """Micro-rings of an interface."""
    return fabric("terarack").num_wavelengths
