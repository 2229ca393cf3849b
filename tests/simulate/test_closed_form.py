"""Times against formulas written down by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.altered import altered
from tests.collectives import nothing_required
from tests.engines import closed_form
from tests.profiles import examples
from tests.strategies import fabrics

import opticcl
from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.errors import BoundError, ParameterError, UnknownNameError
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Circuits, Op, Schedule, Transfers
from opticcl.simulate import profile
from opticcl.simulate.bounds import LowerBound
from opticcl.simulate.closed_form import engine as closed_form_module


def test_ring_on_an_ideal_switch():
    """2(N-1)(a + n / (N B)), and 3 n / N memory bytes for each of the N-1 additions."""
    n, size, rate, latency = 7, 10**9, 400e9, 1e-6
    plan = opticcl.compile(f"ideal:nodes={n}", "all_reduce", size, algorithm="ring")
    timeline = plan.simulate(memory_bytes_per_s="1 TB/s", assumptions="published")
    parts = timeline.totals()
    assert parts["latency_s"] == pytest.approx(2 * (n - 1) * latency)
    assert parts["transfer_s"] == pytest.approx(2 * (n - 1) * size / n * 8 / rate)
    assert parts["compute_s"] == pytest.approx(3 * (n - 1) * size / n / 1e12)
    assert parts["reconfiguration_s"] == parts["control_s"] == 0
    assert timeline.total_s == pytest.approx(sum(parts.values()))
    assert (timeline.num_steps, timeline.num_rounds) == (12, 12)


@pytest.mark.deep
def test_ramp_at_full_scale():
    """Head to tail 645 us without slots and compute 685 us for the reduce-scatter of 1 GB (RAMP section 7.4)."""
    plan = opticcl.compile("ramp:slot=0s", "all_reduce", "1 GB", algorithm="ramp")
    timeline = plan.simulate(assumptions="published")
    assert timeline.totals()["transfer_s"] == pytest.approx(2 * 645e-6, rel=2e-3)
    assert timeline.totals()["compute_s"] == pytest.approx(685e-6, rel=1e-3)
    assert timeline.totals()["latency_s"] == pytest.approx(8 * 1.4e-6)


def test_a_ring_of_65536_is_counted_not_played():
    """131,070 steps, two classes."""
    timeline = opticcl.compile("ideal:nodes=65536", "all_reduce", "1GB", algorithm="ring").simulate(
        compute="none", assumptions="published"
    )
    assert timeline.num_steps == 131_070
    assert len(timeline.steps) == 2
    assert timeline.total_s == pytest.approx(131_070 * (1e-6 + 1e9 / 65536 * 8 / 400e9))


def test_fused_and_chained_sums():
    """x-to-1 sums move (x + 1) bytes a byte, one after the other 3 (x - 1): a speed-up of 3(x-1)/(x+1) (RAMP section 8)."""
    plan = opticcl.compile("ramp:groups=8,racks=1,wavelengths=8", "all_reduce", "8MB", algorithm="ramp")
    fused, chain = (plan.simulate(compute=c, assumptions="published").compute_s[0] for c in ("fused", "chain"))
    assert chain / fused == pytest.approx(3 * 7 / 9)


@pytest.mark.parametrize(
    ("charge", "initial", "charges"),
    [("on_change", "cold", 1), ("on_change", "warm", 0), ("every_step", "cold", 28), ("every_step", "warm", 28)],
)
def test_a_ring_sets_its_circuits_once(charge, initial, charges):
    """A ring never changes its neighbours; most papers charge it all the same."""
    plan = opticcl.compile("terarack:nodes=15", "all_reduce", "1MB", algorithm="ring")
    time = plan.simulate(reconfiguration_charge=charge, initial=initial, assumptions="published").totals()[
        "reconfiguration_s"
    ]
    assert time == pytest.approx(charges * 25e-6)


def test_a_turning_point_needs_no_change():
    """The last exchange of a reduce-scatter and the first of the all-gather use the same circuits."""
    plan = opticcl.compile("lightpath:shape=4x4", "all_reduce", "1MB", algorithm="lumorph")
    steps = plan.schedule.num_steps
    every = plan.simulate(reconfiguration_charge="every_step", assumptions="published").totals()["reconfiguration_s"]
    change = plan.simulate(reconfiguration_charge="on_change", assumptions="published").totals()["reconfiguration_s"]
    assert every == pytest.approx(steps * 3.7e-6)
    assert change == pytest.approx((steps - 1) * 3.7e-6)


def test_slots_are_whole():
    """One byte takes a slot of 20 ns; 950 bytes a transceiver take one; 951 take two. Half goes to the peer, on two of them."""
    plan = opticcl.compile("ramp:groups=2,racks=1,wavelengths=2", "all_reduce", 4, algorithm="ramp")
    times = profile(plan.circuits, assumptions("published"))
    assert times.timeline(1).transfer_s[0] == pytest.approx(20e-9)
    assert times.timeline(4 * 950).transfer_s[0] == pytest.approx(20e-9)
    assert times.timeline(4 * 951).transfer_s[0] == pytest.approx(40e-9)


@examples(25)
@given(fabrics(), st.integers(0, 2**40), st.integers(0, 2**40))
def test_more_bytes_never_take_less_time(fabric, one, other):
    """Monotone in the size, above the bound, and nothing at all for one node."""
    plan = opticcl.compile(fabric, "all_reduce", 0)
    times = profile(plan.circuits, assumptions("published"))
    small, large = (times.timeline(size) for size in sorted((one, other)))
    assert small.total_s <= large.total_s * (1 + 1e-12)
    for timeline in (small, large):
        assert timeline.total_s >= timeline.lower_bound_s * (1 - 1e-9)
        assert (timeline.total_s > 0) == (fabric.num_nodes > 1)


def test_a_time_below_the_bound_is_an_error():
    """A fabric that claims a node rate below what its circuits carry is caught."""
    import dataclasses

    plan = opticcl.compile("ideal:nodes=8", "all_reduce", "1GB", algorithm="ring").circuits
    liar = altered(plan.fabric, rate_bits_per_s=1e9)
    with pytest.raises(BoundError, match="below the lower bound"):
        closed_form(dataclasses.replace(plan, fabric=liar), 10**9, assumptions("published"))


def test_unknown_words_are_refused():
    """Presets, fields and values."""
    with pytest.raises(UnknownNameError, match="did you mean 'lumorph'"):
        assumptions("lumorf")
    with pytest.raises(ParameterError, match="did you mean 'compute'"):
        assumptions("published", comput="none")
    with pytest.raises(ParameterError, match="fused, chain, none"):
        assumptions("published", compute="all")


def test_a_timeline_prints_itself():
    """The table that explains the number ends with its total."""
    text = str(
        opticcl.compile("ideal:nodes=4", "all_reduce", "1MB", algorithm="ring").simulate(assumptions="published")
    )
    assert text.splitlines()[0].split() == [
        "steps",
        "rounds",
        "reconf.",
        "latency",
        "transfer",
        "compute",
        "control",
        "total",
    ]
    assert text.splitlines()[-1].startswith("all")
    assert np.all([len(line) == len(text.splitlines()[0]) for line in text.splitlines()])


def test_circuits_on_another_path_do_not_stand():
    """Two steps between the same tiles, first east and then south, then south and then east: both are charged."""
    where = fabric("lightpath:shape=2x2,lasers=1")
    schedule = Schedule("by hand", nothing_required(4, 2), 2, lambda i: Transfers.of([0], [3], [i], 1, Op.COPY))
    east, south = (0, 6), (2, 8)  # edges 4 tile + direction

    def rounds(*paths):
        hops = [np.array(path, np.int32) for path in paths]
        return lambda i: (Circuits.of([0], [0], [3], 0, 0, 1, (hops[i], np.array([0, 2]))),)

    same, other = (CircuitPlan(where, schedule, rounds(east, second)) for second in (east, south))
    times = [closed_form(plan, 1000, assumptions("published")).totals()["reconfiguration_s"] for plan in (same, other)]
    assert times == [where.reconfiguration_s, 2 * where.reconfiguration_s]


@pytest.mark.parametrize(("above", "due"), [(1e-13, 1.0), (0.0, 1.0), (-1e-13, 1 - 1e-13), (-0.5, 0.5)])
def test_a_bound_is_never_above_its_time(monkeypatch, above, due):
    """By rounding it may be, and is as long then; a shorter one stays as it is."""
    times = profile(opticcl.compile("ideal:nodes=4", "all_reduce", 1000).circuits, assumptions("common"))
    total_s = times.timeline(1000).total_s
    bound = LowerBound(total_s * (1 + above), "by hand")
    monkeypatch.setattr(closed_form_module, "lower_bound", lambda *given, **more: bound)
    found = times.timeline(1000)
    assert (found.total_s, found.bound_by) == (total_s, "by hand")
    assert found.lower_bound_s == (total_s * (1 + above) if above < 0 else total_s)
    assert found.lower_bound_s / total_s == pytest.approx(due, rel=1e-14)


@pytest.mark.parametrize(("rounds", "messages"), [(None, 2), ([0, 1], 1)])
def test_a_step_ends_a_latency_and_its_messages_behind_its_last_bit(rounds, messages):
    """On a RAMP: of both messages of rank 0 in one round, or of the one of the last round."""
    where = fabric("ramp:groups=2,racks=1,wavelengths=2")
    step = Transfers.of([0, 0], [1, 2], 0, 1, Op.COPY)
    plan = lower(where, Schedule("by hand", nothing_required(4, 1), 1, lambda i: step))
    (both,) = plan.rounds(0)
    if rounds is not None:
        apart = tuple(both.take(np.flatnonzero(both.transfer == row)) for row in rounds)
        plan = CircuitPlan(where, plan.schedule, lambda i: apart)
    for in_line in ("in_line", "apart"):
        (cost,) = profile(plan, assumptions("common", message_gap=3e-9, rounds=in_line)).costs
        assert cost.last_latency_s == pytest.approx(820e-9 + messages * 3e-9, rel=1e-12)
