"""ODDL's control unit as a state machine: `react(script, state, event)` returns a state, messages and actions.

::

    TUNING    laser and clock recovery move to this exchange's partners       Tuned -> self_conf
    READY     own end is tuned: send transceiver_ready to the partners        all ready -> dest_conf
    SENDING   payloads in flight in both directions                           PayloadSent, PayloadReceived -> self_completion
    COMPLETE  send previous_completion to the *next* partners                 all complete -> dest_completion, next

The unit has no clock, socket or queue; its driver has (the simulation, a process over UDP, the state space search). Three
invariants hold: no payload before both ends are ready, no retuning during a payload, no deadlock (`state_space.explore`).

What a unit knows of a partner is one integer that only grows: 2 t once the partner is ready for exchange t, 2 t - 1 once it
has completed all exchanges before t. Messages may therefore be lost, delayed, duplicated or reordered: an old message changes
nothing, and a new one implies all earlier ones (ready for t implies complete before t). There are no acknowledgements: on
every timer tick a unit repeats its last messages. A payload that arrives implies that its sender was ready, so no unit waits
for a partner that has moved on.

Source: ODDL section 4.B, steps 3 to 6, and figure 8.
Reading: the address in the message is taken as the sender's (the control network's own header leads it to its
    destination), and each unit keeps one state per partner. One flag for "the" destination, as printed, is not enough:
    with four nodes a fast partner of a later exchange completes first and sets it (tests/operations/test_state_space.py).
Reading: 13 bits have no sequence number. Ready and complete alternate between two nodes, so 13 bits suffice on a lossless
    network that keeps the order (numbering=none). With the parity of the exchange, a 14th bit, they also suffice where
    messages are lost and duplicated in order. Where messages may be reordered only the number of the exchange is safe
    (numbering=step). It is sent outside the 13 bits, in the header of the datagram.
Reading: the text has one destination per step. Here a node may send to some nodes and receive from others (a ring); it
    sends its control messages to both and waits for both.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from opticcl.operations.oddl_control.script import Script

__all__ = [
    "Action",
    "ControlPhase",
    "Event",
    "Finish",
    "GiveUp",
    "MessageArrived",
    "MessageKind",
    "PayloadReceived",
    "PayloadSent",
    "ProtocolMessage",
    "Reaction",
    "Send",
    "State",
    "Timer",
    "Transmit",
    "Tune",
    "Tuned",
    "flags",
    "react",
    "start",
]


class MessageKind(IntEnum):
    """Type of a control message, one bit."""

    READY = 0
    COMPLETION = 1


class ProtocolMessage(NamedTuple):
    """A control message.

    Args:
        sender: address of the sending node, 12 bits.
        kind: type, 1 bit.
        number: exchange that the message refers to (numbering=step), or its parity, or 0.
    """

    sender: int
    kind: MessageKind
    number: int = 0


class Send(NamedTuple):
    """A message and its destination node."""

    to: int
    message: ProtocolMessage


# --- events -----------------------------------------------------------------------------------------------------------


class Tuned(NamedTuple):
    """The unit's own transceiver is tuned for this exchange."""

    exchange: int


class MessageArrived(NamedTuple):
    """A control message has arrived."""

    message: ProtocolMessage


class PayloadSent(NamedTuple):
    """The last bit of the unit's own payload of this exchange has been sent."""

    exchange: int


class PayloadReceived(NamedTuple):
    """The whole payload of a partner has arrived."""

    sender: int
    exchange: int


class Timer(NamedTuple):
    """The timer has expired: the last messages are repeated."""


Event = Tuned | MessageArrived | PayloadSent | PayloadReceived | Timer

# --- actions ----------------------------------------------------------------------------------------------------------


class Tune(NamedTuple):
    """Retune the transceiver for this exchange; answered by `Tuned`."""

    exchange: int


