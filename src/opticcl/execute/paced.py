"""Circuits imposed on real transfers: deliveries are held back to the time that the circuits of a plan take, times a factor.

The times come from the rows of the plan (its circuits), by the definitions below, and from no simulation. Within a step, round
k begins when round k - 1 ends, and a transfer of a round is delivered at

    begin of the round + reconfiguration, if a circuit of the round (path included) did not stand in the round before
    + latency of its longest path + 8 bytes / (its wavelengths x rate of a wavelength), in whole slots where there are slots

A round ends with its last delivery, a step with its last round. The receiver waits until the release of a message, which is
the delivery of its last transfer, or until its arrival if that is later: then the message is late. In barrier mode a step
begins when the last rank has ended the step before, in asynchronous mode when this rank has.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from math import ceil
from typing import Any, Literal

import numpy as np

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.execute.loop import Exchange, chunk_width
from opticcl.execute.measure import MeasuredRun
from opticcl.execute.mpi import MpiTransport, from_rank_0
from opticcl.execute.rank_data import message_length
from opticcl.execute.ranks import RankSchedule
from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray

__all__ = ["Mode", "PacedRun", "PacedTransport", "StepPace", "paces", "rank_paces", "run_paced"]

Mode = Literal["barrier", "asynchronous"]
SPIN_S = 100e-6  # before a release, after sleeping


@dataclass(frozen=True, slots=True)
class StepPace:
    """Times of one step, from its begin.

    Args:
        duration_s: end of the last round [s].
        release_s: of the message of each (src, dst) pair of ranks [s].
        reconfiguration_s, latency_s: parts of the duration; the rest is transfer time [s].
    """

    duration_s: float
    release_s: dict[tuple[int, int], float]
    reconfiguration_s: float
    latency_s: float


def paces(plan: CircuitPlan, chunk_bytes: float) -> list[StepPace]:
    """Times of all steps by the rows of a plan.

    Args:
        plan: schedule and circuits on a circuit-switched fabric.
        chunk_bytes: size of a chunk [bytes].
    Raises: UnsupportedError: a packet fabric, which has no circuits.
    """
    if plan.fabric.is_packet_switched:
        raise UnsupportedError(
            f"execute: --pace needs circuits, and {plan.fabric.name} switches packets; leave --pace out"
        )
    standing: set[bytes] = set()
    step_paces = []
    for i in range(plan.schedule.num_steps):
        transfers = plan.schedule.step(i)
        release: dict[tuple[int, int], float] = {}
        begin_s = reconfiguration_s = latency_s = 0.0
        for circuits in plan.rounds(i):
            keys = _keys(circuits)
            changed = plan.fabric.reconfiguration_s if keys - standing else 0.0
            standing = keys
            rows, of_path_s, of_bytes_s = _deliveries(plan.fabric, transfers.size_chunks() * chunk_bytes, circuits)
            delivered_s = begin_s + changed + of_path_s + of_bytes_s
            for row, at in zip(rows.tolist(), delivered_s.tolist(), strict=True):
                pair = int(transfers.src[row]), int(transfers.dst[row])
                release[pair] = max(release.get(pair, 0.0), at)
            if len(rows):
                last = int(np.argmax(delivered_s))
                latency_s += float(of_path_s[last])
                begin_s = float(delivered_s[last])
            reconfiguration_s += changed
        step_paces.append(StepPace(begin_s, release, reconfiguration_s, latency_s))
    return step_paces


def rank_paces(steps: list[StepPace], num_ranks: int) -> list[list[dict[int, float]]]:
    """Releases of the messages that each rank receives: by rank, by step, by sender [s]."""
    of_rank: list[list[dict[int, float]]] = [[{} for _ in steps] for _ in range(num_ranks)]
    for i, step in enumerate(steps):
        for (src, dst), at in step.release_s.items():
            of_rank[dst][i][src] = at
    return of_rank


def _keys(circuits: Circuits) -> set[bytes]:
    """One key per circuit: ends, port, wavelengths, waveguide and path."""
    columns = [circuits.src, circuits.dst, circuits.port, circuits.wavelength_lo, circuits.wavelength_n]
    columns += [] if circuits.waveguide is None else [circuits.waveguide]
    table = np.stack([*columns, np.full(len(circuits), circuits.wavelength_step)], axis=1).astype(np.int32)
    return {row.tobytes() + circuits.path(k).tobytes() for k, row in enumerate(table)}


def _deliveries(fabric: Fabric, size_bytes: Any, circuits: Circuits) -> tuple[IntArray, np.ndarray, np.ndarray]:
    """Transfers of a round, latency of the longest path of each, and time of its bytes on its wavelengths [s]."""
    circuits = circuits.carrying()
    rows, carrier = np.unique(circuits.transfer, return_inverse=True)
    wavelengths = np.bincount(carrier, fabric.wavelengths_carried(circuits), minlength=len(rows))
    of_hop_s = fabric.hop_latency_s(circuits.hops)
    of_path_s = np.zeros(len(rows))
    if of_hop_s is not None and len(circuits.hops):
        np.maximum.at(of_path_s, carrier, np.bincount(circuits.hop_owner(), of_hop_s, minlength=len(circuits)))
    load_bytes = np.asarray(size_bytes)[rows] / wavelengths
    if fabric.slot_s:
        slots = np.array([ceil(load / fabric.slot_payload_bytes) for load in load_bytes])
        return rows, fabric.latency_s + of_path_s, slots * fabric.slot_s
    return rows, fabric.latency_s + of_path_s, 8 * load_bytes / fabric.rate_bits_per_s


@dataclass(frozen=True, slots=True)
class PacedRun:
    """A paced run: its clock times over all ranks, and the times of the circuits.

    Args:
        size_bytes: whole message [bytes].
        factor: by which deliveries are held back.
        mode: barrier or asynchronous.
        rows_end_s: end of each step by the rows of the plan [s].
        reconfiguration_s, latency_s: parts of the last of them; the rest is transfer time [s].
        shortest_s: shortest release of a message, from the begin of its step [s].
        total_s: from the common begin to the last end [s].
        end_s: end of each step on the slowest rank [s].
        late: messages that arrived after their release [count].
        messages: messages of all ranks [count].
        overhead_s: longest step of a run that is not held back [s].
        wrong: wrong elements of all ranks [count].
        simulated_s: parts of the simulated time, by name [s].
    """

    size_bytes: int
    factor: float
    mode: Mode
    rows_end_s: tuple[float, ...]
    reconfiguration_s: float
    latency_s: float
    shortest_s: float
    total_s: float
    end_s: tuple[float, ...]
    late: int
    messages: int
    overhead_s: float
    wrong: int
    simulated_s: dict[str, float]

    @property
    def rows_s(self) -> float:
        """Time of the circuits by the rows of the plan [s]."""
        return self.rows_end_s[-1] if self.rows_end_s else 0.0

    @property
    def measured_s(self) -> float:
        """Clock time over the factor [s]."""
        return self.total_s / self.factor

    @property
    def deviation(self) -> float:
        """Measured time over that of the rows, less 1."""
        return self.measured_s / self.rows_s - 1 if self.rows_s else 0.0

    @property
    def slower_factor(self) -> float:
        """A factor at which this machine is fast enough: three times the longest step over the shortest release."""
        return 3 * self.overhead_s / self.shortest_s if self.shortest_s else 0.0

    def record(self) -> dict[str, Any]:
        """The run as plain data for JSON."""
        more = {"rows_s": self.rows_s, "measured_s": self.measured_s, "deviation": self.deviation}
        return {**asdict(self), "rows_end_s": list(self.rows_end_s), "end_s": list(self.end_s), **more}


class PacedTransport(MpiTransport):
    """MPI with deliveries that are held back.

    Args:
        comm: mpi4py communicator that nothing else uses.
        limit_s: longest duration of a step; None: no limit [s].
        releases: of this rank, by step and sender, from the begin of the step [s].
        factor: by which they are multiplied.
        mode: barrier or asynchronous.
    """

    def __init__(
        self, comm: Any, limit_s: float | None, releases: list[dict[int, float]], factor: float, mode: Mode = "barrier"
    ) -> None:
        super().__init__(comm, limit_s)
        if factor < 0:
            raise ParameterError(f"--pace: {factor:g} is negative; try 1000")
        self._releases, self.factor, self._mode = releases, factor, mode
        self._ends: list[float] = []
        self._late = self._messages = 0
        self._total_s = 0.0

    def run(self, exchanges: Iterator[Exchange]) -> None:
        """Carry the messages of all steps, each at its time."""
        self._ends, self._late, self._messages = [], 0, 0
        self._comm.Barrier()
        zero = time.perf_counter()
        begin = 0.0
        for exchange in exchanges:
            due = {peer: begin + self.factor * at for peer, at in self._releases[exchange.step].items()}
            arrivals = self._exchange(exchange, zero)
            self._messages += len(arrivals)
            self._late += sum(at > due[peer] for peer, at in arrivals) if self.factor else 0
            end = max([begin, *due.values(), *(at for _, at in arrivals)])
            if self.factor:
                _wait_until(zero + end)
            if self._mode == "barrier":
                end = self._comm.allreduce(end, self._mpi.MAX)
            self._ends.append(max(end, time.perf_counter() - zero))
            begin = end if self.factor else time.perf_counter() - zero
        self._total_s = time.perf_counter() - zero

    def _exchange(self, exchange: Exchange, zero: float) -> list[tuple[int, float]]:
        """(sender, arrival) of each message, on the clock of the run [s]."""
        if self._watchdog is not None:
            self._watchdog.begin(partial("{}, step {}".format, self.label, exchange.step))
        requests = self._post(exchange)
        senders = [peer for peer, _ in exchange.recvs]
        arrivals: dict[int, float] = {}
        while (done := self._mpi.Request.Waitsome(requests)) is not None:
            now = time.perf_counter() - zero
            for index in done:
                if index < len(senders):
                    arrivals[senders[index]] = now
        if self._watchdog is not None:
            self._watchdog.end()
        return list(arrivals.items())

    def clock(self) -> dict[str, Any]:
        """Times and counts of the last run over all ranks, as fields of `PacedRun`; called on every rank."""
        ends = np.array(self._ends)
        self._comm.Allreduce(self._mpi.IN_PLACE, ends, self._mpi.MAX)
        return {
            "total_s": self._comm.allreduce(self._total_s, self._mpi.MAX),
            "end_s": tuple(ends.tolist()),
            "late": self._comm.allreduce(self._late),
            "messages": self._comm.allreduce(self._messages),
        }


def run_paced(
    comm: Any,
    schedule: RankSchedule,
    plan: CircuitPlan | None,
    simulated: Callable[[int], dict[str, float]],
    size_bytes: int,
    dtype: np.dtype,
    factor: float,
    mode: Mode,
    limit_s: float,
    seed: int,
    root: int = 0,
    shift: int = 1,
) -> PacedRun:
    """Execute a schedule on random data, once at full speed and once with deliveries held back.

    Args:
        comm: mpi4py communicator.
        schedule: of this rank.
        plan: schedule and circuits, on rank 0; None elsewhere.
        simulated: parts of the simulated time of a message of that size, by name [s]; called on rank 0.
        size_bytes: least size of the whole message [bytes].
        dtype: of the elements.
        factor: by which deliveries are held back, above 0.
        mode: barrier or asynchronous.
        limit_s: longest duration of a step at full speed [s].
        seed: of the data.
        root, shift: of the collective.
    Raises: UnsupportedError: a packet fabric; ParameterError: a factor that is not positive.
    """
    if factor <= 0:
        raise ParameterError(f"--pace: {factor:g} is not positive; try 1000")
    length = message_length(schedule, size_bytes, dtype.itemsize)

    def times() -> tuple[tuple[list[StepPace], dict[str, float]], list[list[dict[int, float]]]]:
        assert plan is not None
        steps = paces(plan, chunk_width(schedule, length) * dtype.itemsize)
        return (steps, simulated(length * dtype.itemsize)), rank_paces(steps, schedule.num_ranks)

    (steps, parts), releases = from_rank_0(comm, times)
    longest = max((step.duration_s for step in steps), default=0.0)
    transport = PacedTransport(comm.Dup(), limit_s + factor * longest, releases, 0.0, mode)
    runner = MeasuredRun(comm, schedule, transport.run, root, shift)
    unpaced = runner.execute(size_bytes, dtype, seed)
    unpaced = runner.execute(size_bytes, dtype, seed) + unpaced  # the first warms connections up
    ends = np.array([0.0, *transport.clock()["end_s"]])
    transport.factor = factor
    wrong = runner.execute(size_bytes, dtype, seed) + unpaced
    transport.close()
    return PacedRun(
        size_bytes=length * dtype.itemsize,
        factor=factor,
        mode=mode,
        rows_end_s=tuple(np.cumsum([step.duration_s for step in steps]).tolist()),
        reconfiguration_s=sum(step.reconfiguration_s for step in steps),
        latency_s=sum(step.latency_s for step in steps),
        shortest_s=min((at for step in steps for at in step.release_s.values()), default=0.0),
        overhead_s=float(np.diff(ends).max(initial=0)),
        wrong=wrong,
        simulated_s=parts,
        **transport.clock(),
    )


def _wait_until(moment: float) -> None:
    """Sleep, then wait for the rest."""
    while (left := moment - time.perf_counter()) > 0:
        time.sleep(max(0.0, left - SPIN_S))
