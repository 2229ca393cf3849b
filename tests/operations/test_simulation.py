"""Units in simulated time, beside equation 1."""

from __future__ import annotations

import numpy as np
import pytest
from tests.engines import closed_form

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import CircuitPlan
from opticcl.operations.oddl_control.protocol import MessageKind
from opticcl.operations.oddl_control.script import exchanges_of
from opticcl.operations.oddl_control.simulation import Channel, simulate

MB = 10**6


def plan_of(fabric: str, algorithm: str = "halving_doubling", collective: str = "all_reduce") -> CircuitPlan:
    """A compiled plan."""
    return opticcl.compile(fabric, collective, MB, algorithm=algorithm).circuits


def equation_1(plan: CircuitPlan) -> np.ndarray:
    """What the fabric charges for each exchange [s]."""
    assert plan.fabric.control_s is not None
    return np.array([plan.fabric.control_s(src, dst) for src, dst in exchanges_of(plan)])


@pytest.mark.parametrize(
    "fabric", ["oddl:shape=2", "oddl:shape=8", "oddl:shape=8x16", "oddl:shape=16x16,control_radix=4"]
)
def test_played_and_printed_control_times_agree(fabric):
    """Where nothing is lost each exchange waits for two messages, as equation 1 says; so does the whole time."""
    plan = plan_of(fabric)
    played = simulate(plan, MB)
    assert played.control_s == pytest.approx(equation_1(plan))
    assert played.mean_control_s == pytest.approx(equation_1(plan))
    preset = closed_form(plan, MB, assumptions("oddl", initial="cold"))
    assert played.total_s == pytest.approx(preset.total_s)


def test_1024_nodes():
    """Hops 5 5 5 5 3 3 3 1 1 1 and back, 10 us each (5 us a switch, two exchanges): 640 us in all. Source: notes, O19."""
    played = simulate(plan_of("oddl:shape=32x32"), 100 * MB)
    hops = [5, 5, 5, 5, 3, 3, 3, 1, 1, 1]
    assert played.control_s * 1e5 == pytest.approx(hops + hops[::-1])
    assert (played.messages, played.repeated, played.lost) == (2 * 20 * 1024, 0, 0)


def test_a_job_from_rest_has_one_exchange_less():
    """There is nothing to complete before the first step, so equation 1 is one exchange too long there."""
    plan = plan_of("oddl:shape=8")
    first, *others = simulate(plan, MB, follows=False).control_s
    due, *rest = equation_1(plan)
    assert first == pytest.approx(due / 2)
    assert others == pytest.approx(rest)


def test_a_ring_waits_for_its_slowest_neighbours():
    """With 16 nodes two of the messages cross three switches; the ring soon goes at their pace, never above equation 1."""
    plan = plan_of("oddl:shape=16", "ring")
    played = simulate(plan, MB)
    assert (played.control_s <= equation_1(plan) + 1e-12).all()
    assert (played.mean_control_s <= played.control_s + 1e-15).all()
    assert played.mean_control_s[0] < played.control_s[0]


def test_several_rounds_of_a_step_are_several_exchanges():
    """A node serves one partner of a dimension at a time."""
    plan = plan_of("oddl:shape=4,wavelengths=3", "by_dimension", "all_to_all")
    played = simulate(plan, MB)
    assert len(played.step) == sum(len(plan.rounds(i)) for i in range(plan.schedule.num_steps)) == 3
    assert played.step.tolist() == sorted(played.step.tolist())


def test_adding_up_hides_control_and_never_shortens_itself():
    """Beside one another they take as long as the longer; one after the other their sum."""
    plan = plan_of("oddl:shape=8")
    free = simulate(plan, MB).total_s
    adding = 3 * MB * (1 / 2 + 1 / 4 + 1 / 8)  # bytes moved by the three halving steps
    slow = 1e11
    apart = simulate(plan, MB, memory_bytes_per_s=slow, overlap=0.0).total_s
    half = simulate(plan, MB, memory_bytes_per_s=slow, overlap=0.5).total_s
    beside = simulate(plan, MB, memory_bytes_per_s=slow, overlap=1.0).total_s
    assert apart == pytest.approx(free + adding / slow)
    assert half == pytest.approx(free + 0.5 * adding / slow)  # 15 us an exchange hide the other half of 15 us at most
    assert beside == pytest.approx(free)
    whole = simulate(plan, MB, memory_bytes_per_s=slow / 100, overlap=1.0).total_s
    assert whole == pytest.approx(free + 100 * adding / slow - 3 * 15e-6)


def test_losses_cost_time_and_change_nothing_else():
    """20 % lost, some doubled, all late: every node still finishes, later; the same seed gives the same run."""
    plan = plan_of("oddl:shape=4x4")
    channel = Channel(loss=0.2, duplicate=0.2, jitter=20e-6, seed=5)
    played = simulate(plan, MB, channel)
    assert played.total_s > simulate(plan, MB).total_s
    assert played.repeated > 0
    assert 0.1 < played.lost / played.messages < 0.3
    again, other = (simulate(plan, MB, c).total_s for c in (channel, Channel(loss=0.2, jitter=20e-6, seed=6)))
    assert again == played.total_s != other


def test_messages_and_activities_of_watched_nodes_are_logged():
    """Two messages of each kind between two nodes, in the order of the protocol."""
    plan = plan_of("oddl:shape=2")
    played = simulate(plan, MB, watch=frozenset((0, 1)))
    first = [t for t in played.message_log if t.exchange == 0]
    assert sorted((t.src, t.kind) for t in first) == [
        (n, k) for n in (0, 1) for k in (MessageKind.READY, MessageKind.COMPLETION)
    ]
    assert all(t.arrived_s == pytest.approx(t.sent_s + 5e-6) for t in first)
    bars = [(b.activity, b.exchange) for b in played.busy_intervals if b.node == 0]
    assert bars == [("tune", 0), ("payload", 0), ("tune", 1), ("payload", 1)]


@pytest.mark.parametrize("nodes", [1, 3])
def test_odd_jobs(nodes):
    """One node sends no message; three have a ring."""
    played = simulate(plan_of(f"oddl:shape={nodes}", "ring"), MB)
    assert (played.messages == 0) == (nodes == 1)
    assert len(played.control_s) == 2 * (nodes - 1)


def test_bad_input_is_refused():
    """Another fabric, shares that are none, negative times."""
    plan = plan_of("oddl:shape=2")
    with pytest.raises(UnsupportedError, match="ideal has no control units"):
        simulate(plan_of("ideal:nodes=4", "ring"), MB)
    with pytest.raises(ParameterError, match=r"overlap=1.5 is not a fraction"):
        simulate(plan, MB, overlap=1.5)
    with pytest.raises(ParameterError, match="memory=0 B/s is not positive"):
        simulate(plan, MB, memory_bytes_per_s=0)
    for wrong, text in (
        ({"loss": 1.0}, "loss=1 is not a fraction from 0 to 0.99"),
        ({"duplicate": -0.1}, "duplicate=-0.1"),
        ({"jitter": -1.0}, "must not be negative"),
        ({"repeat": 0.0}, "must be positive"),
        ({"seed": -1}, "seed=-1"),
    ):
        with pytest.raises(ParameterError, match=text):
            Channel(**wrong)
