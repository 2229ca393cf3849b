"""What property tests draw from: small fabrics of every kind, odd shapes included."""

from hypothesis import strategies as st

from opticcl.errors import FabricError
from opticcl.fabric import FABRICS, fabric_at_scale


def sizes(limit: int = 40) -> st.SearchStrategy[int]:
    """Numbers of nodes: 1, 2, primes, powers of two and what lies between."""
    return st.one_of(st.sampled_from([1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 32]), st.integers(1, limit))


@st.composite
def fabrics(draw, limit: int = 40):
    """A fabric of some registered name at some size that it can have."""
    name = draw(st.sampled_from(FABRICS.names()))
    for n in range(draw(sizes(limit)), 0, -1):
        try:
            return fabric_at_scale(name, n)
        except FabricError:
            continue
    raise AssertionError(f"{name} has not even one node")
