"""The judge of a run: circuits of every slot, independent of the scheduler that granted them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from opticcl.fabrics.ramp import Ramp, wavelength_between
from opticcl.ir import Circuits, IntArray, ProgressCallback, Transfers, Verdict, no_progress
from opticcl.ir.epochs import EpochGrants, EpochRequest
from opticcl.operations.dynamic_traffic.schedulers import FreeCells, Scheduler, make_scheduler, slot_circuits
from opticcl.operations.dynamic_traffic.simulation import TrafficResult, TrafficSetup, simulate_traffic
from opticcl.verify.time.epochs import EpochJudge

__all__ = ["Reserved", "judged_run"]

Reserved = Callable[[int], Sequence[tuple[Transfers, Circuits]]]
"""Number of an epoch -> other light of each of its slots, with the transfers that it carries."""


def judged_run(
    setup: TrafficSetup,
    *,
    progress: ProgressCallback = no_progress,
    free: Callable[[int], FreeCells] | None = None,
    reserved: Reserved | None = None,
    scheduler: Scheduler | None = None,
) -> tuple[TrafficResult, Verdict]:
    """Simulate a run and judge every epoch of it.

    Args:
        setup: traffic and scheduler.
        progress: called with (what, done, total).
        free: cells that may be used in an epoch; None: all.
        reserved: light of a plan that stands beside it.
        scheduler: in place of the one that the setup names.
    """
    machine = setup.machine
    used = make_scheduler(setup.scheduler, machine) if scheduler is None else scheduler
    candidates = (lambda src, dst: _every_plane(machine, src, dst)) if used.maximal else None
    judge = EpochJudge(machine, used.lead, used.hops == 1, candidates)

    def observe(epoch: int, due: EpochRequest, grants: EpochGrants) -> None:
        judge.epoch(epoch, due, grants, slot_circuits(machine, grants), None if reserved is None else reserved(epoch))

    result = simulate_traffic(setup, progress=progress, observe=observe, free=free, scheduler=used)
    return result, judge.end(result.offered_cells, result.sent_cells, result.pending_cells)


def _every_plane(machine: Ramp, src: IntArray, dst: IntArray) -> list[Circuits]:
    """A circuit of each pair on the first transceiver of every plane; the others of a plane have the same light."""
    rows = np.arange(len(src))
    gates = np.stack([dst // machine.nodes_per_group, src // machine.nodes_per_group], axis=1)
    wavelength = wavelength_between(machine.subnet, machine.wavelengths, src, dst)
    ports = range(0, machine.ports_per_node, machine.transceivers_per_group)
    return [Circuits.of(rows, src, dst, port, wavelength, 1, gates) for port in ports]
