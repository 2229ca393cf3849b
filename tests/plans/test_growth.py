"""No cliffs: a machine of twice the nodes takes at most three times as long by its fastest plan."""

import pytest

from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.errors import FabricError
from opticcl.fabrics import FABRICS, fabric_at_scale
from opticcl.plans.light import LightRule
from opticcl.plans.search import Search

EXCEPTIONS = {
    ("topoopt", 4096, 1000): "dissemination would use more memory for its circuits than is used; a ring is left",
    ("terarack_torus", 8192, 10**8): "a search cuts blocks of 4,096 nodes into 16 pieces, of 8,192 into 8",
    ("sip_ring", 4096, 1000): "first fit tries no more fibre segments than dissemination has on 2,048 nodes",
}
"""Fabric, nodes and size where twice the nodes take more than three times as long, and which guard decides."""


@pytest.mark.deep
@pytest.mark.parametrize("name", FABRICS.names())
def test_twice_the_nodes_take_at_most_three_times_as_long(name):
    """all_reduce of 1 KB and 100 MB from 16 to 8,192 nodes, on every fabric that has both sizes, without regard to light."""
    before = {}
    found = set()
    for nodes in (1 << bits for bits in range(4, 14)):
        try:
            where = fabric_at_scale(name, nodes)
        except FabricError:
            continue
        rule = LightRule(ignored=True)
        candidates = Search(where, Request("all_reduce"), assumptions("common"), rule=rule)
        for size in (1000, 10**8):
            before[nodes, size] = candidates.fastest([size]).lower_bound_s([size])
            if before[nodes, size] > 3 * before.get((nodes // 2, size), float("inf")):
                assert candidates.not_tried, f"{name}: {nodes} nodes, {size} bytes"
                found.add((name, nodes, size))
    assert found == {key for key in EXCEPTIONS if key[0] == name}
