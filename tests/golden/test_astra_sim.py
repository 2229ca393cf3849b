"""Direct all-reduces on a fully connected network, to the nanosecond that ASTRA-sim's analytical network printed.

Its rings stand in test_simgrid.py. A reduce-scatter and an all-gather of one step each: every node sends c = S / n to every
other over a link of its own, 2 (alpha + c/B + 10 ns + 1.5 c/1600 ns) with whole nanoseconds of c/B and of c/1600, and
10 ns at the end; sizes in MiB, bandwidth in GiB/s.
"""

import pytest
from tests.engines import closed_form, flow

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.schedule import generate

LIGHT = assumptions(
    "published", compute="none"
)  # the memory's part is the same on every rank, so it stands with the latency
NODES = 8


def connected(name: str, pair_bits_per_s: float, latency_s: float):
    """A network in which every pair has that rate: packets over one port a node, or light of its own for each pair."""
    node_rate = (NODES - 1) * pair_bits_per_s
    if name == "ideal":
        return fabric("ideal", nodes=NODES, rate=node_rate, latency=latency_s)
    return fabric(
        "sipac",
        radix=NODES,
        levels=1,
        wavelengths=NODES - 1,
        channels="retuned",
        node_rate=node_rate,
        latency=latency_s,
    )


@pytest.mark.parametrize("engine", [closed_form, flow])
@pytest.mark.parametrize("name", ["ideal", "sipac"])
@pytest.mark.parametrize(("mebibytes", "nanoseconds"), [(1, 6_155), (64, 329_256), (1024, 5_252_688)])
def test_direct_of_astra_sim(mebibytes, nanoseconds, name, engine):
    """8 NPUs, 50 GiB/s a link, 500 ns."""
    size = mebibytes * 2**20
    piece = size // NODES
    link, memory = int(piece / (50 * 2**30) * 1e9), piece // 1600
    where = connected(name, 8e9 * piece / link, (500 + 10 + 1.5 * memory) * 1e-9)
    time = engine(lower(where, generate("mesh", "all_reduce", where)), size, LIGHT).total_s
    assert time * 1e9 + 10 == pytest.approx(nanoseconds, abs=0.5)
