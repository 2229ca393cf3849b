"""Discrete-event simulation of many control units: the state machine of `protocol`, driven by a queue of events.

A message takes the delay of the control network's switches; it may be lost, duplicated or delayed. The duration of a payload
is its size over the rate of the wavelengths of its circuit. A node may have to reduce what it receives: part of that overlaps
control messages and retuning (`overlap`), but the next payload waits for all of it.

Source: ODDL section 4.B and equation 1, whose two exchanges are previous_completion and transceiver_ready.
Reading: equation 1 charges two exchanges on every step. There is nothing to complete before the first step, so a job that
starts from rest (follows=False) has one exchange less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics.oddl import Oddl, control_hops
from opticcl.files import read_toml
from opticcl.ir import CircuitPlan, Fabric
from opticcl.operations.oddl_control.protocol import (
    ControlPhase,
    Event,
    MessageArrived,
    MessageKind,
    PayloadReceived,
    PayloadSent,
    Reaction,
    Send,
    State,
    Timer,
    Transmit,
    Tune,
    Tuned,
    react,
    start,
)
from opticcl.operations.oddl_control.script import Script, scripts
from opticcl.operations.oddl_control.wire import ADDRESS_BITS, MOST_NODES
from opticcl.units import ByteRate, Seconds

__all__ = ["BusyInterval", "Channel", "ControlMessage", "ControlRun", "simulate"]

REPEAT_S: float = read_toml("opticcl.operations.oddl_control", "protocol.toml")["repeat"]["value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """Faults of the control network.

    Args:
        loss: fraction of messages that are lost.
        duplicate: fraction of messages that arrive twice.
        jitter: largest additional delay of a message, which reorders messages [s].
        repeat: period after which a unit repeats its last messages, if messages can be lost [s].
        seed: of the random numbers.
    Raises: ParameterError: a fraction outside 0 to 1, a loss of all messages, or a negative time.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    jitter: Seconds = 0.0
    repeat: Seconds = REPEAT_S
    seed: int = 0

    def __post_init__(self) -> None:
        for name, share, most in (("loss", self.loss, 0.99), ("duplicate", self.duplicate, 1.0)):
            if not 0 <= share <= most:
                raise ParameterError(f"control: {name}={share:g} is not a fraction from 0 to {most:g}; try {name}=0.2")
        if not 0 <= self.jitter < float("inf") or not 0 < self.repeat < float("inf"):
            raise ParameterError(
                f"control: jitter={self.jitter:g} s must not be negative, repeat={self.repeat:g} s must be positive"
            )
        if self.seed < 0:
            raise ParameterError(f"control: seed={self.seed}; it is 0 or more")


class ControlMessage(NamedTuple):
    """A control message with the times at which it was sent and arrived [s]; arrived_s is None if it was lost."""

    src: int
    dst: int
    kind: MessageKind
    exchange: int
    sent_s: float
    arrived_s: float | None


class BusyInterval(NamedTuple):
    """Interval in which a node tunes its transceiver or sends a payload."""

    node: int
    activity: Literal["tune", "payload"]
    exchange: int
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class ControlRun:
    """Result of a simulation; one row per exchange.

    Args:
        step: step of the schedule that each exchange belongs to, int64 (exchanges,).
        control_s: longest wait of a node for messages, float64 (exchanges,) [s].
        mean_control_s: mean wait of the nodes that take part, float64 (exchanges,) [s].
        total_s: time at which the last node finishes [s].
        messages, repeated, lost: messages sent, of these repetitions, of these lost [count].
        events: events processed [count].
        message_log, busy_intervals: messages and activities of the watched nodes.
    """

    step: npt.NDArray[np.int64]
    control_s: npt.NDArray[np.float64]
    mean_control_s: npt.NDArray[np.float64]
    total_s: float
    messages: int
    repeated: int
    lost: int
    events: int
    message_log: tuple[ControlMessage, ...] = ()
    busy_intervals: tuple[BusyInterval, ...] = ()

    def record(self) -> dict[str, Any]:
        """The result as plain numbers, without the logs of watched nodes."""
        return {
            "exchanges": len(self.step),
            "longest_wait_s": self.control_s.tolist(),
            "mean_wait_s": self.mean_control_s.tolist(),
            "total_s": self.total_s,
            "messages": self.messages,
            "repeated": self.repeated,
            "lost": self.lost,
        }


