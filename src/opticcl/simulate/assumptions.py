"""Everything that a time rests on and no fabric says, by name; presets hold what each paper assumes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from opticcl.data import load
from opticcl.errors import ParameterError, UnknownNameError
from opticcl.registry import canonical, convert_arguments, nearest
from opticcl.units import ByteRate

__all__ = ["PRESETS", "Assumptions", "assumptions"]

A100_MEMORY_BYTES_PER_S: float = load("devices.toml")["a100"]["memory_bytes_per_s"]["value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What a time rests on.

    Args:
        reconfiguration_charge: on_change charges a reconfiguration where the circuits of a round are not all standing
            already; every_step charges it on every round, as most papers do.
        initial: cold charges the first setting, warm finds it standing (on_change only).
        compute: fused sums all that arrives for a chunk in one pass over memory: (arrivals + 2) bytes moved a byte of chunk;
            chain adds one arrival after the other, 3 bytes each; none charges nothing.
        memory_bytes_per_s: of the device that adds [byte/s].
        control: charged counts the fabric's control plane on every step; none does not.
    Source: RAMP section 7.4 (roofline, memory bound).
    """

    reconfiguration_charge: Literal["on_change", "every_step"] = "on_change"
    initial: Literal["cold", "warm"] = "cold"
    compute: Literal["fused", "chain", "none"] = "fused"
    memory_bytes_per_s: ByteRate = A100_MEMORY_BYTES_PER_S
    control: Literal["charged", "none"] = "charged"


PRESETS: tuple[str, ...] = tuple(load("presets.toml"))


def assumptions(preset: str = "default", **given: Any) -> Assumptions:
    """Assumptions of a preset, with some of them changed.

    Args:
        preset: default, ramp, sipac, wrht, oddl or lumorph.
        given: fields of `Assumptions`; texts are converted.
    Raises: UnknownNameError: no such preset. ParameterError: no such field or value.

    >>> assumptions("wrht", compute="chain").reconfiguration_charge
    'every_step'
    """
    key = canonical(preset)
    if key not in PRESETS:
        raise UnknownNameError(f"unknown preset {preset!r}; {nearest(key, PRESETS)}")
    values = {name: value for name, value in load("presets.toml")[key].items() if name != "source"}
    assumed = Assumptions(**convert_arguments(Assumptions, {**values, **given}, "simulate"))
    if assumed.memory_bytes_per_s <= 0:
        raise ParameterError(
            f"simulate: memory_bytes_per_s={assumed.memory_bytes_per_s:g} is not positive; try 1.5TB/s"
        )
    return assumed


def as_dict(assumed: Assumptions) -> dict[str, Any]:
    """Field by name."""
    return dataclasses.asdict(assumed)
