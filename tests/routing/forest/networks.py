"""Networks of published machines and of the literature, drawn networks, and an independent count of their cuts."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import product

import networkx
import numpy as np
from hypothesis import strategies as st

from opticcl.routing.forest.graph import CapacityGraph

Link = tuple[int, int, float]


def network(compute: int, links: Iterable[Link], *, switches: int = 0, both_ways: bool = True) -> CapacityGraph:
    """The graph of links (tail, head, rate).

    Args:
        compute: vertices that compute [count].
        links: between vertices, those that compute first.
        switches: further vertices [count].
        both_ways: whether each link leads back as well.
    """
    rows = [*links]
    rows += [(head, tail, rate) for tail, head, rate in rows] if both_ways else []
    tail, head, rate = (np.array(column) for column in zip(*rows, strict=True))
    return CapacityGraph.of_rates(compute, compute + switches, tail, head, rate.astype(np.float64))


def of_networkx(graph: networkx.Graph) -> CapacityGraph:
    """All vertices compute, every edge is a link of rate 1 each way."""
    return network(graph.number_of_nodes(), [(u, v, 1.0) for u, v in graph.edges])


def boxes(count: int, size: int, fast: float, slow: float, planes: int = 1) -> CapacityGraph:
    """Boxes around a switch each; the cards of a box are on switches in turn.

    Args:
        count: of boxes [count].
        size: of a box [count].
        fast: rate of a GPU to the switch of its box.
        slow: rate of its card.
        planes: switches that join the cards [count].
    """
    n = count * size
    links = [(gpu, n + gpu // size, fast) for gpu in range(n)]
    if count > 1:
        links += [(gpu, n + count + gpu % size % planes, slow) for gpu in range(n)]
    return network(n, links, switches=count + planes * (count > 1))


MI250 = (
    *((0, 1, 4), (0, 4, 2), (0, 8, 1), (1, 5, 1), (1, 9, 1), (1, 10, 1), (2, 3, 4), (2, 6, 1), (2, 9, 1), (2, 10, 1)),
    *((3, 7, 2), (3, 11, 1), (4, 5, 4), (4, 6, 1), (5, 6, 1), (5, 7, 1), (6, 7, 4), (8, 9, 4), (8, 12, 2), (9, 13, 1)),
    *((10, 11, 4), (10, 14, 1), (11, 15, 2), (12, 13, 4), (12, 14, 1), (13, 14, 1), (13, 15, 1), (14, 15, 4)),
)
"""Pairs of the halves of eight MI250 with the links that join them, as in the topologies of ForestColl (github)."""


def mi250(count: int, halves: int) -> CapacityGraph:
    """Boxes of the first halves of MI250 cards: 50 GB/s a link, and 16 GB/s of each half to one switch."""
    n = count * halves
    links = [
        (box * halves + a, box * halves + b, 50.0 * width)
        for box in range(count)
        for a, b, width in MI250
        if b < halves
    ]
    links += [(gpu, n, 16.0) for gpu in range(n) if count > 1]
    return network(n, links, switches=int(count > 1))


def kautz(n: int, degree: int) -> CapacityGraph:
    """Generalised Kautz graph: from i to -degree i - q, for q = 1 to degree (Imase and Itoh 1983)."""
    links = [(i, (-degree * i - q) % n, 1.0) for i in range(n) for q in range(1, degree + 1)]
    return network(n, links, both_ways=False)


def dgx1(rate_of_double: float) -> CapacityGraph:
    """Eight V100: sixteen pairs, of which half have two NVLinks (NVIDIA, DGX-1 with Tesla V100, figure 4)."""
    single = [(0, 1), (0, 2), (1, 3), (2, 6), (3, 7), (4, 5), (4, 6), (5, 7)]
    double = [(0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (4, 7), (5, 6), (6, 7)]
    return network(8, [(*pair, 1.0) for pair in single] + [(*pair, rate_of_double) for pair in double])


def torus(*sides: int, wraps: bool = True) -> CapacityGraph:
    """A torus or a mesh with links of rate 1."""
    return of_networkx(networkx.convert_node_labels_to_integers(networkx.grid_graph(sides, periodic=wraps)))


def bridge_of_five_and_seven() -> CapacityGraph:
    """Cubic, 12 vertices, without symmetry to rely on: one link joins sides of five and seven vertices."""
    five = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4), (3, 4)]
    seven = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6), (3, 5), (3, 6), (4, 5), (4, 6)]
    links = [(a, b, 1.0) for a, b in five] + [(a + 5, b + 5, 1.0) for a, b in seven] + [(0, 5, 1.0)]
    return network(12, links)


def rails(count: int) -> list[tuple[str, str, str]]:
    """Rows (source, target, rate) of boxes of GPUs n0g0, n0g1, ... on a switch a box, with their cards on a switch a rail."""
    every = [(box, gpu) for box in range(count) for gpu in range(8)]
    return [(f"n{box}g{gpu}", f"box{box}", "300GB/s") for box, gpu in every] + [
        (f"n{box}g{gpu}", f"rail{gpu}", "25GB/s") for box, gpu in every
    ]


def cards(count: int) -> list[tuple[str, str, str]]:
    """Rows of boxes of GPUs n0g0, n0g1, ... on a switch a box of 600 GB/s, with two cards each at two common switches."""
    gpus = [(box, gpu) for box in range(count) for gpu in range(8)]
    links = [(f"n{box}g{gpu}", f"tor{card}", "25GB/s") for box, gpu in gpus for card in range(2)]
    return links + [(f"n{box}g{gpu}", f"box{box}", "600GB/s") for box, gpu in gpus]


def grid(*sides: int) -> list[tuple[str, str, str]]:
    """Rows of a torus of nodes n0_0, n0_1, ... with links of 50 GB/s."""
    nodes = list(np.ndindex(*sides))
    ahead = [
        tuple((at + (k == d)) % sides[k] for k, at in enumerate(node)) for d in range(len(sides)) for node in nodes
    ]
    names = ["n" + "_".join(map(str, node)) for node in nodes * len(sides)]
    return [(name, "n" + "_".join(map(str, node)), "50GB/s") for name, node in zip(names, ahead, strict=True)]


def leaves(count: int, size: int, spines: int) -> list[tuple[str, str, str]]:
    """Rows of leaves of nodes n0_0, n0_1, ... of 50 GB/s, and a link of 100 GB/s from each leaf to each spine."""
    below = [(f"n{leaf}_{node}", f"leaf{leaf}", "50GB/s") for leaf in range(count) for node in range(size)]
    return below + [(f"leaf{leaf}", f"spine{spine}", "100GB/s") for leaf in range(count) for spine in range(spines)]


PUBLISHED = {
    "one box of eight A100": (lambda: boxes(1, 8, 300, 25), "7/300"),
    "two boxes of A100": (lambda: boxes(2, 8, 300, 25, 2), "3/65"),
    "four boxes of A100": (lambda: boxes(4, 8, 300, 25, 2), "3/25"),
    "sixteen boxes of A100": (lambda: boxes(16, 8, 300, 25, 2), "3/5"),
    "128 boxes of A100": (lambda: boxes(128, 8, 300, 25, 2), "127/25"),
    "two boxes of H100": (lambda: boxes(2, 8, 450, 50), "3/100"),
    "MI250, one box": (lambda: mi250(1, 16), "7/150"),
    "MI250, two boxes": (lambda: mi250(2, 16), "15/166"),
    "MI250, half of two boxes": (lambda: mi250(2, 8), "1/13"),
    "torus 3 x 3": (lambda: torus(3, 3), "2"),
    "torus 4 x 4": (lambda: torus(4, 4), "15/4"),
    "mesh 3 x 3": (lambda: torus(3, 3, wraps=False), "4"),
    "mesh 4 x 4": (lambda: torus(4, 4, wraps=False), "15/2"),
    "hypercube of 16": (lambda: torus(2, 2, 2, 2, wraps=False), "15/4"),
    "Petersen": (lambda: of_networkx(networkx.petersen_graph()), "3"),
    "DGX-1, single links": (lambda: dgx1(1.0), "7/4"),
    "DGX-1 with V100": (lambda: dgx1(2.0), "7/6"),
    "generalised Kautz": (lambda: kautz(12, 2), "11/2"),
    "a bridge of five and seven": (bridge_of_five_and_seven, "7"),
}
"""Networks and times of an all-gather in shares over the unit of their rates, all but the last by the code of ForestColl."""


def worst_ratio(graph: CapacityGraph, root: int | None = None) -> Fraction:
    """The largest weight over capacity of all cuts, one after the other.

    Args:
        graph: a small network.
        root: vertex that alone has data; None: all that compute.
    """
    arcs = list(zip(graph.tail.tolist(), graph.head.tolist(), graph.capacity.tolist(), strict=True))
    worst = Fraction(0)
    for sides in product((False, True), repeat=graph.num_vertices):
        if all(sides[: graph.num_compute]):
            continue
        weight = sum(sides[: graph.num_compute]) if root is None else int(sides[root])
        capacity = sum(rate for tail, head, rate in arcs if sides[tail] and not sides[head])
        worst = max(worst, Fraction(weight, capacity)) if weight else worst
    return worst


@st.composite
def networks(draw: st.DrawFn, most: int = 8, switches: int = 2) -> CapacityGraph:
    """A network of few vertices with a ring of all that compute, further links at random, and switches.

    Args:
        draw: of Hypothesis.
        most: vertices in all, at least 4 more than switches [count].
        switches: at most [count].
    """
    compute, others = draw(st.integers(2, most - switches)), draw(st.integers(0, switches))
    rate = st.sampled_from((1.0, 2.0, 3.0, 7.5))
    links = [(v, (v + 1) % compute, draw(rate)) for v in range(compute)]
    for switch in range(compute, compute + others):
        ends = draw(st.sets(st.integers(0, compute - 1), min_size=1))
        links += [(end, switch, draw(rate)) for end in sorted(ends)]
    vertex = st.integers(0, compute - 1)
    links += draw(st.lists(st.tuples(vertex, vertex, rate).filter(lambda link: link[0] != link[1]), max_size=8))
    one_way = (
        [] if others else draw(st.lists(st.tuples(vertex, vertex, rate).filter(lambda x: x[0] != x[1]), max_size=4))
    )
    back = [(head, tail, width) for tail, head, width in links]
    return network(compute, [*links, *back, *one_way], switches=others, both_ways=False)
