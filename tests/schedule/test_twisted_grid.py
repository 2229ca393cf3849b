"""Trees on rings of random orders."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.schedule.oracle import check, requests

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.plans.plan import compile
from opticcl.schedule import generate
from opticcl.verify import verify

WHOLE = ["broadcast", "reduce", "all_reduce"]
BLOCKS = ["scatter", "gather", "reduce_scatter", "all_gather", "barrier"]


@pytest.mark.parametrize("shape", ["3x5", "4x4", "2x3x4"])
@pytest.mark.parametrize(("collective", "pipeline"), [(c, 3) for c in WHOLE] + [(c, 1) for c in BLOCKS])
def test_right_at_every_rank(shape, collective, pipeline):
    """Odd, even and unequal sides, any root; a node sends to one node a dimension in the whole job."""
    where = fabric(f"oddl:shape={shape}")
    for request in requests(collective, where.num_nodes):
        schedule = check(f"twisted_grid:pipeline={pipeline}", request, where)
        steps = [schedule.step(i) for i in range(schedule.num_steps)]
        for one, other in ((0, 1), (1, 0)):
            ends = [np.stack([s.src, s.dst])[[one, other]] for s in steps]
            pairs = np.unique(np.concatenate(ends, axis=1), axis=1)
            coordinates = [np.array(np.unravel_index(end, where.dimensions)) for end in pairs]
            line = (coordinates[0] != coordinates[1]).argmax(axis=0)
            assert len(np.unique(pairs[0] * 3 + line)) == pairs.shape[1]


@examples(12)
@given(sides=st.lists(st.integers(2, 6), min_size=2, max_size=3), data=st.data())
def test_time(sides, data):
    """(D + s - 1) pieces each way at the rate of all wavelengths, and one setting."""
    where = fabric("oddl", shape="x".join(map(str, sides)))
    pieces = data.draw(st.integers(1, 5))
    plan = compile(where, "all_reduce", 10**6, algorithm=f"twisted_grid:pipeline={pieces}")
    timeline = plan.simulate(assumptions=assumptions("common"), compute="none")
    piece_s = 8e6 / pieces / (where.num_wavelengths * where.rate_bits_per_s)
    assert timeline.transfer_s.sum() == pytest.approx(plan.schedule.num_steps * piece_s, rel=1e-9)
    assert (timeline.reconfiguration_s > 0).sum() == 1
    reach = np.ceil(np.log2(where.num_nodes + 1)) if len(sides) == 2 else np.ceil(np.log(where.num_nodes) / np.log(3))
    assert plan.schedule.num_steps - 2 * (pieces - 1) >= 2 * (reach - 1)


@pytest.mark.parametrize(("shape", "steps"), [("16x16", 19), ("32x32", 24), ("8x8x16", 16)])
def test_few_steps(shape, steps):
    """Up and down a tree of the best order; rings in the order of the coordinates take 60, 124 and 58."""
    assert generate("twisted_grid", "all_reduce", fabric(f"oddl:shape={shape}")).num_steps <= steps


@pytest.mark.deep
def test_largest_scale():
    """4,096 nodes in 30 steps: every chunk and all light."""
    where = fabric("oddl:shape=64x64")
    schedule = generate("twisted_grid", "all_reduce", where)
    assert schedule.num_steps <= 30
    verdict = verify(lower(where, schedule))
    assert verdict.ok
    assert verdict.exhaustive
