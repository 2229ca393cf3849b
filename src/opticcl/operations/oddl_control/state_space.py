"""Exhaustive search of the states that a few control units and an adversarial network can reach.

Networks:

    perfect   each message arrives once; messages of a pair of nodes stay in order
    lossy     in order, but any message may be lost or duplicated; at most `depth` of a pair are in flight
    any       loss, duplication, delay and reordering without bound: a message that was ever sent may arrive at any time,
              any number of times, or never

In every state the search checks that no payload is sent before both ends are ready and that no node retunes during a payload;
at the end, that the final state is reachable from every state. On the network `any` only messages that some unit repeats may
be used to reach it: all others may be lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from opticcl.errors import ParameterError
from opticcl.operations.oddl_control.protocol import (
    ControlPhase,
    Event,
    MessageArrived,
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
from opticcl.operations.oddl_control.script import Script

__all__ = ["Exploration", "GlobalState", "Network", "explore", "initial_state", "violated_invariant"]

Network = Literal["perfect", "lossy", "any"]
React = Callable[[Script, State, Event], Reaction]
MOST_REACTIONS = 1 << 16  # remembered in a search


class Flight(NamedTuple):
    """A payload in flight."""

    src: int
    dst: int
    exchange: int
    left: bool  # whether the last bit has left the sender


class GlobalState(NamedTuple):
    """State of all units, messages and payloads.

    Args:
        units: state of each unit.
        messages: on the network any, all (to, message) pairs ever sent; on the others one queue of messages in flight per
            pair of nodes, at index sender * units + receiver.
        flights: payloads in flight.
    """

    units: tuple[State, ...]
    messages: frozenset[Send] | tuple[tuple[Send, ...], ...]
    flights: frozenset[Flight]


class Exploration(NamedTuple):
    """Result of a search.

    Args:
        states: distinct states reached [count].
        transitions: between them [count].
        complete: whether all reachable states were visited.
        problem: the first violated invariant, "" if there is none.
        trace: events that lead to it.
    """

    states: int
    transitions: int
    complete: bool
    problem: str = ""
    trace: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all states were visited and no invariant is violated."""
        return self.complete and not self.problem

    def record(self) -> dict[str, Any]:
        """The result as plain values, without the trace."""
        return {
            "states": self.states,
            "transitions": self.transitions,
            "complete": self.complete,
            "problem": self.problem,
        }


class _InvariantError(Exception):
    """An invariant is violated."""


def explore(
    scripts: Sequence[Script],
    network: Network = "any",
    *,
    depth: int = 2,
    limit: int = 2_000_000,
    reaction: React = react,
) -> Exploration:
    """Visit every reachable state.

    Args:
        scripts: of all units; their patience must be 0, since giving up is not searched for.
        network: perfect, lossy or any.
        depth: most messages of a pair of nodes in flight (perfect and lossy) [count].
        limit: most states visited [count].
        reaction: the protocol, or a mutant of it that the search must reject.
    Raises: ParameterError: a script with patience.
    """
    if any(script.patience for script in scripts):
        raise ParameterError("explore: a unit with patience gives up; use patience=0")
    net = _NETWORKS[network](len(scripts), depth)
    place = {script.address: i for i, script in enumerate(scripts)}

    @lru_cache(maxsize=MOST_REACTIONS, typed=True)  # typed: events of two kinds may be equal as tuples
    def reaction_of(i: int, unit: State, event: Event) -> Reaction:
        """Of unit i, the same whatever the others do."""
        return reaction(scripts[i], unit, event)

    rules = _Rules(tuple(scripts), place, net, reaction_of)
    try:
        first = initial_state(rules)
    except _InvariantError as broken:
        return Exploration(0, 0, False, str(broken))
    came_from: dict[GlobalState, tuple[GlobalState, str] | None] = {first: None}
    backwards: dict[GlobalState, list[GlobalState]] = {}
    finished: list[GlobalState] = []
    queue, transitions = deque([first]), 0
    while queue:
        world = queue.popleft()
        if all(unit.phase == ControlPhase.FINISHED for unit in world.units):
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
    live = _predecessors(finished, backwards)
    stuck = next((world for world in came_from if world not in live), None)
    if stuck is not None:
        return Exploration(
            len(came_from), transitions, True, "the final state is not reachable", _trace(came_from, stuck, scripts)
        )
    return Exploration(len(came_from), transitions, True)


def _predecessors(targets: Sequence[GlobalState], backwards: dict[GlobalState, list[GlobalState]]) -> set[GlobalState]:
    before_them, queue = set(targets), list(targets)
    while queue:
        for before in backwards.get(queue.pop(), ()):
            if before not in before_them:
                before_them.add(before)
                queue.append(before)
    return before_them


def _trace(
    came_from: dict[GlobalState, tuple[GlobalState, str] | None], world: GlobalState, scripts: Sequence[Script]
) -> tuple[str, ...]:
    """Events from the initial state to a state, and the phases of the units there."""
    events = []
    at: GlobalState | None = world
    while at is not None and (step := came_from[at]) is not None:
        at, event = step
        events.append(event)
    phases = ", ".join(
        f"{script.address} {unit.phase.name.lower()} in {unit.exchange}"
        for script, unit in zip(scripts, world.units, strict=True)
    )
    return (*reversed(events), f"state: {phases}")


# --- transitions ------------------------------------------------------------------------------------------------------


