"""Verification of the data of schedules: all chunks, by checked symmetries or one by one."""

from __future__ import annotations

import math
from collections.abc import Callable

from measure import NotRunError, Run, register

from opticcl.collective import Request
from opticcl.errors import OpticclError
from opticcl.fabrics import fabric_at_scale
from opticcl.ir import Schedule
from opticcl.schedule import generate
from opticcl.verify.data.contributions import check_data

SYMMETRIC = (  # fabric, algorithm, a name of the case
    ("ideal", "ring", "ring"),
    ("ideal", "two_sided_ring", "two_sided_ring"),
    ("ideal", "mesh", "mesh"),
    ("ideal", "bruck", "bruck"),
    ("ideal", "halving_doubling", "halving_doubling"),
    ("ideal", "recursive_doubling", "recursive_doubling"),
    ("ideal", "lumorph", "lumorph"),
    ("ideal", "by_dimension:shape={side}x{side}", "by_dimension"),
    ("torus", "torus2d", "torus2d"),
    ("sipac", "sipco", "sipco"),
    ("ramp", "ramp", "ramp"),
)
COLLECTIVE = {"bruck": "all_gather", "by_dimension": "all_to_all"}
"""Collective of a case where it is not all_reduce."""


def made(system: str, algorithm: str, nodes: int, collective: str) -> Schedule:
    """A schedule at scale.

    Args:
        system: name of the fabric.
        algorithm: name with parameters; {side} is the side of a square of all nodes.
        nodes: of the fabric.
        collective: of the schedule.
    Raises: NotRunError: no such algorithm, or it declines.
    """
    try:
        algorithm = algorithm.format(side=math.isqrt(nodes))
        return generate(algorithm, Request(collective, 0), fabric_at_scale(system, nodes))
    except OpticclError as error:
        raise NotRunError(str(error)) from None


def judged(make: Callable[[int], Schedule], nodes: int, *, all_chunks: bool = False) -> Callable[[], Run]:
    """Kernels compiled by a small schedule of the same kind; the schedule, whose steps are functions, is made beforehand.

    Args:
        make: the schedule for a number of nodes.
        nodes: of the measured one.
        all_chunks: follow each chunk, whatever is claimed.
    """

    def prepare() -> Run:
        assert not check_data(make(256), every_chunk=all_chunks).violations
        large = make(nodes)

        def run() -> None:
            report = check_data(large, every_chunk=all_chunks)
            assert not report.violations, report.violations[0]
            assert report.exhaustive

        return run

    return prepare


for _nodes in (1024, 4096, 65536):
    for _system, _algorithm, _name in SYMMETRIC:
        if _nodes == 65536 and _name in ("mesh", "recursive_doubling"):
            continue
        _collective = COLLECTIVE.get(_name, "all_reduce")
        register(
            f"proofs.{_name}_{_nodes}",
            f"all chunks of {_name}, {_collective}, {_nodes:,} nodes",
            judged(
                lambda n, system=_system, algorithm=_algorithm, collective=_collective: made(
                    system, algorithm, n, collective
                ),
                _nodes,
            ),
        )

for _algorithm, _system, _nodes in (
    ("ring", "ideal", 1024),
    ("ring", "ideal", 4096),
    ("halving_doubling", "ideal", 1024),
    ("halving_doubling", "ideal", 4096),
    ("halving_doubling", "ideal", 16384),
    ("halving_doubling", "ideal", 65536),
    ("wavelength_exchange", "terarack", 4096),
):
    register(
        f"proofs.each_chunk_{_algorithm}_{_nodes}",
        f"each chunk of {_algorithm} followed, all_reduce, {_nodes:,} nodes, no claim used",
        judged(
            lambda n, system=_system, algorithm=_algorithm: made(system, algorithm, n, "all_reduce"),
            _nodes,
            all_chunks=True,
        ),
    )
