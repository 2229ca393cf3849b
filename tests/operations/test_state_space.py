"""Every state of a few units: the protocol is safe, mutants are rejected, and how many bits a message needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.operations.printed_protocol import as_printed

import opticcl
from opticcl.errors import ParameterError
from opticcl.operations.oddl_control.protocol import (
    ControlPhase,
    Event,
    MessageArrived,
    MessageKind,
    PayloadReceived,
    PayloadSent,
    ProtocolMessage,
    Reaction,
    Send,
    State,
    Timer,
    Tune,
    Tuned,
    react,
)
from opticcl.operations.oddl_control.script import ControlExchange, Script, scripts
from opticcl.operations.oddl_control.state_space import explore


def units(nodes: int, algorithm: str = "halving_doubling", **given: object) -> tuple[Script, ...]:
    """Scripts of an all-reduce on a line of nodes."""
    plan = opticcl.compile(f"oddl:shape={nodes}", "all_reduce", 1000, algorithm=algorithm)
    return scripts(plan.circuits, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("nodes", "states"), [(1, 1), (2, 44), (4, 4736)])
def test_halving_doubling_is_safe_on_any_network(nodes: int, states: int) -> None:
    """All states of 1, 2 and 4 nodes: no invariant is violated and all can finish under loss, duplication and reordering."""
    found = explore(units(nodes), "any")
    assert found.ok, found
    assert found.states == states


@pytest.mark.parametrize(("nodes", "algorithm"), [(2, "ring"), (3, "ring"), (4, "recursive_doubling")])
def test_other_schedules_are_safe_too(nodes: int, algorithm: str) -> None:
    """Rings send to one node and receive from another."""
    assert explore(units(nodes, algorithm), "any").ok


def test_a_job_that_follows_another_is_safe() -> None:
    """The first exchange waits for the completion of what came before."""
    found = explore(units(2, follows=True), "any")
    assert found.ok
    assert found.states > 44


@pytest.mark.parametrize(
    ("numbering", "network", "safe"),
    [
        ("none", "perfect", True),
        ("none", "lossy", False),
        ("none", "any", False),
        ("parity", "perfect", True),
        ("parity", "lossy", True),
        ("parity", "any", False),
        ("step", "perfect", True),
        ("step", "lossy", True),
        ("step", "any", True),
    ],
)
def test_how_many_bits_a_message_needs(numbering: str, network: str, safe: bool) -> None:
    """13 bits serve a network that loses nothing, 14 one that keeps the order; only the number serves any network."""
    three_times = [replace(u, exchanges=u.exchanges * 3, numbering=numbering) for u in units(2)]  # type: ignore[arg-type]
    found = explore(three_times, network)  # type: ignore[arg-type]
    assert found.ok == safe
    if not safe:
        assert "before node" in found.problem


def test_thirteen_bits_carry_four_nodes_on_a_perfect_network() -> None:
    """The case of the paper: nothing is lost, and each partner's messages come in order."""
    found = explore(units(4, numbering="none"), "perfect")
    assert found.ok
    assert found.states == 5444


# --- broken protocols, each found out ---------------------------------------------------------------------------------


def sends_before_the_other_end_is_ready(script: Script, state: State, event: Event) -> Reaction:
    """As if all partners had said that they are ready."""
    after, sends, actions = react(script, state, event)
    if after.phase == ControlPhase.READY:
        for i in script.meets[after.exchange]:
            after, _, more = react(
                script, after, MessageArrived(ProtocolMessage(script.peers[i], MessageKind.READY, after.exchange))
            )
            actions += more
    return after, sends, actions


def reports_ready_before_it_is_tuned(script: Script, state: State, event: Event) -> Reaction:
    """transceiver_ready goes out when the laser begins to move."""
    after, sends, actions = react(script, state, event)
    for action in actions:
        if isinstance(action, Tune):
            early = ProtocolMessage(script.address, MessageKind.READY, action.exchange)
            sends += tuple(Send(script.peers[i], early) for i in script.meets[action.exchange])
    return after, sends, actions


