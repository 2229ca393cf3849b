"""BCube: SiPAC's numbers, balance, shapes and broken paths."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tests.fabrics.walks import (
    assert_broken_paths_are_refused,
    assert_routes_arrive,
    latency_s,
    loads,
    num_hops,
    pairs,
    routed,
)

from opticcl.errors import FabricError
from opticcl.fabrics import fabric, fabric_at_scale


def test_numbers_of_sipac() -> None:
    """Figure 11: 512 nodes as r = 8, L = 3; links of 682.67 Gb/s; six links of 1 us across."""
    made = fabric("bcube")
    assert (made.num_nodes, made.ports_per_node) == (512, 3)
    assert made.rate_bits_per_s == pytest.approx(682.67e9, rel=1e-5)
    assert (num_hops(made, 0, 511), latency_s(made, 0, 511)) == (6, pytest.approx(6e-6))
    assert sum(r.count for r in made.resources) == 2 * 3 * 512


@pytest.mark.parametrize("radices", [(2,), (2, 2, 2, 2), (3, 3, 3), (2, 3), (4, 2, 3)])
def test_a_switch_joins_the_nodes_that_differ_in_one_digit(radices: tuple[int, ...]) -> None:
    """Of each level as many as there are other digits, with a link to and from each of its nodes, and no other links."""
    made = fabric("bcube", radices=radices)
    digits = [tuple(reversed(high_first)) for high_first in product(*map(range, reversed(radices)))]
    due = []
    for level in range(len(radices)):
        others = [one[:level] + one[level + 1 :] for one in digits]
        due += [sorted(node for node, rest in enumerate(others) if rest == own) for own in set(others)]
    to: dict[int, list[int]] = {}
    back: dict[int, list[int]] = {}
    for tail, head in zip(made.network.tail.tolist(), made.network.head.tolist(), strict=True):
        (to if head >= made.num_nodes else back).setdefault(max(tail, head), []).append(min(tail, head))
    assert to == back
    assert sorted(to.values()) == sorted(due)


def test_a_switch_delays_what_it_receives() -> None:
    """3 us a link and 5 us a switch: 11 us for each digit, 8 of them up to the switch."""
    made = fabric("bcube:radix=2,levels=2,link_latency=3us,router_latency=5us")
    assert (latency_s(made, 0, 1), latency_s(made, 0, 3)) == pytest.approx((11e-6, 22e-6))
    assert made.network.latency_s[made.route(np.array([0]), np.array([1]))[0]].tolist() == pytest.approx([8e-6, 3e-6])


def test_names_and_prices_of_radices_that_differ() -> None:
    """3 switches of 2 ports, then 2 of 3; a node has a port of each."""
    made = fabric("bcube:radices=2x3")
    assert [made.switch_name("switch", number) for number in (0, 2, 3, 4)] == [
        "level-0 switch 0", "level-0 switch 2", "level-1 switch 0", "level-1 switch 1",
    ]  # fmt: skip
    assert [(part.kind, part.count, part.ports) for part in made.parts()[1:]] == [
        ("electrical_switch", 3, 2), ("electrical_switch", 2, 3),
    ]  # fmt: skip
    assert (made.ports_per_node, made.dimensions, made.coordinates(5)) == (2, (3, 2), "(x0=1, x1=2)")
    with pytest.raises(FabricError, match="radices=2x1 has switches of one port; try radices=2"):
        fabric("bcube:radices=2x1")
    with pytest.raises(FabricError, match="try radices="):
        fabric("bcube", radices=(4096, 4096, 4096))


@pytest.mark.parametrize("routing", ["rotated", "dimension_order"])
def test_digits_are_corrected_in_turn(routing: str) -> None:
    """From the first level, or from that of sender plus receiver, on; digits that are right are passed over."""
    made = fabric("bcube", radix=3, levels=3, routing=routing)
    circuits = routed(made, *pairs(27))
    for i, (src, dst) in enumerate(zip(circuits.src.tolist(), circuits.dst.tolist(), strict=True)):
        begin = (src + dst) % 3 if routing == "rotated" else 0
        at, visited = [src % 3, src // 3 % 3, src // 9], [src]
        for level in [0, 1, 2, 0, 1, 2][begin : begin + 3]:
            at[level] = [dst % 3, dst // 3 % 3, dst // 9][level]
            visited += [at[0] + 3 * at[1] + 9 * at[2]]
        due = [node for node, before in zip(visited, [-1, *visited], strict=False) if node != before]
        hops = circuits.path(i)
        assert [src, *made.network.head[hops[1::2]].tolist()] == due
        assert made.network.tail[hops[::2]].tolist() == due[:-1]


def test_hops_are_twice_the_digits_that_differ() -> None:
    """One switch for each."""
    made = fabric("bcube:radix=3,levels=3")
    for src, dst, digits in ((0, 2, 1), (0, 9, 1), (0, 5, 2), (1, 26, 3)):
        assert num_hops(made, src, dst) == 2 * digits


@pytest.mark.parametrize("routing", ["rotated", "dimension_order"])
def test_loads_of_all_pairs(routing: str) -> None:
    """(r - 1) r^(L-1) flows on every link: all have equal loads."""
    (load,) = loads(fabric(f"bcube:radix=4,levels=3,routing={routing}"))
    assert set(load.tolist()) == {3 * 16}


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (13, 1), (2, 4), (3, 3), (5, 2)])
@pytest.mark.parametrize("routing", ["rotated", "dimension_order"])
def test_all_routes_arrive(shape: tuple[int, int], routing: str) -> None:
    """And no path has a link twice."""
    made = fabric("bcube", radix=shape[0], levels=shape[1], routing=routing)
    assert made.num_nodes == shape[0] ** shape[1]
    assert_routes_arrive(made)


@pytest.mark.parametrize(("nodes", "shape"), [(1, (1, 1)), (13, (13, 1)), (64, (8, 2)), (512, (8, 3)), (1024, (32, 2))])
def test_shape_at_scale(nodes: int, shape: tuple[int, int]) -> None:
    """Radix at most 32 (SiPAC section VI-A)."""
    made = fabric_at_scale("bcube", nodes, 1e12)
    assert (made.parameters["radix"], made.parameters["levels"]) == shape
    assert made.node_rate_bits_per_s == pytest.approx(1e12)


def test_broken_paths() -> None:
    """Nodes forward packets, but only along links."""
    assert_broken_paths_are_refused(fabric("bcube:radix=3,levels=3"), 0, 26)
    assert_broken_paths_are_refused(fabric("bcube:radix=4,levels=2"), 1, 3)


def test_names() -> None:
    """Switches have a level and a number within it."""
    made = fabric("bcube:radix=3,levels=2")
    assert made.place_names(0, [4, 18 + 4, 27 + 8]) == [
        "link node 4 (x0=1, x1=1) -> level-0 switch 1",
        "link node 4 (x0=1, x1=1) -> level-1 switch 1",
        "link level-1 switch 2 -> node 8 (x0=2, x1=2)",
    ]


def test_parts_and_the_largest_machine() -> None:
    """Two ends a cable, a switch for each r nodes of a level; 2**22 nodes are the most."""
    made = fabric("bcube:radix=3,levels=2")
    assert [(part.kind, part.count) for part in made.parts()] == [
        ("transceiver", 2 * 2 * 9),
        ("electrical_switch", 2 * 3),
    ]
    assert fabric("bcube:radix=2,levels=22").num_nodes == 2**22
    for shape in ("radix=2,levels=23", "radix=1,levels=23", "radix=2049,levels=2"):
        with pytest.raises(FabricError, match="try levels=3"):
            fabric(f"bcube:{shape}")
