"""Records of the conformance matrix: what every algorithm lists for every collective on every fabric, and how long it takes."""

import hashlib
import zlib
from collections.abc import Iterator
from functools import cache

from opticcl.assumptions import assumptions
from opticcl.collective import COLLECTIVES
from opticcl.errors import UnsupportedError
from opticcl.ir import CircuitPlan
from opticcl.simulate import profile, programme
from tests.matrix import accepted, cases, cells, compiled
from tests.records.listing import digest_of_plan, digest_of_programme
from tests.records.meaning import algorithm_of

MESSAGES = (1000, 10**6, 10**8)
"""Sizes at which plans are timed [bytes]."""
ENGINES = {
    "closed_form": "closed_form",
    "flow": "flow",
    "flow_async": "flow:mode=asynchronous",
    "packet": "packet",
    "packet_async": "packet:mode=asynchronous",
    "device": "device",
}
SETS = tuple((name, initial) for name in ("common", "published") for initial in ("cold", "warm"))
FEW_NODES = 9
"""Nodes up to which a plan has programmes in a record [count]."""


def id_of(fabric: str, algorithm: str, collective: str) -> str:
    """Name of a record; without commas, so that `ONLY=` can list several."""
    return f"plans/{fabric}/{algorithm.replace(',', '+')}/{collective}"


def parts_of(id: str) -> tuple[str, str, str]:
    """Fabric, algorithm and collective of a record."""
    _, fabric, algorithm, collective = id.split("/")
    return fabric, algorithm.replace("+", ","), collective


@cache
def cell_names() -> tuple[str, ...]:
    """Names of the records of all cells that have a plan for more than one node."""
    return tuple(
        id_of(fabric, algorithm, collective)
        for fabric, algorithm in cells()
        for collective in COLLECTIVES
        if any(size > 1 for size, _ in accepted(fabric, algorithm, collective))
    )


def plans_of(fabric: str, algorithm: str, collective: str) -> Iterator[tuple[int, CircuitPlan]]:
    """Plans of a cell with their numbers of nodes, the largest first; one node sends nothing."""
    for size, request in cases(fabric):
        if request.name == collective and size > 1:
            plan = compiled(fabric, algorithm_of(algorithm), size, request)
            if not isinstance(plan, str):
                yield size, plan


def record_of(fabric: str, algorithm: str, collective: str) -> dict[str, object]:
    """Digests for every number of nodes, with all roots, times for three numbers of nodes, and programmes of a small plan.

    Returns: a record without its name; programmes are (digest, total [s], sum of all times [s]).
    """
    digests: dict[int, list[str]] = {}
    first: dict[int, CircuitPlan] = {}
    for size, plan in plans_of(fabric, algorithm, collective):
        digests.setdefault(size, []).append(digest_of_plan(plan))
        first.setdefault(size, plan)
    sizes = sorted(first)
    timed = sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]})
    found: dict[str, object] = {
        "digests": {str(size): joined(digests[size]) for size in sorted(digests)},
        "total_s": {str(size): times_of(first[size]) for size in timed},
    }
    few = [size for size in sizes if size <= FEW_NODES]
    if few and not first[few[-1]].fabric.is_packet_switched:
        name = id_of(fabric, algorithm, collective)
        found["programmes"] = {
            key: programme_of(first[few[-1]], engine, zlib.crc32(f"{name} {key}".encode()))
            for key, engine in ENGINES.items()
        }
    return found


def joined(digests: list[str]) -> str:
    """One digest of those of several roots."""
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()[:8]


def times_of(plan: CircuitPlan) -> list[float]:
    """Total by the closed form under `common`, for each message [s]."""
    timed = profile(plan, assumptions("common"))
    return [timed.timeline(size).total_s for size in MESSAGES]


def programme_of(plan: CircuitPlan, engine: str, drawn: int) -> list[object] | str:
    """Digest, total and sum of times of a programme, or why there is none.

    Args:
        plan: on circuits.
        engine: that makes it.
        drawn: number that chooses message and assumptions.
    """
    size = (*MESSAGES, 777)[drawn % 4]
    name, initial = SETS[drawn // 4 % 4]
    try:
        made = programme(plan, size, assumptions(name, initial=initial), engine=engine)
    except UnsupportedError as reason:
        return str(reason)
    digest, times_s = digest_of_programme(plan, made)
    return [digest, made.total_s, times_s]