def simulate(
    plan: CircuitPlan,
    size_bytes: int,
    channel: Channel | None = None,
    *,
    follows: bool = True,
    memory_bytes_per_s: ByteRate | None = None,
    overlap: float = 1.0,
    watch: frozenset[int] = frozenset(),
) -> ControlRun:
    """Simulate a plan's control units from start to end.

    Args:
        plan: on ODDL.
        size_bytes: message of every rank [bytes].
        channel: faults of the control network; None: it is lossless and adds no jitter.
        follows: whether another collective ran just before, so that its completion is reported too.
        memory_bytes_per_s: memory bandwidth of the device that reduces, which moves 3 bytes per byte received; None:
            reductions take no time.
        overlap: fraction of the reductions that overlaps control messages and retuning, 0 to 1.
        watch: nodes whose messages and activities are recorded.
    Raises: UnsupportedError: another fabric. ParameterError: an overlap outside 0 to 1, a bandwidth that is not positive,
        or more nodes than the address of a message has values.
    """
    fabric = plan.fabric
    if not isinstance(fabric.machine, Oddl):
        raise UnsupportedError(
            f"control: {fabric.name} has no control units; they are those of oddl, try --fabric oddl"
        )
    if not 0 <= overlap <= 1:
        raise ParameterError(f"control: overlap={overlap:g} is not a fraction from 0 to 1; try 0.5")
    if memory_bytes_per_s is not None and memory_bytes_per_s <= 0:
        raise ParameterError(f"control: memory={memory_bytes_per_s:g} B/s is not positive; try 1.5TB/s")
    if fabric.num_machine_nodes > MOST_NODES:
        raise ParameterError(
            f"control: {ADDRESS_BITS} bits address {MOST_NODES:,} nodes, and the machine has {fabric.num_machine_nodes:,}; "
            "try a smaller one"
        )
    step, payload_s, reduced_bytes = _exchange_loads(plan, size_bytes)
    reduction_s = reduced_bytes * (3 / memory_bytes_per_s if memory_bytes_per_s else 0.0)
    queue = _EventQueue(plan, channel or Channel(), follows, payload_s, reduction_s, overlap, watch)
    queue.run()
    waited = np.array(queue.waited).reshape(len(step), len(queue.scripts))
    active = (
        np.array([list(map(bool, script.meets)) for script in queue.scripts])
        .reshape(len(queue.scripts), len(step))
        .sum(axis=0)
    )
    return ControlRun(
        step=np.array(step, np.int64),
        control_s=waited.max(axis=1, initial=0.0),
        mean_control_s=waited.sum(axis=1) / np.maximum(active, 1),
        total_s=queue.end_s,
        messages=queue.messages,
        repeated=queue.repeated,
        lost=queue.lost,
        events=queue.events,
        message_log=tuple(queue.message_log),
        busy_intervals=tuple(queue.busy_intervals),
    )


