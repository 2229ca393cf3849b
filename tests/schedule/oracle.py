"""What every collective must come to, by NumPy alone, and a check of a schedule against it and against the judge."""

from collections.abc import Iterator

import numpy as np

from opticcl.circuits import lower
from opticcl.collective import ROOTED, Request
from opticcl.execute import execute
from opticcl.ir import Fabric, Schedule
from opticcl.schedule import generate
from opticcl.verify import verify

BLOCK = 3  # elements that each rank has, gets or sends to each other


def check(algorithm: str, collective: Request | str, fabric: Fabric) -> Schedule:
    """The schedule, verified on its light with all chunks and executed on integers."""
    request = collective if isinstance(collective, Request) else Request(collective)
    schedule = generate(algorithm, request, fabric)
    verdict = verify(lower(fabric, schedule))
    assert verdict.ok, f"{algorithm} {request} on {fabric.name} with {fabric.num_nodes}: {verdict}"
    assert verdict.exhaustive
    given, due = expected(request, fabric.num_nodes)
    for result, right in zip(execute(schedule, given), due, strict=True):
        assert (result is None) == (right is None)
        assert right is None or np.array_equal(result, right)
    return schedule


def requests(collective: str, num_nodes: int) -> Iterator[Request]:
    """All roots of small numbers of nodes, three of large ones."""
    roots = range(num_nodes) if num_nodes <= 5 else (0, num_nodes // 2, num_nodes - 1)
    for root in roots if collective in ROOTED else (0,):
        yield Request(collective, root)


def expected(request: Request, n: int) -> tuple[list, list]:
    """Each rank's array before and after, None where it has nothing."""
    data = np.random.default_rng(n).integers(-99, 99, (n, n, BLOCK))  # rank, block, element
    whole, own = list(data.reshape(n, -1)), [data[rank, rank] for rank in range(n)]
    total, gathered = data.sum(axis=0), np.concatenate(own)

    def at_root(message: object) -> list:
        return [message if rank == request.root else None for rank in range(n)]

    return {
        "all_reduce": (whole, [total.ravel()] * n),
        "barrier": (whole, [total.ravel()] * n),
        "reduce_scatter": (whole, list(total)),
        "all_gather": (own, [gathered] * n),
        "all_to_all": (whole, [data[:, rank].ravel() for rank in range(n)]),
        "broadcast": (at_root(whole[request.root]), [whole[request.root]] * n),
        "reduce": (whole, at_root(total.ravel())),
        "scatter": (at_root(whole[request.root]), list(data[request.root])),
        "gather": (own, at_root(gathered)),
        "send_recv": (own, [own[(rank - request.shift) % n] for rank in range(n)]),
    }[request.name]
