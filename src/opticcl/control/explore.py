"""Every state that a few control units and a hostile network can reach.

Networks:

    perfect   each message arrives once, in the order of its pair of nodes
    lossy     in order, but any message may be lost or doubled; at most `depth` of a pair are under way
    any       lost, doubled, late and out of order without bound: a message that was ever sent may arrive at any time,
              any number of times, or never

In every state it is checked that no payload goes out before both ends are ready and that nobody switches during a payload;
in the end, that every state still has a way to the finish. On the network `any` that way may use only messages that some
unit repeats by itself: all others may be lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from opticcl.control.protocol import (
    Event,
    Heard,
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
from opticcl.control.script import Script
from opticcl.errors import ParameterError

__all__ = ["Exploration", "Network", "World", "explore", "first_world", "wrong_with"]

Network = Literal["perfect", "lossy", "any"]
React = Callable[[Script, State, Event], Reaction]


class Flight(NamedTuple):
    """A payload under way."""

    src: int
    dst: int
    exchange: int
    left: bool  # the last bit has left the sender


class World(NamedTuple):
    """All units, all messages and all payloads at one moment.

    Args:
        units: state of each unit.
        messages: under way: (to, message) pairs ever sent on the network any; one queue a pair of nodes, by its place in
            sender * units + receiver, on the others.
        flights: payloads under way.
    """

    units: tuple[State, ...]
    messages: frozenset[Send] | tuple[tuple[Send, ...], ...]
    flights: frozenset[Flight]


class Exploration(NamedTuple):
    """What was found.

    Args:
        states: different worlds reached [count].
        transitions: between them [count].
        complete: whether all were looked at.
        problem: the first thing wrong, "" if nothing is.
        trace: events that lead to it.
    """

    states: int
    transitions: int
    complete: bool
    problem: str = ""
    trace: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all states were looked at and nothing is wrong."""
        return self.complete and not self.problem


class _BrokenError(Exception):
    """An invariant does not hold."""


def explore(
    scripts: Sequence[Script],
    network: Network = "any",
    *,
    depth: int = 2,
    limit: int = 2_000_000,
    reaction: React = react,
) -> Exploration:
    """Visit every reachable world.

    Args:
        scripts: of all units; their patience must be 0, giving up is no part of the question.
        network: perfect, lossy or any.
        depth: messages of a pair of nodes that may be under way at once (perfect and lossy).
        limit: states after which to stop.
        reaction: the protocol, or a broken one that must be found out.
    Raises: ParameterError: a script with patience.
    """
    if any(script.patience for script in scripts):
        raise ParameterError("explore: a unit with patience gives up in the end; use patience=0")
    net = _NETWORKS[network](len(scripts), depth)
    place = {script.address: i for i, script in enumerate(scripts)}
    rules = _Rules(tuple(scripts), place, net, reaction)
    try:
        first = first_world(rules)
    except _BrokenError as broken:
        return Exploration(0, 0, False, str(broken))
    came_from: dict[World, tuple[World, str] | None] = {first: None}
    backwards: dict[World, list[World]] = {}
    finished: list[World] = []
    queue, transitions = deque([first]), 0
    while queue:
        world = queue.popleft()
        if all(unit.phase == Phase.FINISHED for unit in world.units):
            finished.append(world)
        for event, fair, after in rules.following(world):
            transitions += 1
            if isinstance(after, str):
                return Exploration(
                    len(came_from), transitions, False, after, (*_trace(came_from, world, scripts), event)
                )
            if after not in came_from:
                if len(came_from) >= limit:
                    return Exploration(len(came_from), transitions, False, f"more than {limit:,} states")
                came_from[after] = (world, event)
                queue.append(after)
            if fair:
                backwards.setdefault(after, []).append(world)
    alive = _all_that_lead_to(finished, backwards)
    stuck = next((world for world in came_from if world not in alive), None)
    if stuck is not None:
        return Exploration(
            len(came_from), transitions, True, "no way to the finish is left", _trace(came_from, stuck, scripts)
        )
    return Exploration(len(came_from), transitions, True)


def _all_that_lead_to(targets: Sequence[World], backwards: dict[World, list[World]]) -> set[World]:
    found, queue = set(targets), list(targets)
    while queue:
        for before in backwards.get(queue.pop(), ()):
            if before not in found:
                found.add(before)
                queue.append(before)
    return found


def _trace(
    came_from: dict[World, tuple[World, str] | None], world: World, scripts: Sequence[Script]
) -> tuple[str, ...]:
    """Events from the start to a world, and how the units stand there."""
    events = []
    at: World | None = world
    while at is not None and (step := came_from[at]) is not None:
        at, event = step
        events.append(event)
    stand = ", ".join(
        f"{script.address} {unit.phase.name.lower()} in {unit.exchange}"
        for script, unit in zip(scripts, world.units, strict=True)
    )
    return (*reversed(events), f"there: {stand}")


# --- what may happen next ---------------------------------------------------------------------------------------------


