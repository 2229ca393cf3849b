"""The cyclic scheduler: a fixed cycle of permutations, without requests.

In plane t of slot s all nodes follow permutation k = s x + t modulo N: node (g, j, l) sends to (g + j + a, j + d, l + c), where
k = (c J + d) x + a. Of a group, rack j alone lights group g + j + a, with different wavelengths from its devices, so that no
two circuits of a permutation meet; after N permutations each node has met every other once. One hop: a cell waits for its own
receiver. Two hops: it goes to the node that is met next and waits there; cells on their second hop go first.

Reading: the cycle i -> i + 1 + (s x + t) mod (N - 1) cannot be used on star couplers: the J racks of a group would send to the
same wavelength of the same coupler.
Source: the cycle of Sirius (SIGCOMM 2020) on the labels of RAMP.
"""

from __future__ import annotations

import numpy as np

from opticcl.errors import ParameterError
from opticcl.fabrics.ramp import Ramp
from opticcl.ir import IntArray
from opticcl.ir.epochs import EpochGrants, EpochRequest
from opticcl.operations.dynamic_traffic._scheduler_kernels import (
    CycleQueues,
    Ended,
    Granted,
    insert_requests,
    serve_epoch,
)
from opticcl.operations.dynamic_traffic.demand import Channels
from opticcl.operations.dynamic_traffic.flows import run_values
from opticcl.operations.dynamic_traffic.schedulers import FreeCells, Scheduler, register_scheduler

__all__ = ["Cyclic"]


@register_scheduler("cyclic")
class Cyclic(Scheduler):
    """A fixed cycle of permutations in which every node meets every other."""

    lead = 0

    def __init__(self, machine: Ramp, *, hops: int = 1) -> None:
        """Scheduler with a fixed cycle.

        Args:
            machine: RAMP.
            hops: 1: to the receiver alone; 2: by way of any other node.
        Raises: ParameterError: other hops.
        """
        if hops not in (1, 2):
            raise ParameterError(f"cyclic: hops={hops}; give 1 or 2")
        super().__init__(machine)
        channels = Channels(machine)
        self.hops = hops
        self.slots = run_values()["slots"]
        self.parts = channels.send_part, channels.receive_part
        n = machine.num_nodes
        lists, heads = np.full((2, n, 2), -1, np.int32)
        records, flows, none = np.zeros((0, 7), np.int32), np.zeros((0, 3), np.int32), np.zeros(0, np.int32)
        shape = np.array([machine.groups, machine.racks, machine.wavelengths])
        self._queues = CycleQueues(records, none, flows, none, np.zeros(2, np.int64), lists, heads, shape)
        most = n * self.slots * machine.ports_per_node
        self._granted = Granted(*(np.zeros(most, np.int32) for _ in range(5)))
        self._pending = 0

    @property
    def pending_cells(self) -> int:
        """Cells at their senders and on their way [count]."""
        return self._pending

    def add(self, requests: EpochRequest) -> None:
        """Put flows into the list of their permutation, or of their sender."""
        self._grow(len(requests))
        columns = requests.src, requests.dst, requests.cells, requests.arrival
        insert_requests(*columns, tuple(self._queues), self.hops == 2)
        self._pending += int(requests.cells.sum())

    def _grow(self, wanted: int) -> None:
        """Make room for that many records and flows."""
        queues = self._queues
        records, free = _longer(queues.records, queues.free, queues.counts, 0, wanted)
        flows, free_flows = _longer(queues.flows, queues.free_flows, queues.counts, 1, wanted)
        self._queues = queues._replace(records=records, free=free, flows=flows, free_flows=free_flows)

    def schedule(self, epoch: int, free: FreeCells) -> EpochGrants:
        """Follow the cycle for an epoch."""
        if self.hops == 2:
            self._grow(len(self._granted.src))
        queues, per_bit = self._queues, self.machine.transceivers_per_group
        ended = Ended(*(np.zeros(len(queues.flows) - int(queues.counts[1]), np.int32) for _ in range(3)))
        words = free.send, free.receive, free.channel, *self.parts
        out = tuple(self._granted), tuple(ended)
        grants, done, delivered = serve_epoch(
            epoch * self.slots, self.slots, per_bit, tuple(queues), words, self.hops == 2, *out
        )
        self._pending -= delivered
        return EpochGrants(*(column[:grants] for column in self._granted), *(column[:done] for column in ended))


def _longer(table: IntArray, free: IntArray, counts: IntArray, which: int, wanted: int) -> tuple[IntArray, IntArray]:
    """A table with at least `wanted` free rows, and the list of the free rows, of which counts[which] are in use.

    Args:
        counts: lengths of the lists, changed.
        wanted: free rows [count].
    """
    if counts[which] >= wanted:
        return table, free
    more = max(wanted, len(table))
    longer = np.zeros((len(table) + more, table.shape[1]), np.int32)
    longer[: len(table)] = table
    list_of = np.zeros(len(longer), np.int32)
    list_of[: counts[which]] = free[: counts[which]]
    list_of[counts[which] : counts[which] + more] = np.arange(len(table), len(longer))
    counts[which] += more
    return longer, list_of
