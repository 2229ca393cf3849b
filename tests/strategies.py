"""What property tests draw from: small fabrics of every kind, odd shapes included."""

from hypothesis import strategies as st

from opticcl.errors import FabricError
from opticcl.fabrics import FABRICS, fabric_at_scale
from opticcl.ir import Op


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


@st.composite
def transfers_by_step(draw, ranks: int, chunks: int, steps: int, limit: int = 30):
    """Transfers of any chunks between any ranks that the judge accepts: (step, src, dst) -> (first chunk, count, operation,
    distance of the chunks).

    In a step, a chunk of a rank is written by one copy or by sums alone. Each drawn transfer is cut to the leading chunks
    that it may still write, and becomes a sum where its first chunk is summed already, so no draw is thrown away.
    """
    numbers = st.tuples(
        st.integers(0, steps - 1), st.integers(0, ranks - 1), st.integers(1, ranks - 1),
        st.integers(0, chunks - 1), st.integers(1, chunks), st.sampled_from([Op.COPY, Op.REDUCE]), st.integers(1, 3),
    )  # fmt: skip
    found, writes = {}, {}
    for step, src, ahead, lo, count, op, apart in draw(st.lists(numbers, min_size=1, max_size=limit)):
        dst = (src + ahead) % ranks
        first = writes.get((step, dst, lo))
        if (step, src, dst) in found or first == Op.COPY:
            continue
        op = Op.REDUCE if first == Op.REDUCE else op
        writable = (None, Op.REDUCE) if op == Op.REDUCE else (None,)
        end = lo
        while end < min(lo + count * apart, chunks) and writes.get((step, dst, end)) in writable:
            writes[step, dst, end] = op
            end += apart
        found[step, src, dst] = (lo, (end - lo) // apart, op, apart)
    return found
