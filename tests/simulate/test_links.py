"""Shared links as one list: their numbers, paths, routes, bytes and names."""

from types import SimpleNamespace

import numpy as np
import pytest

from opticcl.errors import UnsupportedError
from opticcl.ir import Circuits, Op, Transfers, Usage
from opticcl.simulate.links import Links, link_bytes, link_names, shared_amounts

FIRST, APART, SECOND = (
    SimpleNamespace(shared=True, count=2, capacity=80.0),
    SimpleNamespace(shared=False, count=5, capacity=1.0),
    SimpleNamespace(shared=True, count=3, capacity=8.0),
)


def machine(*usages, **more):
    """Two kinds of shared links with another kind between them, used in the same way by all circuits."""
    names = {"name": "made", "is_packet_switched": True, "place_names": lambda row, index: [(row, index[0])]}
    resources = (FIRST, APART, SECOND)
    return SimpleNamespace(resources=resources, usage=lambda circuits: usages, **{**names, **more})


def circuits_on(*paths, transfer=None):
    """One circuit for each path."""
    n = len(paths)
    hops = np.array([hop for path in paths for hop in path], np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(path) for path in paths])]).astype(np.int64)
    rows = range(n) if transfer is None else transfer
    return Circuits.of(list(rows), [0] * n, [1] * n, path=(hops, offsets))


USED = (
    Usage(FIRST, np.array([1, 0, 0])),  # one each
    Usage(APART, np.array([4, 4, 4])),
    Usage(SECOND, np.array([2, 1, 0]), np.array([2, 0, 2])),
)


def test_links_are_numbered_kind_by_kind():
    """What is not shared has no numbers; rates are in bytes."""
    links = Links(machine(*USED))
    assert links.capacity.tolist() == [10.0, 10.0, 1.0, 1.0, 1.0]
    assert links.base == {id(FIRST): 0, id(SECOND): 2}
    assert Links(SimpleNamespace(resources=(APART,))).capacity.tolist() == []


@pytest.mark.parametrize(
    ("used", "due"),
    [
        (USED, [[1, 3], [0], [0, 2, 4]]),
        (USED[::-1], [[1, 3], [0], [0, 2, 4]]),
        (USED[:1], [[1], [0], [0]]),
        (USED[2:], [[3], [], [2, 4]]),
        ((Usage(SECOND, np.array([2, 1]), np.array([1, 1])),), [[], [3, 4], []]),
    ],
)
def test_paths_are_the_links_of_every_circuit(used, due):
    """Of several kinds, in any order of the circuits, of circuits with no link too."""
    links, offsets = Links(machine(*used)).paths(circuits_on([], [], []))
    assert [sorted(part.tolist()) for part in np.split(links, offsets[1:-1])] == due


def test_routes_are_hops_in_their_order():
    """As the circuits list them, not as the machine does."""
    circuits = circuits_on([3, 1], [0], [4, 0, 2])
    hops, offsets = Links(machine(*USED)).routes(circuits)
    assert hops.tolist() == [3, 1, 0, 4, 0, 2]
    assert offsets.tolist() == [0, 2, 3, 6]
    hops, offsets = Links(machine(Usage(FIRST, np.zeros(0, int), np.zeros(0, int)))).routes(circuits_on())
    assert (hops.tolist(), offsets.tolist()) == ([], [0])


@pytest.mark.parametrize(
    ("paths", "reason"),
    [
        (([3, 1], [0], [4, 0, 5]), "are not its shared links"),  # one that does not exist
        (([3, 1], [0], [4, 0, -1]), "are not its shared links"),
        (([3, 1], [0], [4, 0, 3]), "are not its shared links"),  # another
        (([3, 1], [0], [4, 0]), "are not its shared links"),  # one missing
        (([], [], []), "are not its shared links"),
        (([3, 1], [], [4, 0, 2, 0]), "a circuit has no path"),
    ],
)
def test_what_is_no_route_is_refused(paths, reason):
    """Hops that are other links than those that circuits use, and circuits without any."""
    with pytest.raises(UnsupportedError, match=reason):
        Links(machine(*USED)).routes(circuits_on(*paths))


def test_a_transfer_on_several_routes_shares_them_equally():
    """A transfer without routes shares none."""
    circuits = circuits_on([0], [1], [2], [3], transfer=[0, 2, 0, 0])
    assert shared_amounts(np.array([6.0, 5.0, 4.0]), circuits).tolist() == [2.0, 4.0, 2.0, 2.0]


def test_bytes_of_links_over_a_plan():
    """Three equal steps of two rounds and one other: every route carries its share of its transfer."""
    both = (circuits_on([0, 4], [1, 2], transfer=[0, 0]), circuits_on([3, 2], transfer=[1]))
    steps = [Transfers.of([0, 0], [1, 1], [0, 2], [2, 1], Op.COPY)] * 3 + [Transfers.of([0], [1], [3], [4], Op.COPY)]
    plan = SimpleNamespace(
        schedule=SimpleNamespace(
            collective=SimpleNamespace(num_chunks=8),
            step_classes=lambda: (range(3), range(3, 4)),
            step=lambda i: steps[i],
        ),
        rounds=lambda i: both if i == 0 else (circuits_on([2, 0]),) if i == 3 else None,
        fabric=machine(),
    )

    def usage(circuits):
        owner = circuits.hop_owner()
        first = circuits.hops < 2
        return (
            Usage(FIRST, circuits.hops[first], owner[first]),
            Usage(SECOND, circuits.hops[~first] - 2, owner[~first]),
        )

    plan.fabric.usage = usage
    # of 10 bytes a chunk: 20 on two routes, 10 on one, three times; then 40
    assert link_bytes(plan, 80).tolist() == [30.0 + 40, 30.0, 30.0 + 30 + 40, 30.0, 30.0]
    plan.fabric.is_packet_switched = False
    with pytest.raises(UnsupportedError, match="only packet fabrics have bytes of a link"):
        link_bytes(plan, 80)


def test_names_of_links_are_those_of_their_kinds():
    """By the place of the kind among all resources, and the number within the kind."""
    assert link_names(machine(), [4, 0, 1, 2]) == [(2, 2), (0, 0), (0, 1), (2, 0)]
