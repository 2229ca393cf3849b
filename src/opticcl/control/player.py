"""Many control units in simulated time: the very machine of `protocol`, driven by a queue of events.

A message takes the delay of the control network's switches on its way; it may be lost, doubled or late. A payload takes
its bytes over the wavelengths of its circuit. What a node receives it may have to add up: part of that runs beside the
control messages and the retuning (`overlap`), but the next payload waits for all of it.

Source: ODDL section 4.B and equation 1, whose two exchanges are previous_completion and transceiver_ready.
Reading: equation 1 charges two exchanges on every step. Before the first step nobody has anything to complete, so a job
that starts from rest (follows=False) has one exchange less.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.control.protocol import (
    Event,
    Heard,
    Kind,
    Phase,
    Reaction,
    Received,
    Send,
    Sent,
    State,
    Timer,
    Transmit,
    Tune,
    Tuned,
    react,
    start,
)
from opticcl.control.script import Script, scripts
from opticcl.control.wire import ADDRESS_BITS, MOST_NODES
from opticcl.data import load
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabric.oddl import control_hops
from opticcl.ir import CircuitPlan, Fabric
from opticcl.units import ByteRate, Seconds

__all__ = ["Bar", "Channel", "ControlRun", "Told", "simulate"]

REPEAT_S: float = load("control.toml")["oddl"]["repeat"]["value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """What the control network does with messages.

    Args:
        loss: share of messages that never arrive.
        duplicate: share that arrives twice.
        jitter: each message is late by up to that much, so that messages overtake each other [s].
        repeat: after how long a unit repeats what it told last, where something can be lost [s].
        seed: of all that is random.
    Raises: ParameterError: a share outside 0 to 1, a loss of everything, or a negative time.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    jitter: Seconds = 0.0
    repeat: Seconds = REPEAT_S
    seed: int = 0

    def __post_init__(self) -> None:
        for name, share, most in (("loss", self.loss, 0.99), ("duplicate", self.duplicate, 1.0)):
            if not 0 <= share <= most:
                raise ParameterError(f"control: {name}={share:g} is no share from 0 to {most:g}; try {name}=0.2")
        if not 0 <= self.jitter < float("inf") or not 0 < self.repeat < float("inf"):
            raise ParameterError(
                f"control: jitter={self.jitter:g} s must not be negative, repeat={self.repeat:g} s must be positive"
            )
        if self.seed < 0:
            raise ParameterError(f"control: seed={self.seed}; it is 0 or more")


class Told(NamedTuple):
    """A message on its way; arrived_s is None if it was lost."""

    src: int
    dst: int
    kind: Kind
    exchange: int
    sent_s: float
    arrived_s: float | None


