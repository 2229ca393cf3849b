"""Mutants of schedulers: each is refused by the name of the rule that it breaks."""

from dataclasses import replace

import numpy as np
import pytest

from opticcl.fabrics.ramp import Ramp
from opticcl.operations.dynamic_traffic import cyclic as cyclic_module
from opticcl.operations.dynamic_traffic.flows import flow_mix
from opticcl.operations.dynamic_traffic.judged import judged_run
from opticcl.operations.dynamic_traffic.schedulers import Native, all_free
from opticcl.operations.dynamic_traffic.simulation import TrafficSetup, epoch_slots

MACHINE = Ramp(groups=2, racks=2, wavelengths=4)
SETUP = TrafficSetup(MACHINE, flow_mix("cell"), 0.7, slots=120)


class BusyChannel(Native):
    """Grants without regard to channels."""

    def schedule(self, epoch, free):
        """With all channels free; two cells of one channel get the same bit."""
        self.parts = np.arange(MACHINE.num_nodes) * MACHINE.num_nodes, np.arange(MACHINE.num_nodes)
        words = np.tile(free.channel[:1], (MACHINE.num_nodes**2, 1))
        return super().schedule(epoch, replace(free, channel=words))


class BusyReceiver(Native):
    """Grants on receivers that are taken."""

    def schedule(self, epoch, free):
        """All grants go to the receiver of the first."""
        grants = super().schedule(epoch, free)
        target = grants.dst[:1]
        grants.dst[:] = np.where(grants.src == target, grants.dst, target) if len(grants) else target
        return grants


class NeverReleased(Native):
    """Cells of an epoch stay taken in the next one."""

    taken = None

    def schedule(self, epoch, free):
        """Free cells are those that no earlier epoch has used."""
        now = free if self.taken is None else self.taken
        left = now.copy()
        grants = super().schedule(epoch, now)
        bit = np.uint64(1) << grants.bit.astype(np.uint64)
        np.bitwise_and.at(left.send[:, 0], grants.src, ~bit)
        self.taken = left
        return grants


class Eager(Native):
    """Sends cells of requests that it cannot know yet."""

    lead = 1


class Inventive(Native):
    """Sends a cell that was not requested."""

    def schedule(self, epoch, free):
        """The last grant carries two cells."""
        grants = super().schedule(epoch, free)
        grants.cells[-1:] = 2
        return grants


class Forgetful(Native):
    """Loses a request."""

    def add(self, requests):
        """The first of each epoch."""
        super().add(replace(requests, **{c: getattr(requests, c)[1:] for c in ("src", "dst", "cells", "arrival")}))


@pytest.mark.parametrize(
    ("mutant", "rule"),
    [
        (BusyChannel, "wavelength_clash"),
        (BusyReceiver, "receiver_shared"),
        (NeverReleased, "cells_not_released"),
        (Inventive, "grant_unrequested"),
        (Forgetful, "cells_lost"),
    ],
)
def test_a_wrong_scheduler_is_refused_by_name(mutant, rule):
    """The right one is accepted."""
    _, verdict = judged_run(SETUP, scheduler=Native(MACHINE))
    assert verdict.ok, str(verdict)
    _, verdict = judged_run(SETUP, scheduler=mutant(MACHINE))
    assert rule in {violation.rule for violation in verdict.violations}, str(verdict)


def test_a_cell_is_not_sent_before_its_request_is_known(monkeypatch):
    """A scheduler that claims two epochs and uses one."""
    from opticcl.operations.dynamic_traffic import judged
    from opticcl.verify.time.epochs import EpochJudge

    monkeypatch.setattr(judged, "EpochJudge", lambda machine, lead, *rest: EpochJudge(machine, 2, *rest))
    _, verdict = judged_run(SETUP, scheduler=Eager(MACHINE))
    assert "grant_too_early" in {violation.rule for violation in verdict.violations}


def test_a_cycle_over_node_numbers_meets_on_star_couplers():
    """The racks of a group would light one wavelength of a coupler: why the cycle is one of group, rack and device."""
    from opticcl.ir import Op, Transfers
    from opticcl.ir.epochs import EpochGrants
    from opticcl.operations.dynamic_traffic.schedulers import slot_circuits
    from opticcl.verify.light.circuits import check_slot

    n = MACHINE.num_nodes
    src = np.arange(n, dtype=np.int32)
    grants = EpochGrants(src, (src + 1 + 8) % n, *(np.zeros(n, np.int32) for _ in range(2)), *(src,) * 4)
    carried = Transfers.of(src, grants.dst, src, 1, Op.MOVE)
    found = {violation.rule for violation in check_slot(MACHINE, carried, slot_circuits(MACHINE, grants)[0])}
    assert found == {"wavelength_clash"}
    assert cyclic_module.Cyclic.lead == 0
    assert all_free(MACHINE).send.shape == (n, 1)
    assert epoch_slots() == 6
