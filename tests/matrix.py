"""The conformance matrix: which fabric, which algorithm, which collective, at which sizes."""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import pytest

from opticcl.circuits import lower
from opticcl.collective import COLLECTIVES, ROOTED, Request
from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabrics import FABRICS, fabric_at_scale
from opticcl.ir import CircuitPlan
from opticcl.schedule import ALGORITHMS, AlgorithmCall, generate

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 25, 27, 30, 32, 54, 64)
FEWER_SIZES = (1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17, 27, 32)
FEWEST_SIZES = (1, 2, 5, 12, 16)
DEEP_SIZES = (3, 4, 6, 7, 12, 13, 17, 25, 27, 30, 32, 54, 64)
"""Sizes that `make test-deep` adds."""
LARGEST = 16
"""Nodes at which `make test` tries an all_reduce and an all_to_all alone."""
ROOTED_AT = (2, 5)
"""Numbers of nodes at which `make test` tries collectives with a root: the middle rank."""
OPTICAL = ("lightpath", "oddl", "ramp", "sipac", "terarack")
VARIANTS = {
    "ramp": ("ramp", "ramp:variant=modular"),
    "sipco": ("sipco", "sipco:k=2"),
    "wrht": ("wrht", "wrht:variant=published", "wrht:group_size=3"),
    "lumorph": ("lumorph", "lumorph:radix=4", "lumorph:radix=8"),
    "bruck": ("bruck", "bruck:radix=3"),
    "skewed_exchange": ("skewed_exchange", "skewed_exchange:classes=2", "skewed_exchange:parts=3,direct=2"),
}


def pairs() -> Iterator[tuple[str, str]]:
    """Every pair of fabric and algorithm, with the algorithm's variants."""
    for fabric in FABRICS.names():
        for algorithm in ALGORITHMS.names():
            for variant in VARIANTS.get(algorithm, (algorithm,)):
                yield fabric, variant


@cache
def cells() -> tuple[tuple[str, str], ...]:
    """The pairs that accept a collective at some number of nodes; `tests.pages.declined` has the reasons of all others."""
    return tuple(pair for pair in pairs() if any(True for _ in accepted(*pair)))


def shared_out(pairs: Iterable[tuple[str, str]], third: int = 0) -> list[Any]:
    """Cells with a number each; `make test` tries a third of them, every algorithm among them, the others are deep.

    Args:
        pairs: fabrics and algorithms.
        third: which one, 0 to 2.
    """
    tried, shared = set(), []
    for fabric, algorithm in pairs:
        number, rest = divmod(zlib.crc32(f"{fabric} {algorithm}".encode()), 3)
        soon = rest == third or algorithm not in tried
        tried.add(algorithm)
        shared.append(pytest.param(fabric, algorithm, number, marks=() if soon else pytest.mark.deep))
    return shared


def accepted(fabric: str, algorithm: str, *collectives: str) -> Iterator[tuple[int, Request]]:
    """The cases of a fabric that an algorithm accepts, of all collectives or of some; no step is generated."""
    call = AlgorithmCall.of(algorithm)
    for size, request in cases(fabric, *collectives):
        machine = at_scale(fabric, size)
        if not isinstance(machine, str) and call.reason_declined(request, machine) is None:
            yield size, request


def cases(fabric: str, *collectives: str) -> Iterator[tuple[int, Request]]:
    """Numbers of nodes and requests at which a cell is tried, the largest first; of all collectives or of some."""
    for collective in collectives or COLLECTIVES:
        for size in reversed(sizes(fabric, collective)):
            for request in requests(collective, size):
                yield size, request


def sizes(fabric: str, collective: str) -> tuple[int, ...]:
    """Numbers of nodes at which a cell is tried: most for the main job on light, fewest on the electrical rivals."""
    if fabric not in OPTICAL:
        return FEWEST_SIZES
    return SIZES if collective == "all_reduce" else FEWER_SIZES


def requests(collective: str, size: int) -> Iterator[Request]:
    """The collective with the first, a middle and the last rank as its root."""
    roots = sorted({0, size // 2, size - 1}) if collective in ROOTED else (0,)
    for root in roots:
        yield Request(collective, root, shift=1 if size < 3 else 2)


def is_deep(size: int, request: Request) -> bool:
    """Whether `make test-deep` alone tries a case."""
    if size == LARGEST:
        return request.name not in ("all_reduce", "all_to_all")
    if size == 1:
        return request.name != "all_reduce"
    if request.name in ROOTED:
        return size not in ROOTED_AT or request.root != size // 2
    return size in DEEP_SIZES


@lru_cache(maxsize=256)
def at_scale(fabric: str, size: int):
    """The fabric at that size, or why there is none."""
    try:
        return fabric_at_scale(fabric, size)
    except FabricError as reason:
        return str(reason)


def compiled(fabric: str, algorithm: str, size: int, request: Request) -> CircuitPlan | str:
    """The plan of a cell, each step and its circuits generated once, or why there is none."""
    made = at_scale(fabric, size)
    if isinstance(made, str):
        return made
    try:
        schedule = generate(algorithm, request, made)
        plan = lower(made, schedule)
    except UnsupportedError as reason:
        return str(reason)
    return replace(plan, rounds=cache(plan.rounds))


def promised() -> Iterator[tuple[str, str]]:
    """Every (fabric, collective) that a system's paper promises."""
    for collective in COLLECTIVES:
        for fabric in OPTICAL:
            yield fabric, collective
