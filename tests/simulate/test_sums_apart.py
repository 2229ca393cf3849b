"""Memory traffic of sums whose chunks are no neighbours."""

import numpy as np
import pytest

from opticcl.assumptions import assumptions
from opticcl.ir import Op, Transfers
from opticcl.simulate.parts import summed_chunks, sums_s


@pytest.mark.parametrize("compute", ["fused", "chain"])
@pytest.mark.parametrize("steps", [(1,), (2,), (3,), (1, 2), (2, 3)])
def test_they_count_as_their_single_chunks(steps, compute):
    """Ranges that overlap in part, at one distance and at several, against a set of chunks for each rank."""
    random = np.random.default_rng(7)
    assumed = assumptions("common", compute=compute)
    for _ in range(40):
        n = int(random.integers(1, 9))
        src, dst = random.integers(0, 3, n), random.integers(3, 6, n)
        lo, count, step = random.integers(0, 12, n), random.integers(1, 5, n), random.choice(steps, n)
        transfers = Transfers.of(src, dst, lo, count, Op.REDUCE, chunk_step=step)
        carried = [set(range(a, a + k * c, k)) for a, c, k in zip(lo, count, step, strict=True)]
        due = np.zeros(6)
        for rank in set(dst.tolist()):
            mine = [chunks for chunks, at in zip(carried, dst, strict=True) if at == rank]
            arrived = sum(map(len, mine))
            due[rank] = 3 * arrived if compute == "chain" else arrived + 2 * len(set().union(*mine))
        assert summed_chunks(transfers, compute) == due.max()
        assert np.allclose(sums_s(transfers, 1.0, assumed), due[dst] / assumed.memory_bytes_per_s, rtol=1e-12, atol=0)
