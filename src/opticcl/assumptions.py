"""Assumptions about time that no fabric determines, by name; a preset holds those of one paper."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from opticcl.errors import ParameterError, UnknownNameError
from opticcl.files import read_toml
from opticcl.registry import canonical, convert_arguments, nearest
from opticcl.units import ByteRate

__all__ = ["PRESETS", "Assumptions", "assumptions", "meaning_of"]

_TABLE = read_toml("opticcl", "assumptions.toml")

PRESETS: tuple[str, ...] = tuple(_TABLE)
"""Names of the presets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Assumptions that a simulated time rests on.

    Args:
        reconfiguration_charge: on_change charges a reconfiguration for a round whose circuits are not all standing
            already; every_step charges it for every round, as most papers do.
        initial: cold charges the first setting of circuits, warm assumes that it is done (on_change only).
        compute: fused sums all arrivals of a chunk in one pass over memory, (arrivals + 2) bytes moved for each byte of
            the chunk; chain adds one arrival after the other, 3 bytes each; none charges nothing.
        memory_bytes_per_s: memory bandwidth of the device that computes the sums [byte/s].
        control: charged counts the exchange of control messages in every round; none does not.
    Raises: ParameterError: the memory bandwidth is not positive.
    Source: RAMP section 7.4 (roofline, memory bound).
    """

    reconfiguration_charge: Literal["on_change", "every_step"] = "on_change"
    initial: Literal["cold", "warm"] = "cold"
    compute: Literal["fused", "chain", "none"] = "fused"
    memory_bytes_per_s: ByteRate = _TABLE["default"]["memory_bytes_per_s"]
    control: Literal["charged", "none"] = "charged"

    def __post_init__(self) -> None:
        if self.memory_bytes_per_s <= 0:
            raise ParameterError(
                f"simulate: memory_bytes_per_s={self.memory_bytes_per_s:g} is not positive; try 1.5TB/s"
            )

    def record(self) -> dict[str, Any]:
        """Values by name, for JSON."""
        return asdict(self)


_MEANINGS = {
    "reconfiguration_charge=on_change": "A reconfiguration is charged where a round has circuits that were not set before.",
    "reconfiguration_charge=every_step": "A reconfiguration is charged on every round, whether circuits change or not.",
    "initial=cold": "The first setting of the circuits is charged.",
    "initial=warm": "The first circuits are set before the time begins.",
    "compute=fused": "All arrivals of a chunk are summed in one pass over memory.",
    "compute=chain": "Arrivals are summed one after the other.",
    "compute=none": "Sums take no time.",
    "memory_bytes_per_s": "Memory bandwidth of the device that computes the sums.",
    "control=charged": "The fabric's control messages are counted on every step.",
    "control=none": "Control messages are not counted.",
}


def meaning_of(name: str, value: object) -> str:
    """What an assumption means, in one sentence; "" if it has none on file.

    >>> meaning_of("initial", "cold")
    'The first setting of the circuits is charged.'

    Args:
        name: field of `Assumptions`.
        value: of the field.
    """
    return _MEANINGS.get(f"{name}={value}") or _MEANINGS.get(name, "")


def assumptions(preset: str | Assumptions = "default", **changed: Any) -> Assumptions:
    """Assumptions of a preset, some of them changed.

    Args:
        preset: default, ramp, sipac, wrht, oddl or lumorph; or assumptions to change.
        changed: fields of `Assumptions`; texts are converted.
    Raises: UnknownNameError: no such preset. ParameterError: no such field or value.

    >>> assumptions("wrht", compute="chain").reconfiguration_charge
    'every_step'
    >>> assumptions(assumptions("wrht"), initial="warm").compute
    'none'
    """
    if isinstance(preset, Assumptions):
        given = convert_arguments(Assumptions, {**preset.record(), **changed}, "simulate") if changed else {}
        return replace(preset, **given)
    key = canonical(preset)
    if key not in PRESETS:
        raise UnknownNameError(f"unknown preset {preset!r}; {nearest(key, PRESETS)}")
    values = {name: value for name, value in _TABLE[key].items() if name != "source"}
    return Assumptions(**convert_arguments(Assumptions, {**values, **changed}, "simulate"))