class Transmit(NamedTuple):
    """Send the payload of this exchange; answered by `PayloadSent`."""

    exchange: int


class Finish(NamedTuple):
    """The script is finished: shut the laser down."""


class GiveUp(NamedTuple):
    """The unit's patience has run out: these nodes have not answered."""

    waiting_for: tuple[int, ...]


Action = Tune | Transmit | Finish | GiveUp

# --- states -----------------------------------------------------------------------------------------------------------


class ControlPhase(IntEnum):
    """Phase of an exchange."""

    TUNING = 0
    READY = 1
    SENDING = 2
    COMPLETE = 3
    FINISHED = 4
    FAILED = 5


TUNING, READY, SENDING, COMPLETE, FINISHED, FAILED = (
    ControlPhase  # attribute access on the class costs more than a transition
)


class State(NamedTuple):
    """State of a control unit.

    Args:
        exchange: index of the current exchange; -1 before the first.
        phase: phase of that exchange.
        progress: known progress of each peer, by place: 2 t ready for exchange t, 2 t - 1 complete before it.
        sent: whether the unit's own payload has been sent.
        awaited: bit mask of the places of the peers whose payload has not arrived yet.
        silent: timer ticks since the last progress [count].
    """

    exchange: int
    phase: ControlPhase
    progress: tuple[int, ...]
    sent: bool = False
    awaited: int = 0
    silent: int = 0


Reaction = tuple[State, tuple[Send, ...], tuple[Action, ...]]
"""Result of an event: the new state, messages to send, actions to take."""


def flags(script: Script, state: State) -> dict[str, bool]:
    """The four flags of section 4.B."""
    e, phase = state.exchange, state.phase
    inside = 0 <= e < len(script.exchanges)
    after = e + 1 < len(script.exchanges) and phase is COMPLETE
    return {
        "self_conf": phase in (READY, SENDING),
        "dest_conf": inside and all(state.progress[i] >= 2 * e for i in script.meets[e]),
        "self_completion": phase in (COMPLETE, FINISHED),
        "dest_completion": after and all(state.progress[i] > 2 * e for i in script.meets[e + 1]),
    }


def start(script: Script) -> Reaction:
    """State before the first exchange, with the first messages and actions."""
    progress = (-2 if script.follows else -1,) * len(script.peers)
    if not script.exchanges:
        return State(-1, FINISHED, progress), (), (Finish(),)
    sends = _to_partners(script, MessageKind.COMPLETION, 0) if script.follows else ()
    return _advance(script, -1, COMPLETE, progress, True, 0, sends)


def react(script: Script, state: State, event: Event) -> Reaction:
    """Reaction to an event. Events without new information leave the state unchanged.

    Args:
        script: of the unit.
        state: before the event.
        event: that has happened.
    """
    e, phase, progress, sent, awaited, _ = state
    if isinstance(event, MessageArrived):
        message = event.message
        place = script.place.get(message.sender, -1)
        level = -2 if place < 0 else _level(script, state, place, message)
        if place < 0 or level <= progress[place] or phase >= FINISHED:
            return state, (), ()
        progress = _with(progress, place, level)
        if phase is TUNING or phase is SENDING:  # waits for its hardware
            return State(e, phase, progress, sent, awaited), (), ()
        return _advance(script, e, phase, progress, sent, awaited)
    if isinstance(event, Timer):
        return _tick(script, state)
    if event.exchange != e:
        return state, (), ()
    if isinstance(event, Tuned) and phase is TUNING:
        return _advance(script, e, READY, progress, sent, awaited, _to_partners(script, MessageKind.READY, e))
    if isinstance(event, PayloadSent) and phase is SENDING:
        if awaited:
            return State(e, phase, progress, True, awaited), (), ()
        return _advance(script, e, phase, progress, True, awaited)
    if isinstance(event, PayloadReceived) and (phase is SENDING or phase is READY):
        place = script.place.get(event.sender, -1)
        if place < 0 or not awaited >> place & 1:
            return state, (), ()
        if script.numbering != "none" and progress[place] < 2 * e:  # it was ready, or it could not have sent
            progress = _with(progress, place, 2 * e)  # without numbers the unit must wait for the message itself
        return _advance(script, e, phase, progress, sent, awaited & ~(1 << place))
    return state, (), ()


