"""Times of recovery of `opticcl faults --replay`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.operations.fault_replay.replay import RecoveryTimes

__all__ = ["split_assumed"]

LONG_UNITS = {"min": 60.0, "h": 3600.0, "d": 86_400.0}
"""Units of times of recovery [s]."""


def split_assumed(recover: Sequence[str], assume: Sequence[str]) -> tuple[RecoveryTimes, list[str]]:
    """Recovery times of `--recover` and among the values of `--assume`, and the other values of `--assume`.

    Args: recover, assume: "restart=30min", "weak=0.5"; in `assume` also assumptions on times.
    Raises: ParameterError, UnitError: an unknown name, a value of another kind, or a key given twice.
    """
    from opticcl.operations.fault_replay.replay import RecoveryTimes, recovery_times
    from opticcl.registry import convert_value, nearest

    names = RecoveryTimes.__slots__
    given: dict[str, Any] = {}
    others = []
    for option, item in [("--recover", item) for item in recover] + [("--assume", item) for item in assume]:
        key, equals, text = (part.strip() for part in item.partition("="))
        if not equals or key not in names:
            if option == "--recover":
                raise ParameterError(f"--recover: {item!r}; write one such as restart=600s; {nearest(key, names)}")
            others.append(item)
            continue
        if key in given:
            raise ParameterError(f"{option}: {key} is given twice; give it once")
        share = key in ("communication", "weak")
        given[key] = convert_value(text, float, f"{option}: {key}") if share else _seconds(text, f"{option}: {key}")
    return recovery_times(**given), others


def _seconds(text: str, what: str) -> float:
    """A time such as "30min", "2h" or "3.7us" [s].

    Args:
        text: number and unit.
        what: its name, for the message.
    Raises: ParameterError, UnitError: it is none.
    """
    from opticcl.registry import convert_value
    from opticcl.units import quantity

    for unit, factor in LONG_UNITS.items():
        if text.endswith(unit):
            return factor * float(convert_value(text.removesuffix(unit).strip(), float, what))
    return quantity(text, "s", what)
