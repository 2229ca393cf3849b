"""Light on rings and lines of nodes: the mean and the longest way, over all pairs of nodes of a row or a column."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from opticcl.fabrics import fabric
from opticcl.fabrics._datasheet import optics_of
from opticcl.fabrics._ring_light import ring_light

WAYS = [(True, 2), (True, 1), (False, 2)]
"""Whether the last node is followed by the first, and directions of light."""


def segments(a: int, b: int, side: int, wrap: bool, directions: int) -> int:
    """Segments from node a to node b of a ring or line.

    Args:
        a, b: positions.
        side: nodes [count].
        wrap: whether the last is followed by the first.
        directions: in which light runs.
    """
    walks = []
    for step in (1, -1)[:directions]:
        at, passed = a, 0
        while at != b and passed <= side:
            at, passed = (at + step) % side if wrap else at + step, passed + 1
        walks += [passed] if at == b else []
    return min(walks)


@pytest.mark.parametrize(("wrap", "directions"), WAYS)
@pytest.mark.parametrize("sides", [(2,), (3,), (7,), (8,), (1, 4), (3, 5), (6, 2), (4, 4)])
def test_ways_of_all_pairs(sides: tuple[int, ...], wrap: bool, directions: int) -> None:
    """Each passes the modulator of its sender and the interfaces at the ends of its segments, all of one loss."""
    path = ring_light(optics_of("terarack"), sides, wrap, directions, {"modulator": 2.0, "interface": 3.0})
    found = [
        [segments(a, b, side, wrap, directions) for a, b in product(range(side), repeat=2) if a != b] for side in sides
    ]
    machines = [int(np.prod(sides)) // side for side in sides]  # as many rings or lines
    every = [hops for hops, many in zip(found, machines, strict=True) for hops in hops * many]
    assert path.typical == pytest.approx([2.0, 3.0 * sum(every) / len(every)])
    assert path.extremes.tolist() == [[2.0, 3.0 * max(hops, default=0)] for hops in found]
    assert [element.kind for element in path.elements] == ["modulator", "interface"]


def test_a_node_by_itself() -> None:
    """Its light has nowhere to go."""
    for sides in ((1,), (1, 1)):
        assert ring_light(optics_of("terarack"), sides).typical.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("terarack", ("half the ring",)),
        ("sip_ring:directions=2", ("half the ring",)),
        ("sip_ring:directions=1", ("all of the ring but one segment",)),
        ("terarack_torus:wrap=true", ("half a row", "half a column")),
        ("terarack_torus:wrap=false", ("a row", "a column")),
    ],
)
def test_names_of_the_longest_ways(spec: str, names: tuple[str, ...]) -> None:
    """One a ring, or one along the row and one along the column."""
    assert fabric(spec).light_path.names == names
