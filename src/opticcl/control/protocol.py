"""ODDL's control unit as a state machine: an event comes in, a new state, messages and actions come out.

::

    TUNING    laser and clock recovery move to this exchange's partners        Tuned -> self_conf
    READY     own end stands: tell the partners (transceiver_ready)            all ready -> dest_conf
    SENDING   payload under way, both ways                                     Sent, Received -> self_completion
    COMPLETE  tell the *next* partners (previous_completion)                   all complete -> dest_completion, next

It has no clock, socket or queue; whoever drives it does (a player in simulated time, a process over UDP, a search through
all states). Never a payload before both ends are ready, never a switch during a payload, no deadlock: `explore` shows it.

What it knows of a partner is one number that only grows: 2 t once the partner is ready for exchange t, 2 t - 1 once it is
complete with all before. So messages may be lost, late, doubled or out of order: an old one changes nothing, a new one says
all that the lost ones before it said (ready for t implies complete before t). Nothing is acknowledged. On every tick of its
timer a unit repeats the last thing that it told. A payload that arrives is itself a proof that its sender was ready, so
nobody ever waits for a unit that has moved on.

Source: ODDL section 4.B, steps 3 to 6, and figure 8.
Reading: the address in the message is taken as the sender's (the control network's own header leads it to its
    destination), and each unit remembers what every partner has told. One flag for "the" destination, as printed, is not
    enough: with four nodes a fast partner of a later exchange completes first and sets it (tests/control/test_explore.py).
Reading: 13 bits have no number. Because ready and complete take turns between two nodes, they are enough on a network
    that loses nothing and keeps the order (numbering=none); with the parity of the exchange, a 14th bit, also where
    messages are lost and doubled in order; where they may overtake each other only the exchange's number is safe
    (numbering=step). It travels outside the 13 bits, in the datagram's header.
Reading: the text has one destination a step. Here a node may send to some and receive from others (a ring); it tells both
    and waits for both.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from opticcl.control.script import Script

__all__ = [
    "Action",
    "Event",
    "Finish",
    "GiveUp",
    "Heard",
    "Kind",
    "Message",
    "Phase",
    "Reaction",
    "Received",
    "Send",
    "Sent",
    "State",
    "Timer",
    "Transmit",
    "Tune",
    "Tuned",
    "flags",
    "react",
    "start",
]


class Kind(IntEnum):
    """What a message tells: the one bit of its type."""

    READY = 0
    COMPLETION = 1


class Message(NamedTuple):
    """A control message.

    Args:
        sender: node that tells it, 12 bits.
        kind: 1 bit.
        number: the exchange that it speaks of (numbering=step), or its parity, or 0.
    """

    sender: int
    kind: Kind
    number: int = 0


class Send(NamedTuple):
    """A message and the node it goes to."""

    to: int
    message: Message


# --- events -----------------------------------------------------------------------------------------------------------


class Tuned(NamedTuple):
    """The own transceiver stands for this exchange."""

    exchange: int


class Heard(NamedTuple):
    """A message arrived."""

    message: Message


class Sent(NamedTuple):
    """The last bit of the own payload of this exchange has left."""

    exchange: int


class Received(NamedTuple):
    """The whole payload of a partner has arrived."""

    sender: int
    exchange: int


class Timer(NamedTuple):
    """Time to repeat what was told last."""


Event = Tuned | Heard | Sent | Received | Timer

# --- actions ----------------------------------------------------------------------------------------------------------


class Tune(NamedTuple):
    """Retune the transceiver for this exchange; answered by `Tuned`."""

    exchange: int


class Transmit(NamedTuple):
    """Let the payload of this exchange go; answered by `Sent`."""

    exchange: int


class Finish(NamedTuple):
    """All is done: shut the laser down."""


class GiveUp(NamedTuple):
    """Patience is over: these nodes never answered."""

    waiting_for: tuple[int, ...]


Action = Tune | Transmit | Finish | GiveUp

# --- states -----------------------------------------------------------------------------------------------------------


class Phase(IntEnum):
    """Where in an exchange a unit is."""

    TUNING = 0
    READY = 1
    SENDING = 2
    COMPLETE = 3
    FINISHED = 4
    FAILED = 5


TUNING, READY, SENDING, COMPLETE, FINISHED, FAILED = Phase  # a member looked up by its class costs more than a step


class State(NamedTuple):
    """All that a unit remembers.

    Args:
        exchange: the current one; -1 before the first.
        phase: where in it.
        heard: how far each peer is known to be, by place: 2 t ready for exchange t, 2 t - 1 complete before it.
        sent: whether the own payload has left.
        awaited: places of the peers whose payload is still to come, as bits.
        silent: ticks of the timer since the last progress.
    """

    exchange: int
    phase: Phase
    heard: tuple[int, ...]
    sent: bool = False
    awaited: int = 0
    silent: int = 0


Reaction = tuple[State, tuple[Send, ...], tuple[Action, ...]]
"""What follows from an event: the new state, messages to send, actions to take."""


def flags(script: Script, state: State) -> dict[str, bool]:
    """The four flags of section 4.B."""
    e, phase = state.exchange, state.phase
    inside = 0 <= e < len(script.exchanges)
    after = e + 1 < len(script.exchanges) and phase is COMPLETE
    return {
        "self_conf": phase in (READY, SENDING),
        "dest_conf": inside and all(state.heard[i] >= 2 * e for i in script.meets[e]),
        "self_completion": phase in (COMPLETE, FINISHED),
        "dest_completion": after and all(state.heard[i] > 2 * e for i in script.meets[e + 1]),
    }


def start(script: Script) -> Reaction:
    """The state before the first exchange, and what to do first."""
    heard = (-2 if script.follows else -1,) * len(script.peers)
    if not script.exchanges:
        return State(-1, FINISHED, heard), (), (Finish(),)
    told = _tell(script, Kind.COMPLETION, 0) if script.follows else ()
    return _advance(script, -1, COMPLETE, heard, True, 0, told)


def react(script: Script, state: State, event: Event) -> Reaction:
    """What an event leads to. Events that tell nothing new leave the state as it is."""
    e, phase, heard, sent, awaited, _ = state
    if isinstance(event, Heard):
        message = event.message
        place = script.place.get(message.sender, -1)
        level = -2 if place < 0 else _level(script, state, place, message)
        if place < 0 or level <= heard[place] or phase >= FINISHED:
            return state, (), ()
        heard = _with(heard, place, level)
        if phase is TUNING or phase is SENDING:  # waits for its hardware
            return State(e, phase, heard, sent, awaited), (), ()
        return _advance(script, e, phase, heard, sent, awaited)
    if isinstance(event, Timer):
        return _tick(script, state)
    if event.exchange != e:
        return state, (), ()
    if isinstance(event, Tuned) and phase is TUNING:
        return _advance(script, e, READY, heard, sent, awaited, _tell(script, Kind.READY, e))
    if isinstance(event, Sent) and phase is SENDING:
        if awaited:
            return State(e, phase, heard, True, awaited), (), ()
        return _advance(script, e, phase, heard, True, awaited)
    if isinstance(event, Received) and (phase is SENDING or phase is READY):
        place = script.place.get(event.sender, -1)
        if place < 0 or not awaited >> place & 1:
            return state, (), ()
        if script.numbering != "none" and heard[place] < 2 * e:  # it was ready, or it could not have sent
            heard = _with(heard, place, 2 * e)  # who counts messages must wait for the one that says so
        return _advance(script, e, phase, heard, sent, awaited & ~(1 << place))
    return state, (), ()


def _tick(script: Script, state: State) -> Reaction:
    """Repeat what was told last; give up if nobody has answered for too long."""
    e, phase = state.exchange, state.phase
    if phase >= FINISHED:
        return state, (), ()
    waits = phase in (READY, COMPLETE) or (phase is SENDING and state.sent)
    if waits and script.patience:
        if state.silent >= script.patience:
            return state._replace(phase=FAILED), (), (GiveUp(_waiting_for(script, state)),)
        state = state._replace(silent=state.silent + 1)
    if phase is COMPLETE:
        return state, _tell(script, Kind.COMPLETION, e + 1), ()
    return state, _tell(script, Kind.COMPLETION if phase is TUNING else Kind.READY, e), ()


def _waiting_for(script: Script, state: State) -> tuple[int, ...]:
    e = state.exchange
    if state.phase is SENDING:
        return tuple(node for i, node in enumerate(script.peers) if state.awaited >> i & 1)
    e, due = (e + 1, 2 * e + 1) if state.phase is COMPLETE else (e, 2 * e)
    return tuple(script.peers[i] for i in script.meets[e] if state.heard[i] < due)


def _with(heard: tuple[int, ...], place: int, level: int) -> tuple[int, ...]:
    return (*heard[:place], level, *heard[place + 1 :])


def _advance(
    script: Script,
    e: int,
    phase: Phase,
    heard: tuple[int, ...],
    sent: bool,
    awaited: int,
    sends: tuple[Send, ...] = (),
) -> Reaction:
    """As far as the state, given field by field, allows without another event."""
    actions: tuple[Action, ...] = ()
    while True:
        if phase is READY:
            if any([heard[i] < 2 * e for i in script.meets[e]]):  # noqa: C419 (a generator costs more)
                break
            phase, sent = SENDING, not script.exchanges[e].sends
            if not sent:
                actions += (Transmit(e),)
        elif phase is SENDING:
            if awaited or not sent:
                break
            if e + 1 == len(script.exchanges):
                phase = FINISHED
                actions += (Finish(),)
                break
            phase = COMPLETE
            sends += _tell(script, Kind.COMPLETION, e + 1)
        elif phase is COMPLETE:
            if any([heard[i] <= 2 * e for i in script.meets[e + 1]]):  # noqa: C419
                break
            e += 1
            if script.meets[e]:
                phase, sent, awaited = TUNING, False, script.incoming[e]
                actions += (Tune(e),)
                break
            phase, sent, awaited = SENDING, True, 0  # nothing to do here
        else:
            break
    return State(e, phase, heard, sent, awaited), sends, actions


# --- what a message says ----------------------------------------------------------------------------------------------


def _tell(script: Script, kind: Kind, exchange: int) -> tuple[Send, ...]:
    """The same message to all partners of an exchange."""
    me, peers = script.address, script.peers
    if script.numbering == "step":
        message = Message(me, kind, exchange)
        return tuple([Send(peers[i], message) for i in script.meets[exchange]])
    numbers = ((i, script.shared[i].index(exchange) % 2) for i in script.meets[exchange])
    return tuple([Send(peers[i], Message(me, kind, k if script.numbering == "parity" else 0)) for i, k in numbers])


def _level(script: Script, state: State, place: int, message: Message) -> int:
    """How far the sender says that it is, -2 if the message cannot be one of this job."""
    shared = script.shared[place]
    if script.numbering == "step":
        return 2 * message.number - message.kind if message.number in shared else -2
    for k, exchange in enumerate(shared):
        if 2 * exchange > state.heard[place]:  # the next thing that it can be ready for
            fits = script.numbering == "none" or message.number == k % 2
            return 2 * exchange - message.kind if fits else -2
    return -2