def switches_when_the_next_partner_is_free(script: Script, state: State, event: Event) -> Reaction:
    """Does not wait for the end of its payload."""
    after, sends, actions = react(script, state, event)
    e = after.exchange
    following = script.meets[e + 1] if e + 1 < len(script.exchanges) else ()
    if after.phase == ControlPhase.SENDING and following and all(after.progress[i] > 2 * e for i in following):
        for forced in (PayloadSent(e), *(PayloadReceived(node, e) for node in script.exchanges[e].receives)):
            after, more_sends, more = react(script, after, forced)
            sends, actions = sends + more_sends, actions + more
    return after, sends, actions


def never_repeats(script: Script, state: State, event: Event) -> Reaction:
    """Each message once."""
    return (state, (), ()) if isinstance(event, Timer) else react(script, state, event)


def needs_every_message(script: Script, state: State, event: Event) -> Reaction:
    """Ready does not say that the partner was complete before."""
    if isinstance(event, MessageArrived) and event.message.kind == MessageKind.READY:
        progress = state.progress[script.place[event.message.sender]]
        if progress < 2 * event.message.number - 1:
            return state, (), ()
    return react(script, state, event)


def skips_the_completion(script: Script, state: State, event: Event) -> Reaction:
    """Moves on before the next partner has sent anything, and reports completion."""
    after, sends, actions = react(script, state, event)
    if after.phase == ControlPhase.COMPLETE and isinstance(event, (PayloadSent, PayloadReceived)):
        e = after.exchange + 1
        for i in script.meets[e]:
            after, more_sends, more = react(
                script, after, MessageArrived(ProtocolMessage(script.peers[i], MessageKind.READY, e))
            )
            sends, actions = sends + more_sends, actions + more
    return after, sends, actions


@pytest.mark.parametrize(
    ("nodes", "broken", "problem"),
    [
        (4, sends_before_the_other_end_is_ready, "before node"),
        (4, reports_ready_before_it_is_tuned, "before node"),
        (4, switches_when_the_next_partner_is_free, "retunes during the payload"),
        (2, never_repeats, "not reachable"),
        (2, needs_every_message, "not reachable"),
        (4, skips_the_completion, "before node"),
    ],
)
def test_broken_protocols_are_found_out(
    nodes: int, broken: Callable[[Script, State, Event], Reaction], problem: str
) -> None:
    """Each with its own problem and the events that lead there."""
    found = explore(units(nodes), "any", reaction=broken)
    assert not found.ok
    assert problem in found.problem
    assert found.trace


def test_four_flags_are_not_enough_for_four_nodes() -> None:
    """A fast partner of a later exchange sets dest_completion too early, even where nothing is lost or overtaken."""
    found = explore(units(4), "perfect", reaction=as_printed)
    assert not found.ok
    assert found.problem


# --- limits -----------------------------------------------------------------------------------------------------------


def test_patience_is_refused_and_limits_are_reported() -> None:
    """Giving up is no state to look for; a search that stops early is not complete."""
    with pytest.raises(ParameterError, match="patience=0"):
        explore(units(2, patience=3))
    found = explore(units(4), "any", limit=100)
    assert not found.complete
    assert "more than 100 states" in found.problem


def test_a_node_is_not_its_own_partner() -> None:
    """That would be no exchange."""
    with pytest.raises(ParameterError, match="its own partner"):
        Script(3, (ControlExchange((3,), (3,)),))


def test_events_that_are_not_due_change_nothing() -> None:
    """Unknown senders, old exchanges and unexpected completions."""
    script = units(4)[0]
    state = State(1, ControlPhase.TUNING, (-1,) * len(script.peers), False, 1)
    strange = (
        MessageArrived(ProtocolMessage(77, MessageKind.READY, 1)),
        MessageArrived(ProtocolMessage(script.peers[0], MessageKind.READY, 99)),
        Tuned(0),
        PayloadSent(1),
        PayloadReceived(script.peers[0], 1),
        PayloadReceived(77, 1),
    )
    assert all(react(script, state, event) == (state, (), ()) for event in strange)