def _tick(script: Script, state: State) -> Reaction:
    """Repeat the last messages; give up after `patience` ticks without an answer."""
    e, phase = state.exchange, state.phase
    if phase >= FINISHED:
        return state, (), ()
    waits = phase in (READY, COMPLETE) or (phase is SENDING and state.sent)
    if waits and script.patience:
        if state.silent >= script.patience:
            return state._replace(phase=FAILED), (), (GiveUp(_waiting_for(script, state)),)
        state = state._replace(silent=state.silent + 1)
    if phase is COMPLETE:
        return state, _to_partners(script, MessageKind.COMPLETION, e + 1), ()
    return state, _to_partners(script, MessageKind.COMPLETION if phase is TUNING else MessageKind.READY, e), ()


def _waiting_for(script: Script, state: State) -> tuple[int, ...]:
    e = state.exchange
    if state.phase is SENDING:
        return tuple(node for i, node in enumerate(script.peers) if state.awaited >> i & 1)
    e, due = (e + 1, 2 * e + 1) if state.phase is COMPLETE else (e, 2 * e)
    return tuple(script.peers[i] for i in script.meets[e] if state.progress[i] < due)


def _with(progress: tuple[int, ...], place: int, level: int) -> tuple[int, ...]:
    return (*progress[:place], level, *progress[place + 1 :])


def _advance(
    script: Script,
    e: int,
    phase: ControlPhase,
    progress: tuple[int, ...],
    sent: bool,
    awaited: int,
    sends: tuple[Send, ...] = (),
) -> Reaction:
    """Advance a state, given field by field, as far as possible without another event."""
    actions: tuple[Action, ...] = ()
    while True:
        if phase is READY:
            if any([progress[i] < 2 * e for i in script.meets[e]]):  # noqa: C419 (a generator costs more)
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
            sends += _to_partners(script, MessageKind.COMPLETION, e + 1)
        elif phase is COMPLETE:
            if any([progress[i] <= 2 * e for i in script.meets[e + 1]]):  # noqa: C419
                break
            e += 1
            if script.meets[e]:
                phase, sent, awaited = TUNING, False, script.incoming[e]
                actions += (Tune(e),)
                break
            phase, sent, awaited = SENDING, True, 0  # an empty exchange
        else:
            break
    return State(e, phase, progress, sent, awaited), sends, actions


# --- content of messages ----------------------------------------------------------------------------------------------


def _to_partners(script: Script, kind: MessageKind, exchange: int) -> tuple[Send, ...]:
    """The same message, addressed to all partners of an exchange."""
    me, peers = script.address, script.peers
    if script.numbering == "step":
        message = ProtocolMessage(me, kind, exchange)
        return tuple([Send(peers[i], message) for i in script.meets[exchange]])
    numbers = ((i, script.shared[i].index(exchange) % 2) for i in script.meets[exchange])
    return tuple(
        [Send(peers[i], ProtocolMessage(me, kind, k if script.numbering == "parity" else 0)) for i, k in numbers]
    )


def _level(script: Script, state: State, place: int, message: ProtocolMessage) -> int:
    """Progress that a message reports, -2 if the message cannot belong to this job."""
    shared = script.shared[place]
    if script.numbering == "step":
        return 2 * message.number - message.kind if message.number in shared else -2
    for k, exchange in enumerate(shared):
        if 2 * exchange > state.progress[place]:  # the next exchange that it can be ready for
            fits = script.numbering == "none" or message.number == k % 2
            return 2 * exchange - message.kind if fits else -2
    return -2
