"""Who sends which piece to whom in which step: one file an algorithm family.

To add an algorithm, write `generate(collective, fabric, *, ...)` and `accepts(collective, fabric, *, ...)` (None, or the
reason why not) in a file here and register them; nothing else is edited. `collective` is a `Request`: a name and a root.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from opticcl.collective import Request, as_request
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import Fabric, Schedule
from opticcl.registry import Registry, convert_arguments, parse_call, write_call

__all__ = [
    "ALGORITHMS",
    "AlgorithmMaker",
    "all_variants",
    "generate",
    "needs_whole",
    "reason_declined",
    "register_algorithm",
]


Variants = Callable[[Request, Fabric], Iterable[dict[str, Any]]]


def _one_variant(collective: Request, fabric: Fabric) -> Iterable[dict[str, Any]]:
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
    """Decorator that registers a generating function; see `AlgorithmMaker`.

    Raises: ParameterError: `accepts` or `variants` cannot take what `generate` takes.
    """

    def add(function: Maker) -> Maker:
        _check_signatures(name, AlgorithmMaker(function, accepts, variants))
        ALGORITHMS.register(name)(AlgorithmMaker(function, accepts, variants))
        return function

    return add


def _check_signatures(name: str, maker: AlgorithmMaker) -> None:
    """Refuse functions that would fail when they are called."""
    own = {p.name: p.default for p in list(inspect.signature(maker.generate).parameters.values())[2:]}
    for what, function, keywords in (("accepts", maker.accepts, own), ("variants", maker.variants, {})):
        try:
            inspect.signature(function).bind("collective", "fabric", **keywords)
        except TypeError as error:
            due = ", ".join(["collective", "fabric", *(f"{key}={default!r}" for key, default in keywords.items())])
            raise ParameterError(f"{name}: {what}: {error}; write def {what}({due})") from None


def all_variants(collective: Request, fabric: Fabric) -> list[str]:
    """Every algorithm with every parameter set worth trying, as texts that `generate` takes."""
    return [
        write_call(name, given)
        for name in ALGORITHMS.names()
        for given in ALGORITHMS.get(name).variants(collective, fabric)
    ]


def needs_whole(fabric: Fabric, name: str) -> str | None:
    """Why an algorithm that is made for the whole of one system cannot run on this fabric, or None if it can."""
    if fabric.name != name:
        return f"it needs a {name} fabric"
    if fabric.nodes is not None:
        return f"it runs on a whole {name}, not on part of one; try ring, tree or lumorph"
    return None


def reason_declined(algorithm: str, collective: Request | str, fabric: Fabric) -> str | None:
    """Why that algorithm cannot do that collective on that fabric, or None if it can.

    Args: algorithm: "lumorph" or "lumorph:radix=4".
    """
    key, written = parse_call(algorithm)
    maker = ALGORITHMS.get(key)
    arguments = convert_arguments(maker.generate, written, key, positional=2)
    return maker.accepts(as_request(collective), fabric, **arguments)


def generate(algorithm: str, collective: Request | str, fabric: Fabric) -> Schedule:
    """The schedule of that algorithm.

    Raises: UnknownNameError, ParameterError; UnsupportedError: the algorithm declines, with its reason.
    """
    wanted = as_request(collective)
    if not 0 <= wanted.root < fabric.num_nodes:
        raise ParameterError(f"{wanted.name}: root={wanted.root} is no rank; try 0 to {fabric.num_nodes - 1}")
    reason = reason_declined(algorithm, wanted, fabric)
    key, written = parse_call(algorithm)
    if reason is not None:
        raise UnsupportedError(f"{key} cannot do {wanted.name} on {fabric.name}: {reason}")
    maker = ALGORITHMS.get(key)
    arguments = convert_arguments(maker.generate, written, key, positional=2)
    made = maker.generate(wanted, fabric, **arguments)
    return dataclasses.replace(made, name=key, parameters=MappingProxyType(arguments))
