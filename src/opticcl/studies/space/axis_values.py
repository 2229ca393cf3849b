"""Values of the axes of a design space: what a file may write, converted and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from opticcl.assumptions import KEYS, assumptions
from opticcl.collective import collective_name
from opticcl.errors import OpticclError, ParameterError
from opticcl.estimate.cost import price_lists
from opticcl.fabrics import FABRICS
from opticcl.registry import canonical, convert_given, convert_value, nearest, parameter_types, parse_call
from opticcl.schedule import AlgorithmCall
from opticcl.units import message_size, quantity

__all__ = ["AXES", "BEST", "DEFAULTS", "REQUIRED", "axis_value"]

MOST_NODES = 1 << 20
"""Of a fabric [count]."""

BEST = "best"
"""Values of a light budget: those of the paper where they suffice, else the typical ones."""

DEFAULTS: dict[str, Any] = {
    "collective": "all_reduce",
    "algorithm": "auto",
    "node_rate": "built",
    "assumptions": "common",
    "prices": "default",
    "optics": BEST,
    "vary": "",
}
"""Value of an axis that a file does not have."""

REQUIRED = ("fabric", "nodes")
AXES = (*REQUIRED, "size", "workload", *(name for name in DEFAULTS if name != "vary"))


def axis_value(axis: str, value: Any, axes: Mapping[str, tuple[Any, ...]], what: str = "") -> Any:
    """A value of an axis, converted and checked.

    Args:
        axis: name.
        value: as a file or an option has it.
        axes: values of the other axes: fabrics and named sets that single keys belong to.
        what: its name in messages.
    Raises: ParameterError, UnknownNameError: not a value of this axis.
    """
    what = what or axis
    kind, _, key = axis.partition(".")
    if kind == "assume":
        return _assumed(what, key, value, axes)
    if kind == "parameter":
        return _parameter(what, key, value, axes)
    if axis == "size":
        return _positive(what, value, message_size(_scalar(value, what), what))
    if axis == "nodes":
        number = convert_value(value, int, what)
        if not 1 <= number <= MOST_NODES:
            raise ParameterError(f"{what}: {number:,} nodes; there are 1 to {MOST_NODES:,}")
        return number
    if axis == "node_rate" and value != "built":
        return _positive(what, value, quantity(_scalar(value, what), "bit/s", what))
    if not isinstance(value, str):
        raise ParameterError(f"{what}: {value!r} is not text")
    try:
        return _NAMES[axis](value) if axis in _NAMES else value
    except OpticclError as error:
        raise type(error)(f"{what}: {error}") from None


def _scalar(value: Any, what: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ParameterError(f"{what}: {value!r} is neither a number nor a text with a unit")
    return value


def _positive(what: str, value: Any, number: Any) -> Any:
    if not number > 0:
        raise ParameterError(f"{what}: {value!r} is not positive")
    return number


def _fabric_text(text: str) -> str:
    name, written = parse_call(text)
    convert_given(FABRICS.get(name), written, name)
    return text.strip()


def _algorithm_text(text: str) -> str:
    if parse_call(text)[0] != "auto":
        AlgorithmCall.of(text)
    return text.strip()


def _workload_text(text: str) -> str:
    """Name of a model, of a built-in trace, or a file."""
    from opticcl.traces import BUILTIN_WORKLOADS
    from opticcl.training.models import MODELS

    known = (*MODELS.names(), *BUILTIN_WORKLOADS)
    if parse_call(text)[0] not in known and not Path(text).exists():
        raise ParameterError(f"{text!r} is neither a model, a built-in trace nor a file; {nearest(text, known)}")
    return text.strip()


def _collective_text(text: str) -> str:
    name = collective_name(text)
    if name == "barrier":
        raise ParameterError("a barrier has no message; leave it out")
    return name


def _among(known: Callable[[], Iterable[str]]) -> Callable[[str], str]:
    def check(text: str) -> str:
        key = canonical(text)
        if key not in known():
            raise ParameterError(f"unknown name {text!r}; {nearest(key, known())}")
        return key

    return check


def _presets() -> set[str]:
    """`best` and all presets of the values of light budgets."""
    from opticcl.errors import UnsupportedError
    from opticcl.fabrics import light_table

    names = {BEST}
    for name in FABRICS.names():
        try:
            names |= set(light_table(name).presets)
        except UnsupportedError:
            continue  # packets: no light from end to end
    return names


_NAMES: dict[str, Callable[[str], str]] = {
    "fabric": _fabric_text,
    "workload": _workload_text,
    "algorithm": _algorithm_text,
    "collective": _collective_text,
    "assumptions": lambda text: assumptions(text).name,
    "prices": _among(price_lists),
    "optics": _among(_presets),
}


def _assumed(what: str, key: str, value: Any, axes: Mapping[str, tuple[Any, ...]]) -> Any:
    if key not in KEYS:
        raise ParameterError(f"{what}: unknown assumption {key!r}; {nearest(key, KEYS)}")
    converted = [
        getattr(assumptions(name, **{key: _scalar(value, what)}), key)
        for name in axes.get("assumptions", (DEFAULTS["assumptions"],))
    ]
    return converted[0]


def _parameter(what: str, key: str, value: Any, axes: Mapping[str, tuple[Any, ...]]) -> Any:
    converted = []
    for text in axes.get("fabric", ()):
        name, written = parse_call(text)
        types = parameter_types(FABRICS.get(name))
        if key in types:
            if key in written:
                raise ParameterError(f"{what}: {text} has {key} itself; leave it out there")
            converted.append(convert_value(_scalar(value, what), types[key], what))
    if not converted:
        raise ParameterError(f"{what}: no fabric of the study has a parameter {key!r}; opticcl list NAME shows them")
    return converted[0]
