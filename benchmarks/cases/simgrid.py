"""The flow engine beside SimGrid, in one run, where SimGrid is installed (see `tests/golden/oracle.py`)."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from measure import NotRunError, Run, register

from cases.flow import LIGHT, MB, irregular
from opticcl.fabrics import fabric
from opticcl.ir import Fabric
from opticcl.simulate import simulate
from opticcl.simulate.links import Links
from opticcl.simulate.parts import latencies

FLOWS = 4000


def beside_simgrid(where: Fabric) -> Run:
    """Random flows by both; the figures are the ratio of CPU times and the largest difference of an end.

    Args:
        where: a packet fabric.
    Raises: NotRunError: there is no SimGrid.
    """
    sys.path.append(str(Path(__file__).parents[2]))
    from tests.golden import oracle

    python, reason = oracle.interpreter()
    if not python:
        raise NotRunError(reason)
    simulate(irregular(where, 64), 64 * MB, LIGHT, engine="flow", record=True)
    plan = irregular(where, FLOWS)
    (circuits,) = plan.rounds(0)
    routes = [circuits.path(i).tolist() for i in range(len(circuits))]
    amount = plan.schedule.step(0).size_chunks() * MB

    def run() -> dict[str, float]:
        begun = time.process_time()
        found = simulate(plan, 64 * MB, LIGHT, engine="flow", record=True)
        ours_s = time.process_time() - begun
        assert found.traffic is not None
        ours = found.traffic.transfers.end_s
        ends, theirs_s = oracle.simulated(Links(where).capacity, routes, latencies(where, circuits, LIGHT), amount, 600)
        return {
            "times_simgrid": theirs_s / ours_s,
            "simgrid_cpu_s": theirs_s,
            "ours_cpu_s": ours_s,
            "largest_difference": float(np.abs(ours / ends - 1).max()),
        }

    return run


for _name, _title, _where in (
    ("torus_4000", "torus 15x15", fabric("torus", shape="15x15")),
    ("tree_4000", "fat tree of 256", fabric("fat_tree", nodes=256, preset="wrht")),
):
    register(
        f"simgrid.{_name}",
        f"{FLOWS:,} random flows on a {_title}, beside SimGrid",
        lambda where=_where: beside_simgrid(where),
    )
