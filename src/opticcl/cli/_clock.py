"""The clock of files that count computation in cycles, for the verbs that read workloads."""

from __future__ import annotations

from typing import Annotated

from opticcl.cli._parameters import option
from opticcl.errors import ParameterError

__all__ = ["ClockOption", "parse_clock"]

ClockOption = Annotated[
    str | None,
    option("--clock", help="Clock of the device, such as 1GHz, for an ASTRA-sim file, which counts cycles."),
]


def parse_clock(text: str) -> float:
    """Frequency [Hz] of "1 GHz" or "940e6".

    >>> parse_clock("1GHz"), parse_clock("940e6")
    (1000000000.0, 940000000.0)

    Raises: ParameterError: no frequency, or not positive.
    """
    from opticcl.units import quantity

    hertz = quantity(text, "Hz", "--clock")
    if hertz <= 0:
        raise ParameterError(f"--clock: {text!r} is not positive; try 1GHz")
    return hertz