class _Rules(NamedTuple):
    scripts: tuple[Script, ...]
    place: dict[int, int]
    network: _Network
    reaction: React

    def following(self, world: World) -> Iterator[tuple[str, bool, World | str]]:
        """(event in words, whether it needs no luck, the world after it or what is wrong with it)."""
        for i, unit in enumerate(world.units):
            name = self.scripts[i].address
            if unit.phase == Phase.TUNING:
                yield f"node {name} is tuned", True, self._after(world, i, Tuned(unit.exchange))
        for flight in world.flights:
            src, dst = self.place[flight.src], self.place[flight.dst]
            if not flight.left:
                left = frozenset(
                    f._replace(left=True) if f.src == flight.src and f.exchange == flight.exchange else f
                    for f in world.flights
                )
                what = f"the payload of node {flight.src} has left"
                yield what, True, self._after(world._replace(flights=left), src, Sent(flight.exchange))
            else:
                landed = world._replace(flights=world.flights - {flight})
                what = f"the payload of node {flight.src} has arrived at node {flight.dst}"
                yield what, True, self._after(landed, dst, Received(flight.src, flight.exchange))
        yield from self.network.following(self, world)

    def heard(self, world: World, send: Send) -> World | str:
        """The world after a message has arrived."""
        return self._after(world, self.place[send.to], Heard(send.message))

    def repeats(self, world: World, i: int) -> tuple[Send, ...]:
        """What a unit repeats when its timer runs out."""
        return self.reaction(self.scripts[i], world.units[i], Timer())[1]

    def _after(self, world: World, i: int, event: Event) -> World | str:
        try:
            return self.apply(world, i, self.reaction(self.scripts[i], world.units[i], event))
        except _BrokenError as broken:
            return str(broken)

    def apply(self, world: World, i: int, reaction: Reaction) -> World:
        """The world once a unit has reacted.

        Raises: _BrokenError: it does what it must not.
        """
        state, sends, actions = reaction
        units = (*world.units[:i], state, *world.units[i + 1 :])
        flights = world.flights
        for action in actions:
            problem = wrong_with(self.scripts, units, flights, i, action)
            if problem:
                raise _BrokenError(problem)
            if type(action) is Transmit:
                me = self.scripts[i]
                flights |= {
                    Flight(me.address, dst, action.exchange, False) for dst in me.exchanges[action.exchange].sends
                }
        messages = world.messages
        if sends:
            messages = self.network.send(messages, i, sends, self.place)
        return World(units, messages, flights)


def wrong_with(
    scripts: Sequence[Script], units: Sequence[State], flights: frozenset[Flight], i: int, action: object
) -> str:
    """Which invariant an action of unit i breaks, "" if none."""
    me = scripts[i].address
    if type(action) is Transmit:
        e = action.exchange
        for script, unit in zip(scripts, units, strict=True):
            standing = unit.exchange == e and unit.phase in (Phase.READY, Phase.SENDING)
            if script.address in scripts[i].exchanges[e].sends and not standing:
                return f"node {me} sends the payload of exchange {e} before node {script.address} is ready"
    if type(action) is Tune:
        for flight in flights:
            if flight.dst == me or (flight.src == me and not flight.left):
                return (
                    f"node {me} switches during the payload {flight.src} -> {flight.dst} of exchange {flight.exchange}"
                )
    return ""


def first_world(rules: _Rules) -> World:
    """All units before anything has happened.

    Raises: _BrokenError: one does at once what it must not.
    """
    reactions = [start(script) for script in rules.scripts]
    world = World(tuple(state for state, _, _ in reactions), rules.network.nothing(), frozenset())
    for i, reaction in enumerate(reactions):
        world = rules.apply(world, i, reaction)
    return world


# --- networks ---------------------------------------------------------------------------------------------------------


class _Network:
    """What a network may do with messages."""

    def __init__(self, num_units: int, depth: int) -> None:
        self.num_units, self.depth = num_units, depth

    def nothing(self) -> frozenset[Send] | tuple[tuple[Send, ...], ...]:
        return ((),) * self.num_units**2

    def send(
        self,
        messages: frozenset[Send] | tuple[tuple[Send, ...], ...],
        i: int,
        sends: Sequence[Send],
        place: dict[int, int],
    ) -> frozenset[Send] | tuple[tuple[Send, ...], ...]:
        assert isinstance(messages, tuple)
        queues = list(messages)
        for send in sends:
            at = i * self.num_units + place[send.to]
            if len(queues[at]) < self.depth or not self.loses:
                queues[at] = (*queues[at], send)
        return tuple(queues)

    loses = False

    def following(self, rules: _Rules, world: World) -> Iterator[tuple[str, bool, World | str]]:
        assert isinstance(world.messages, tuple)
        for at, queue in enumerate(world.messages):
            if not queue:
                continue
            rest = world._replace(messages=(*world.messages[:at], queue[1:], *world.messages[at + 1 :]))
            what = _words(queue[0])
            yield f"{what} arrives", True, rules.heard(rest, queue[0])
            if self.loses:
                yield f"{what} is lost", True, rest
                yield f"{what} arrives and is doubled", True, rules.heard(world, queue[0])
        if self.loses:
            for i, script in enumerate(rules.scripts):
                repeated = rules.repeats(world, i)
                after = world._replace(messages=self.send(world.messages, i, repeated, rules.place))
                if after != world:
                    yield f"node {script.address} repeats", True, after


class _Lossy(_Network):
    loses = True


class _Any(_Network):
    def nothing(self) -> frozenset[Send]:
        return frozenset()

    def send(
        self,
        messages: frozenset[Send] | tuple[tuple[Send, ...], ...],
        i: int,
        sends: Sequence[Send],
        place: dict[int, int],
    ) -> frozenset[Send]:
        assert isinstance(messages, frozenset)
        return messages.union(sends)

    def following(self, rules: _Rules, world: World) -> Iterator[tuple[str, bool, World | str]]:
        assert isinstance(world.messages, frozenset)
        sure = {send for i in range(self.num_units) for send in rules.repeats(world, i)}
        for send in world.messages | sure:
            after = rules.heard(world, send)
            if after != world:
                yield f"{_words(send)} arrives", send in sure, after


def _words(send: Send) -> str:
    kind = send.message.kind.name.lower()
    return f"{kind} of node {send.message.sender} ({send.message.number}) to node {send.to}"


_NETWORKS = {"perfect": _Network, "lossy": _Lossy, "any": _Any}
