"""Harvest's published circuit schedule for a swing all-reduce: 8 nodes, 12,008.96 ns, 4 reconfigurations.

In step s node r talks to r + rho_s if it is even and to r - rho_s if it is odd, rho = 1, -1, 3, and hands over a half, a
quarter and an eighth of what it has; then the same backwards. Only partners and amounts matter for the time: which blocks
they are (swing's lie apart) does not, so the chunk numbers here are those of the sizes alone.
"""

import numpy as np
import pytest
from tests.altered import altered
from tests.engines import closed_form, flow

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.collective import collective
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Op, Schedule, Transfers

NODES, SIZE = 8, 1024
RHO = (1, -1, 3, 3, -1, 1)
CHUNKS = (4, 2, 1, 1, 2, 4)
LATENCY_S = SETTING_S = 1e-6


def swing() -> CircuitPlan:
    """On one switch with a wavelength for each partner and two lasers of 100 B/ns towards it."""
    node = np.arange(NODES)

    def step(i: int) -> Transfers:
        partner = (node + np.where(node % 2, -1, 1) * RHO[i]) % NODES
        return Transfers.of(node, partner, 0, CHUNKS[i], Op.REDUCE if i < 3 else Op.COPY)

    where = fabric(
        "oddl", shape="8", wavelengths=6, nic_rate=8 * 100e9, reconfiguration=SETTING_S, control_switch_delay=0
    )
    where = altered(where, latency_s=LATENCY_S)
    return lower(where, Schedule("swing", collective("all_reduce", NODES, NODES), len(RHO), step))


@pytest.mark.parametrize("engine", [closed_form, flow])
def test_swing_of_harvest(engine):
    """Six steps of 1000 ns to set circuits and 1000 ns on the way, and 1792 bytes at 200 B/ns."""
    every = assumptions("published", compute="none", reconfiguration_charge="every_step")
    assert f"{engine(swing(), SIZE, every).total_s * 1e9:.2f}" == "12008.96"


@pytest.mark.parametrize("engine", [closed_form, flow])
def test_reconfigurations_of_harvest(engine):
    """Charged where they change, with the first found standing: four, as the turn in the middle keeps its partners."""
    changes = assumptions("published", compute="none", initial="warm")
    timeline = engine(swing(), SIZE, changes)
    assert timeline.totals()["reconfiguration_s"] == pytest.approx(4 * SETTING_S, rel=1e-12)
    assert f"{timeline.total_s * 1e9:.2f}" == "10008.96"


def test_partners_are_mutual():
    """Everyone's partner has it as its partner, in every step."""
    plan = swing()
    for i in range(plan.schedule.num_steps):
        step = plan.schedule.step(i)
        assert (step.dst[step.dst] == step.src).all()
        assert len(plan.rounds(i)) == 1
