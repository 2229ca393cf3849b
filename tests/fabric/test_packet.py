"""What all packet fabrics refuse alike."""

import pytest

from opticcl.errors import FabricError
from opticcl.fabric import fabric


@pytest.mark.parametrize(
    ("specification", "words"),
    [
        ("leaf_spine:nodes=1000000000", "1,000,000,000 nodes; at most 4,194,304"),
        ("leaf_spine:nodes=1000000,nodes_per_leaf=1,spines=1000000", "2,000,002,000,000 links; at most 67,108,864"),
        ("fat_tree:nodes=1000000000,radix=100000", "1,000,000,000 nodes"),
        ("superpod:nodes=1000000000,radix=100000", "1,000,000,000 nodes"),
        ("superpod:nodes=16,radix=100000000", "links; at most"),
        ("dragonfly:nodes=2,nodes_per_router=1,routers_per_group=1000000,global_links=9", "999,999,000,004 links"),
        ("sip_ring:nodes=1000000000", "1,000,000,000 nodes"),
    ],
)
def test_machines_that_no_memory_holds_are_refused(specification, words):
    """With the number and the most that there may be, before an array of that size is made."""
    with pytest.raises(FabricError, match=words):
        fabric(specification)


@pytest.mark.parametrize("name", ["fat_tree", "leaf_spine", "superpod", "dragonfly", "topoopt"])
def test_factors_are_positive(name):
    """The factor is named, not the rate that comes of it."""
    with pytest.raises(FabricError, match=f"{name}: rate_factor=-1; more than 0"):
        fabric(name, rate_factor=-1.0)