class _Rules(NamedTuple):
    scripts: tuple[Script, ...]
    place: dict[int, int]
    network: _Network
    reaction: Callable[[int, State, Event], Reaction]

    def following(self, world: GlobalState) -> Iterator[tuple[str, bool, GlobalState | str]]:
        """(event in words, whether a fair network guarantees it, the next state or the violated invariant)."""
        for i, unit in enumerate(world.units):
            name = self.scripts[i].address
            if unit.phase == ControlPhase.TUNING:
                yield f"node {name} is tuned", True, self._after(world, i, Tuned(unit.exchange))
        for flight in world.flights:
            src, dst = self.place[flight.src], self.place[flight.dst]
            if not flight.left:
                left = frozenset(
                    f._replace(left=True) if f.src == flight.src and f.exchange == flight.exchange else f
                    for f in world.flights
                )
                what = f"the payload of node {flight.src} has left"
                yield what, True, self._after(world._replace(flights=left), src, PayloadSent(flight.exchange))
            else:
                landed = world._replace(flights=world.flights - {flight})
                what = f"the payload of node {flight.src} has arrived at node {flight.dst}"
                yield what, True, self._after(landed, dst, PayloadReceived(flight.src, flight.exchange))
        yield from self.network.following(self, world)

    def delivered(self, world: GlobalState, send: Send) -> GlobalState | str:
        """The state after a message has arrived."""
        return self._after(world, self.place[send.to], MessageArrived(send.message))

    def repeats(self, world: GlobalState, i: int) -> tuple[Send, ...]:
        """Messages that a unit repeats when its timer expires."""
        return self.reaction(i, world.units[i], Timer())[1]

    def _after(self, world: GlobalState, i: int, event: Event) -> GlobalState | str:
        try:
            return self.apply(world, i, self.reaction(i, world.units[i], event))
        except _InvariantError as broken:
            return str(broken)

    def apply(self, world: GlobalState, i: int, reaction: Reaction) -> GlobalState:
        """The state after a reaction of a unit.

        Raises: _InvariantError: an action violates an invariant.
        """
        state, sends, actions = reaction
        units = (*world.units[:i], state, *world.units[i + 1 :])
        flights = world.flights
        for action in actions:
            problem = violated_invariant(self.scripts, units, flights, i, action)
            if problem:
                raise _InvariantError(problem)
            if type(action) is Transmit:
                me = self.scripts[i]
                flights |= {
                    Flight(me.address, dst, action.exchange, False) for dst in me.exchanges[action.exchange].sends
                }
        messages = world.messages
        if sends:
            messages = self.network.send(messages, i, sends, self.place)
        return GlobalState(units, messages, flights)


def violated_invariant(
    scripts: Sequence[Script], units: Sequence[State], flights: frozenset[Flight], i: int, action: object
) -> str:
    """The invariant that an action of unit i violates, "" if none.

    Args:
        scripts, units: of all units, with the state of each after the reaction.
        flights: payloads in flight.
        i: index of the acting unit.
        action: of that unit.
    """
    me = scripts[i].address
    if type(action) is Transmit:
        e = action.exchange
        for script, unit in zip(scripts, units, strict=True):
            ready = unit.exchange == e and unit.phase in (ControlPhase.READY, ControlPhase.SENDING)
            if script.address in scripts[i].exchanges[e].sends and not ready:
                return f"node {me} sends the payload of exchange {e} before node {script.address} is ready"
    if type(action) is Tune:
        for flight in flights:
            if flight.dst == me or (flight.src == me and not flight.left):
                return (
                    f"node {me} retunes during the payload {flight.src} -> {flight.dst} of exchange {flight.exchange}"
                )
    return ""


def initial_state(rules: _Rules) -> GlobalState:
    """The state before the first event.

    Raises: _InvariantError: the first action of a unit violates an invariant.
    """
    reactions = [start(script) for script in rules.scripts]
    world = GlobalState(tuple(state for state, _, _ in reactions), rules.network.empty(), frozenset())
    for i, reaction in enumerate(reactions):
        world = rules.apply(world, i, reaction)
    return world


# --- networks ---------------------------------------------------------------------------------------------------------


class _Network:
    """Transitions of a network: delivery, loss and duplication of messages."""

    def __init__(self, num_units: int, depth: int) -> None:
        self.num_units, self.depth = num_units, depth

    def empty(self) -> frozenset[Send] | tuple[tuple[Send, ...], ...]:
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

    def following(self, rules: _Rules, world: GlobalState) -> Iterator[tuple[str, bool, GlobalState | str]]:
        assert isinstance(world.messages, tuple)
        for at, queue in enumerate(world.messages):
            if not queue:
                continue
            rest = world._replace(messages=(*world.messages[:at], queue[1:], *world.messages[at + 1 :]))
            what = _words(queue[0])
            yield f"{what} arrives", True, rules.delivered(rest, queue[0])
            if self.loses:
                yield f"{what} is lost", True, rest
                yield f"{what} arrives and is duplicated", True, rules.delivered(world, queue[0])
        if self.loses:
            for i, script in enumerate(rules.scripts):
                repeated = rules.repeats(world, i)
                after = world._replace(messages=self.send(world.messages, i, repeated, rules.place))
                if after != world:
                    yield f"node {script.address} repeats", True, after


class _Lossy(_Network):
    loses = True


class _Any(_Network):
    def empty(self) -> frozenset[Send]:
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

    def following(self, rules: _Rules, world: GlobalState) -> Iterator[tuple[str, bool, GlobalState | str]]:
        assert isinstance(world.messages, frozenset)
        repeated = {send for i in range(self.num_units) for send in rules.repeats(world, i)}
        for send in world.messages | repeated:
            after = rules.delivered(world, send)
            if after != world:
                yield f"{_words(send)} arrives", send in repeated, after


def _words(send: Send) -> str:
    kind = send.message.kind.name.lower()
    return f"{kind} of node {send.message.sender} ({send.message.number}) to node {send.to}"


_NETWORKS = {"perfect": _Network, "lossy": _Lossy, "any": _Any}
