"""Who sends which piece to whom in which step: one file an algorithm family.

To add an algorithm, write `generate(collective, fabric, *, ...)` and `accepts(collective, fabric, *, ...)` (None, or the
reason why not) in a file here and register them; nothing else is edited. `collective` is its canonical name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from opticcl.collective import collective_name
from opticcl.errors import UnsupportedError
from opticcl.ir import Fabric, Schedule
from opticcl.registry import Registry, convert_arguments, parse_call, write_call

__all__ = ["ALGORITHMS", "AlgorithmMaker", "all_variants", "generate", "reason_declined", "register_algorithm"]


Variants = Callable[[str, Fabric], Iterable[dict[str, Any]]]


def _one_variant(collective: str, fabric: Fabric) -> Iterable[dict[str, Any]]:
    return ({},)


class AlgorithmMaker(NamedTuple):
    """The functions of an algorithm.

    Args:
        generate: (collective, fabric, **parameters) -> Schedule.
        accepts: the same arguments -> None, or the reason why not.
        variants: (collective, fabric) -> parameters worth trying when the fastest is looked for.
    """

    generate: Callable[..., Schedule]
    accepts: Callable[..., str | None]
    variants: Variants = _one_variant


ALGORITHMS: Registry[AlgorithmMaker] = Registry("algorithm", __name__)

Maker = TypeVar("Maker", bound=Callable[..., Schedule])


def register_algorithm(
    name: str, accepts: Callable[..., str | None], variants: Variants = _one_variant
) -> Callable[[Maker], Maker]:
    """Decorator that registers a generating function; see `AlgorithmMaker`."""

    def add(function: Maker) -> Maker:
        ALGORITHMS.register(name)(AlgorithmMaker(function, accepts, variants))
        return function

    return add


def all_variants(collective: str, fabric: Fabric) -> list[str]:
    """Every algorithm with every parameter set worth trying, as texts that `generate` takes."""
    key = collective_name(collective)
    return [
        write_call(name, given) for name in ALGORITHMS.names() for given in ALGORITHMS.get(name).variants(key, fabric)
    ]


def reason_declined(algorithm: str, collective: str, fabric: Fabric) -> str | None:
    """Why that algorithm cannot do that collective on that fabric, or None if it can.

    Args: algorithm: "lumorph" or "lumorph:radix=4".
    """
    key, written = parse_call(algorithm)
    maker = ALGORITHMS.get(key)
    arguments = convert_arguments(maker.generate, written, key, positional=2)
    return maker.accepts(collective_name(collective), fabric, **arguments)


def generate(algorithm: str, collective: str, fabric: Fabric) -> Schedule:
    """The schedule of that algorithm.

    Raises: UnknownNameError, ParameterError; UnsupportedError: the algorithm declines, with its reason.
    """
    reason = reason_declined(algorithm, collective, fabric)
    key, written = parse_call(algorithm)
    if reason is not None:
        raise UnsupportedError(f"{key} cannot do {collective_name(collective)} on {fabric.name}: {reason}")
    maker = ALGORITHMS.get(key)
    arguments = convert_arguments(maker.generate, written, key, positional=2)
    made = maker.generate(collective_name(collective), fabric, **arguments)
    return dataclasses.replace(made, name=key, parameters=MappingProxyType(arguments))