def _exchange_loads(plan: CircuitPlan, size_bytes: int) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Of every exchange: its step; how long each rank sends [s]; how much each rank reduces [bytes]."""
    schedule, fabric = plan.schedule, plan.fabric
    n, chunk_bytes = schedule.collective.num_ranks, size_bytes / schedule.collective.num_chunks
    step: list[int] = []
    sends: list[np.ndarray] = []
    adds: list[np.ndarray] = []
    for i in range(schedule.num_steps):
        transfers = schedule.step(i)
        amount = transfers.size_chunks() * chunk_bytes
        for circuits in (c.carrying() for c in plan.rounds(i)):
            rows = circuits.transfer
            width = np.bincount(rows, circuits.wavelength_n, minlength=len(transfers))
            carried = np.flatnonzero(width)
            sending, adding = np.zeros(n), np.zeros(n)
            seconds = amount[carried] * 8 / (width[carried] * fabric.rate_bits_per_s)
            np.maximum.at(sending, transfers.src[carried], seconds)
            np.add.at(adding, transfers.dst[carried], amount[carried] * (transfers.op[carried] & 1))
            step.append(i)
            sends.append(sending)
            adds.append(adding)
    shape = (len(step), n)
    return step, np.array(sends).reshape(shape), np.array(adds).reshape(shape)


class _EventQueue:
    """The queue of events with the state of all units."""

    def __init__(
        self,
        plan: CircuitPlan,
        channel: Channel,
        follows: bool,
        payload_s: np.ndarray,
        reduction_s: np.ndarray,
        overlap: float,
        watch: frozenset[int],
    ) -> None:
        self.scripts = scripts(plan, follows=follows)
        n = len(self.scripts)
        self.rank = {script.address: i for i, script in enumerate(self.scripts)}
        self.delay_s = _delays(plan.fabric, self.scripts)
        self.channel, self.watch = channel, watch
        self.random = Random(channel.seed).random
        self.perfect = not (channel.loss or channel.duplicate or channel.jitter)
        self.repeats = channel.loss > 0
        self.tune_s, self.exposed = plan.fabric.reconfiguration_s, 1 - overlap
        self.payload_s: list[list[float]] = payload_s.tolist()
        self.reduction_s: list[list[float]] = reduction_s.tolist()
        self.times: list[float] = []  # a heap of the times of events
        self.at: dict[float, list[tuple[int, Event]]] = {}  # events of each time, in the order of their insertion
        self.states = [State(-1, ControlPhase.COMPLETE, ())] * n
        self.since = [0.0] * n  # when each node began to wait for messages
        self.data_s = [0.0] * n  # when its next payload is available
        self.armed = [0.0] * n  # when its current timer expires
        self.waited = [[0.0] * n for _ in payload_s]
        self.message_log: list[ControlMessage] = []
        self.busy_intervals: list[BusyInterval] = []
        self.messages = self.repeated = self.lost = self.events = 0
        self.end_s = 0.0

    def run(self) -> None:
        """Process events until the queue is empty."""
        units, states, times, at = self.scripts, self.states, self.times, self.at
        for i, script in enumerate(units):
            self.apply(i, 0.0, start(script))
        while times:
            now = heappop(times)
            for i, event in at[now]:  # may grow during the loop
                kind, before = type(event), states[i]
                if kind is Timer and now != self.armed[i]:
                    continue
                reaction = react(units[i], before, event)
                after, sends, actions = reaction
                if kind is Timer:
                    self.repeated += len(sends)
                elif kind is PayloadReceived:
                    reduction_s = self.reduction_s[event.exchange][i]  # type: ignore[union-attr]
                    self.data_s[i] = max(self.data_s[i], now + (1 - self.exposed) * reduction_s)
                if before.phase in _BUSY and after.phase not in _BUSY:
                    self.since[i] = now  # the exchange is over
                if sends or actions:
                    self.apply(i, now, reaction)
                else:
                    states[i] = after
            self.events += len(at.pop(now))

    def insert(self, at_s: float, i: int, event: Event) -> None:
        """Insert an event of unit i."""
        events = self.at.get(at_s)
        if events is None:
            self.at[at_s] = [(i, event)]
            heappush(self.times, at_s)
        else:
            events.append((i, event))

    def apply(self, i: int, now: float, reaction: Reaction) -> None:
        """Set the new state of unit i, send its messages and execute its actions."""
        self.states[i], sends, actions = reaction
        if sends:
            self.send(i, now, sends)
        for action in actions:
            if type(action) is Tune:
                e = action.exchange
                self.waited[e][i] = now - self.since[i]
                self.since[i] = now + self.tune_s
                self.insert(now + self.tune_s, i, Tuned(e))
                self.log(i, "tune", e, now, now + self.tune_s)
            elif type(action) is Transmit:
                self.transmit(i, now, action.exchange)
            else:
                self.end_s = max(self.end_s, now)

    def transmit(self, i: int, now: float, e: int) -> None:
        """Send a payload as soon as its data are available."""
        begin = max(now, self.data_s[i])
        end = begin + self.payload_s[e][i]
        self.waited[e][i] += now - self.since[i]
        me = self.scripts[i]
        self.insert(end, i, PayloadSent(e))
        for to in me.exchanges[e].sends:
            j = self.rank[to]
            self.insert(end + self.exposed * self.reduction_s[e][j], j, PayloadReceived(me.address, e))
        self.log(i, "payload", e, begin, end)

    def send(self, i: int, now: float, sends: tuple[Send, ...]) -> None:
        """Send messages over the control network."""
        channel, random = self.channel, self.random
        self.messages += len(sends)
        if self.perfect and not self.watch:
            delay_s, rank = self.delay_s[i], self.rank
            for to, message in sends:
                self.insert(now + delay_s[to], rank[to], MessageArrived(message))
            return
        for to, message in sends:
            arrives: float | None = now + self.delay_s[i][to]
            if self.perfect:
                self.insert(now + self.delay_s[i][to], self.rank[to], MessageArrived(message))
            elif random() < channel.loss:
                self.lost += 1
                arrives = None
            else:
                for _ in range(2 if random() < channel.duplicate else 1):
                    arrives = now + self.delay_s[i][to] + channel.jitter * random()
                    self.insert(arrives, self.rank[to], MessageArrived(message))
            if message.sender in self.watch and to in self.watch:
                self.message_log.append(ControlMessage(message.sender, to, message.kind, message.number, now, arrives))
        if self.repeats:
            self.armed[i] = now + channel.repeat
            self.insert(self.armed[i], i, Timer())

    def log(self, i: int, activity: Literal["tune", "payload"], e: int, begin_s: float, end_s: float) -> None:
        """Record an activity of a watched node."""
        if self.watch and self.scripts[i].address in self.watch:
            self.busy_intervals.append(BusyInterval(self.scripts[i].address, activity, e, begin_s, end_s))


_BUSY = (ControlPhase.READY, ControlPhase.SENDING)


def _delays(fabric: Fabric, units: Sequence[Script]) -> list[dict[int, float]]:
    """Delay of a message from each unit to each of its peers [s]."""
    own = np.repeat([u.address for u in units], [len(u.peers) for u in units])
    peers = np.array([peer for u in units for peer in u.peers], np.int64)
    machine = fabric.machine_as(Oddl)
    seconds = (control_hops(own, peers, machine.control_radix) * machine.control_switch_delay).tolist()
    delays, at = [], 0
    for unit in units:
        delays.append(dict(zip(unit.peers, seconds[at : at + len(unit.peers)], strict=True)))
        at += len(unit.peers)
    return delays