class Bar(NamedTuple):
    """What a node was busy with."""

    node: int
    what: Literal["tune", "payload"]
    exchange: int
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class ControlRun:
    """How the units fared; a row an exchange.

    Args:
        step: step of the schedule that each exchange belongs to, int64 (exchanges,).
        control_s: waiting for messages, of the node that waits longest, float64 (exchanges,) [s].
        mean_control_s: of the mean node that takes part, float64 (exchanges,) [s].
        total_s: until the last node is done [s].
        messages, repeated, lost: told in all, of these repeated, of these lost [count].
        events: that the queue held [count].
        told, bars: messages and work of the nodes that were watched.
    """

    step: npt.NDArray[np.int64]
    control_s: npt.NDArray[np.float64]
    mean_control_s: npt.NDArray[np.float64]
    total_s: float
    messages: int
    repeated: int
    lost: int
    events: int
    told: tuple[Told, ...] = ()
    bars: tuple[Bar, ...] = ()


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
    """Play a plan's control units from start to end.

    Args:
        plan: on ODDL.
        size_bytes: message of every rank [bytes].
        channel: the control network; None: it loses nothing and is never late.
        follows: whether another collective ran just before, so that its completion is told too.
        memory_bytes_per_s: of the device that adds up what arrives, 3 bytes moved a byte; None: takes no time.
        overlap: share of the adding up that runs beside control messages and retuning, 0 to 1.
        watch: nodes whose messages and work are recorded.
    Raises: UnsupportedError: another fabric. ParameterError: an overlap outside 0 to 1, a memory that moves nothing, or
        more nodes than the messages can name.
    """
    fabric = plan.fabric
    if fabric.name != "oddl":
        raise UnsupportedError(
            f"control: {fabric.name} has no control units; they are those of oddl, try --fabric oddl"
        )
    if not 0 <= overlap <= 1:
        raise ParameterError(f"control: overlap={overlap:g} is no share from 0 to 1; try 0.5")
    if memory_bytes_per_s is not None and memory_bytes_per_s <= 0:
        raise ParameterError(f"control: memory={memory_bytes_per_s:g} B/s is not positive; try 1.5TB/s")
    if fabric.num_machine_nodes > MOST_NODES:
        raise ParameterError(
            f"control: {ADDRESS_BITS} bits name {MOST_NODES:,} nodes, and the machine has {fabric.num_machine_nodes:,}; "
            "try a smaller one"
        )
    step, payload_s, added_bytes = _work(plan, size_bytes)
    adding_s = added_bytes * (3 / memory_bytes_per_s if memory_bytes_per_s else 0.0)
    with _no_collector():
        stage = _Stage(plan, channel or Channel(), follows, payload_s, adding_s, overlap, watch)
        stage.play()
    waited = np.array(stage.waited).reshape(len(step), len(stage.scripts))
    active = (
        np.array([list(map(bool, script.meets)) for script in stage.scripts])
        .reshape(len(stage.scripts), len(step))
        .sum(axis=0)
    )
    return ControlRun(
        step=np.array(step, np.int64),
        control_s=waited.max(axis=1, initial=0.0),
        mean_control_s=waited.sum(axis=1) / np.maximum(active, 1),
        total_s=stage.end_s,
        messages=stage.messages,
        repeated=stage.repeated,
        lost=stage.lost,
        events=stage.events,
        told=tuple(stage.told),
        bars=tuple(stage.bars),
    )


