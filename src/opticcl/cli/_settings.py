"""Values that a user sets by name, such as `--set fibre.loss=0.3dB/km`."""

from __future__ import annotations

from collections.abc import Iterable

from opticcl.errors import ParameterError
from opticcl.registry import canonical

__all__ = ["parse_settings"]


def parse_settings(given: Iterable[str], example: str = "fibre.loss=0.3dB/km", option: str = "--set") -> dict[str, str]:
    """Texts by name.

    >>> parse_settings(["fibre.loss=0.3dB/km", "launch = 10dBm"])
    {'fibre.loss': '0.3dB/km', 'launch': '10dBm'}

    Args:
        given: values of the option.
        example: a valid value, for messages.
        option: its name.
    Raises: ParameterError: not name=value, or a name given twice.
    """
    settings: dict[str, str] = {}
    for item in given:
        name, equals, value = (part.strip() for part in item.partition("="))
        name = canonical(name)
        if not equals or not name or not value:
            raise ParameterError(f"{option}: {item!r} is not name=value; write {option} {example}")
        if name in settings:
            raise ParameterError(f"{option}: {name} is given twice; give it once")
        settings[name] = value
    return settings
