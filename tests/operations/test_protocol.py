"""Units on a hostile network, driven at random: 8 and 16 nodes, rings, jobs on part of a machine."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.profiles import examples

import opticcl
from opticcl.operations.oddl_control.protocol import (
    ControlPhase,
    Finish,
    GiveUp,
    MessageArrived,
    PayloadReceived,
    PayloadSent,
    Reaction,
    Send,
    Timer,
    Transmit,
    Tuned,
    flags,
    react,
    start,
)
from opticcl.operations.oddl_control.script import Script, scripts
from opticcl.operations.oddl_control.state_space import Flight, violated_invariant

PLANS = (
    ("oddl:shape=8", "all_reduce", "halving_doubling", None),
    ("oddl:shape=4x4", "all_reduce", "halving_doubling", None),
    ("oddl:shape=5", "all_reduce", "ring", None),
    ("oddl:shape=2x4", "all_gather", "recursive_doubling", None),
    ("oddl:shape=4,wavelengths=3", "all_to_all", "by_dimension", None),
    ("oddl:shape=8x8", "all_reduce", "halving_doubling", (8, 9, 10, 11, 24, 25, 26, 27)),
    ("oddl:shape=8", "broadcast", "halving_doubling", None),
)


@cache
def units_of(case: int) -> tuple[Script, ...]:
    """Scripts of one of the plans."""
    fabric, collective, algorithm, nodes = PLANS[case]
    return scripts(opticcl.compile(fabric, collective, 1000, algorithm=algorithm, nodes=nodes).circuits)


class Hostile(RuleBasedStateMachine):
    """Any message that was ever sent may arrive now; nobody need ever be heard, until the network turns fair."""

    @initialize(case=st.integers(0, len(PLANS) - 1))
    def begin(self, case):
        """Start the units of one plan."""
        self.scripts = units_of(case)
        self.place = {script.address: i for i, script in enumerate(self.scripts)}
        self.messages: list[Send] = []
        self.flights: frozenset[Flight] = frozenset()
        self.states = [start(script)[0] for script in self.scripts]
        for i, script in enumerate(self.scripts):
            self.follow(i, start(script))

    def follow(self, i: int, reaction: Reaction) -> None:
        """Do what unit i wants, and look whether it may."""
        self.states[i], sends, actions = reaction
        self.messages += sends
        for action in actions:
            assert not violated_invariant(self.scripts, self.states, self.flights, i, action)
            assert not isinstance(action, GiveUp)
            if isinstance(action, Transmit):
                me = self.scripts[i]
                to = me.exchanges[action.exchange].sends
                self.flights |= {Flight(me.address, dst, action.exchange, False) for dst in to}

    def happens(self, i: int, event: object) -> None:
        """Let unit i react."""
        self.follow(i, react(self.scripts[i], self.states[i], event))  # type: ignore[arg-type]

    def due(self):
        """Events of the hardware that may happen now."""
        for i, state in enumerate(self.states):
            if state.phase == ControlPhase.TUNING:
                yield i, Tuned(state.exchange), None
        for flight in sorted(self.flights):
            yield (self.place[flight.dst if flight.left else flight.src], None, flight)

    def let(self, i: int, event: object, flight: Flight | None) -> None:
        """One of them happens."""
        if flight is None:
            self.happens(i, event)
        elif flight.left:
            self.flights -= {flight}
            self.happens(i, PayloadReceived(flight.src, flight.exchange))
        else:
            same = {f for f in self.flights if (f.src, f.exchange) == (flight.src, flight.exchange)}
            self.flights = self.flights - same | {f._replace(left=True) for f in same}
            self.happens(i, PayloadSent(flight.exchange))

    @rule(pick=st.integers(0, 10**6))
    def hardware(self, pick):
        """A transceiver is tuned, or a payload moves on."""
        if due := list(self.due()):
            self.let(*due[pick % len(due)])

    @rule(pick=st.integers(0, 10**6))
    def some_message_arrives(self, pick):
        """However old it is, and as often as it likes."""
        if self.messages:
            send = self.messages[pick % len(self.messages)]
            self.happens(self.place[send.to], MessageArrived(send.message))

    @rule()
    def the_newest_message_arrives(self):
        """So that runs get somewhere."""
        if self.messages:
            self.happens(self.place[self.messages[-1].to], MessageArrived(self.messages[-1].message))

    @rule(pick=st.integers(0, 10**6))
    def a_timer_runs_out(self, pick):
        """It changes nothing in the unit."""
        i = pick % len(self.states)
        before = self.states[i]
        self.happens(i, Timer())
        assert self.states[i] == before

    def teardown(self):
        """Lose everything that is under way; from there a fair network lets all finish."""
        if not hasattr(self, "scripts"):
            return
        self.messages.clear()
        for _ in range(4 * max(len(script.exchanges) for script in self.scripts) * len(self.scripts)):
            while due := list(self.due()):
                self.let(*due[0])
            if all(state.phase == ControlPhase.FINISHED for state in self.states):
                break
            for i in range(len(self.states)):
                self.happens(i, Timer())
            told, self.messages = self.messages, []
            for send in told:
                self.happens(self.place[send.to], MessageArrived(send.message))
        assert all(state.phase == ControlPhase.FINISHED for state in self.states)
        assert not self.flights


Hostile.TestCase.settings = examples(25, stateful_step_count=80)
test_units_hold_on_a_hostile_network = Hostile.TestCase


def test_flags_are_those_of_the_paper():
    """self_conf and dest_conf let the payload go; self_completion and dest_completion the next exchange begin."""
    first, second = units_of(0)[0], {s.address: s for s in units_of(0)}[4]
    state = start(first)[0]
    assert flags(first, state) == dict.fromkeys(("self_conf", "dest_conf", "self_completion", "dest_completion"), False)
    state, (ready,), _ = react(first, state, Tuned(0))
    assert flags(first, state)["self_conf"]
    assert ready.to == second.address
    _, (answer,), _ = react(second, start(second)[0], Tuned(0))
    state, _, actions = react(first, state, MessageArrived(answer.message))
    assert flags(first, state)["dest_conf"]
    assert actions == (Transmit(0),)
    state, _, _ = react(first, state, PayloadSent(0))
    state, (done,), actions = react(first, state, PayloadReceived(4, 0))
    assert flags(first, state) == {
        "self_conf": False,
        "dest_conf": True,
        "self_completion": True,
        "dest_completion": False,
    }
    assert done.to == 2  # the partner of the next exchange
    assert actions == ()


def test_patience_ends_and_names_who_did_not_answer():
    """Three ticks without news and a unit gives up; news in between start the count again."""
    (first,) = (s for s in scripts_with_patience(3) if s.address == 0)
    state = react(first, start(first)[0], Tuned(0))[0]
    for _ in range(3):
        state, sends, actions = react(first, state, Timer())
        assert sends
        assert not actions
    state, sends, actions = react(first, state, Timer())
    assert actions == (GiveUp((4,)),)
    assert state.phase == ControlPhase.FAILED
    assert react(first, state, Timer()) == (state, (), ())


def scripts_with_patience(ticks: int) -> tuple[Script, ...]:
    """Halving-doubling on 8 nodes."""
    plan = opticcl.compile("oddl:shape=8", "all_reduce", 1000, algorithm="halving_doubling")
    return scripts(plan.circuits, patience=ticks)


@pytest.mark.parametrize("nodes", [1, 2])
def test_smallest_jobs(nodes):
    """One node has nothing to do and is finished at once; two begin by tuning."""
    (script, *_) = scripts(opticcl.compile(f"oddl:shape={nodes}", "all_reduce", 10, algorithm="ring").circuits)
    state, sends, actions = start(script)
    assert (state.phase, actions) == (
        (ControlPhase.FINISHED, (Finish(),)) if nodes == 1 else (ControlPhase.TUNING, actions)
    )
    assert not sends