def _work(plan: CircuitPlan, size_bytes: int) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Of every exchange: its step; how long each rank sends [s]; what each rank has to add [bytes]."""
    schedule, fabric = plan.schedule, plan.fabric
    n, chunk_bytes = schedule.collective.num_ranks, size_bytes / schedule.collective.num_chunks
    step: list[int] = []
    sends: list[np.ndarray] = []
    adds: list[np.ndarray] = []
    for i in range(schedule.num_steps):
        transfers = schedule.step(i)
        amount = transfers.size_chunks() * chunk_bytes
        for circuits in plan.rounds(i):
            rows = circuits.transfer
            width = np.bincount(rows, circuits.wavelength_n, minlength=len(transfers))
            carried = np.flatnonzero(width)
            sending, adding = np.zeros(n), np.zeros(n)
            seconds = amount[carried] * 8 / (width[carried] * fabric.rate_bits_per_s)
            np.maximum.at(sending, transfers.src[carried], seconds)
            np.add.at(adding, transfers.dst[carried], amount[carried] * (transfers.op[carried] == 1))
            step.append(i)
            sends.append(sending)
            adds.append(adding)
    shape = (len(step), n)
    return step, np.array(sends).reshape(shape), np.array(adds).reshape(shape)


@contextmanager
def _no_collector() -> Iterator[None]:
    """Without the search for cycles: the queue makes a million tuples and no cycle, and each search looks at all of them."""
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            gc.enable()


class _Stage:
    """The queue of events, and everything that they change."""

    def __init__(
        self,
        plan: CircuitPlan,
        channel: Channel,
        follows: bool,
        payload_s: np.ndarray,
        adding_s: np.ndarray,
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
        self.tune_s, self.late = plan.fabric.reconfiguration_s, 1 - overlap
        self.payload_s: list[list[float]] = payload_s.tolist()
        self.adding_s: list[list[float]] = adding_s.tolist()
        self.times: list[float] = []  # a heap of the moments at which something happens
        self.at: dict[float, list[tuple[int, Event]]] = {}  # what happens then, in the order in which it was put
        self.states = [State(-1, Phase.COMPLETE, ())] * n
        self.since = [0.0] * n  # when each node began to wait for messages
        self.data_s = [0.0] * n  # when its next payload is there
        self.armed = [0.0] * n  # when the timer that counts runs out
        self.waited = [[0.0] * n for _ in payload_s]
        self.told: list[Told] = []
        self.bars: list[Bar] = []
        self.messages = self.repeated = self.lost = self.events = 0
        self.end_s = 0.0

    def play(self) -> None:
        """Until nothing is left to happen."""
        units, states, times, at = self.scripts, self.states, self.times, self.at
        for i, script in enumerate(units):
            self.follow(i, 0.0, start(script))
        while times:
            now = heappop(times)
            for i, event in at[now]:  # may grow meanwhile
                kind, before = type(event), states[i]
                if kind is Timer and now != self.armed[i]:
                    continue
                reaction = react(units[i], before, event)
                after, sends, actions = reaction
                if kind is Timer:
                    self.repeated += len(sends)
                elif kind is Received:
                    adding = self.adding_s[event.exchange][i]  # type: ignore[union-attr]
                    self.data_s[i] = max(self.data_s[i], now + (1 - self.late) * adding)
                if before.phase in _BUSY and after.phase not in _BUSY:
                    self.since[i] = now  # the exchange is over
                if sends or actions:
                    self.follow(i, now, reaction)
                else:
                    states[i] = after
            self.events += len(at.pop(now))

    def put(self, at_s: float, i: int, event: Event) -> None:
        """Something that will happen to unit i."""
        then = self.at.get(at_s)
        if then is None:
            self.at[at_s] = [(i, event)]
            heappush(self.times, at_s)
        else:
            then.append((i, event))

    def follow(self, i: int, now: float, reaction: Reaction) -> None:
        """Do what a unit wants."""
        self.states[i], sends, actions = reaction
        if sends:
            self.post(i, now, sends)
        for action in actions:
            if type(action) is Tune:
                e = action.exchange
                self.waited[e][i] = now - self.since[i]
                self.since[i] = now + self.tune_s
                self.put(now + self.tune_s, i, Tuned(e))
                self.note(i, "tune", e, now, now + self.tune_s)
            elif type(action) is Transmit:
                self.transmit(i, now, action.exchange)
            else:
                self.end_s = max(self.end_s, now)

    def transmit(self, i: int, now: float, e: int) -> None:
        """Let a payload go, as soon as it is there."""
        begin = max(now, self.data_s[i])
        end = begin + self.payload_s[e][i]
        self.waited[e][i] += now - self.since[i]
        me = self.scripts[i]
        self.put(end, i, Sent(e))
        for to in me.exchanges[e].sends:
            j = self.rank[to]
            self.put(end + self.late * self.adding_s[e][j], j, Received(me.address, e))
        self.note(i, "payload", e, begin, end)

    def post(self, i: int, now: float, sends: tuple[Send, ...]) -> None:
        """Give messages to the control network."""
        channel, random = self.channel, self.random
        self.messages += len(sends)
        if self.perfect and not self.watch:
            delay_s, rank = self.delay_s[i], self.rank
            for to, message in sends:
                self.put(now + delay_s[to], rank[to], Heard(message))
            return
        for to, message in sends:
            arrives: float | None = now + self.delay_s[i][to]
            if self.perfect:
                self.put(now + self.delay_s[i][to], self.rank[to], Heard(message))
            elif random() < channel.loss:
                self.lost += 1
                arrives = None
            else:
                for _ in range(2 if random() < channel.duplicate else 1):
                    arrives = now + self.delay_s[i][to] + channel.jitter * random()
                    self.put(arrives, self.rank[to], Heard(message))
            if message.sender in self.watch and to in self.watch:
                self.told.append(Told(message.sender, to, message.kind, message.number, now, arrives))
        if self.repeats:
            self.armed[i] = now + channel.repeat
            self.put(self.armed[i], i, Timer())

    def note(self, i: int, what: Literal["tune", "payload"], e: int, begin_s: float, end_s: float) -> None:
        """Remember what a watched node does."""
        if self.watch and self.scripts[i].address in self.watch:
            self.bars.append(Bar(self.scripts[i].address, what, e, begin_s, end_s))


_BUSY = (Phase.READY, Phase.SENDING)


def _delays(fabric: Fabric, units: Sequence[Script]) -> list[dict[int, float]]:
    """How long a message from each unit to each of its peers is on its way [s]."""
    own = np.repeat([u.address for u in units], [len(u.peers) for u in units])
    peers = np.array([peer for u in units for peer in u.peers], np.int64)
    p = fabric.parameters
    seconds = (control_hops(own, peers, p["control_radix"]) * p["control_switch_delay"]).tolist()
    found, at = [], 0
    for unit in units:
        found.append(dict(zip(unit.peers, seconds[at : at + len(unit.peers)], strict=True)))
        at += len(unit.peers)
    return found
