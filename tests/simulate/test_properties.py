"""Properties of the engines on every fabric at odd sizes: what waits for what, bytes, capacity, bounds, better hardware."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import fabrics

import opticcl
from opticcl.circuits import lower
from opticcl.collective import collective
from opticcl.errors import UnsupportedError
from opticcl.fabric import fabric
from opticcl.ir import CircuitPlan, Op, Schedule, Transfers
from opticcl.simulate import assumptions, closed_form, link_bytes
from opticcl.simulate.flow import flow, play_flow
from opticcl.simulate.links import Links
from opticcl.simulate.packet import play_packet

LIGHT = assumptions(compute="none", control="none")
COLLECTIVES = ("all_reduce", "all_gather", "all_to_all", "broadcast", "reduce", "scatter")
ALGORITHMS = ("auto", "ring", "tree", "halving_doubling", "bruck", "mesh")


@st.composite
def plans(draw, packets):
    """A plan on a fabric of any size, one of packets or one of light."""
    where = draw(fabrics(13).filter(lambda f: f.is_packet_switched == packets))
    name = draw(st.sampled_from(COLLECTIVES))
    try:
        return opticcl.compile(where, name, 0, algorithm=draw(st.sampled_from(ALGORITHMS))).circuits
    except UnsupportedError:
        return opticcl.compile(where, name, 0).circuits


def needed(schedule):
    """What each transfer waits for: (step, src, dst) -> those that brought what it sends, chunk by chunk.

    A chunk is the newest copy that came and all that was added to it since.
    """
    brought, waits = {}, {}
    for i in range(schedule.num_steps):
        step = schedule.step(i)
        rows = list(zip(*(c.tolist() for c in (step.src, step.dst, step.chunk_lo, step.chunk_n, step.op)), strict=True))
        for src, dst, lo, n, _ in rows:
            found = waits.setdefault((i, src, dst), set())
            found.update(*(brought.get((src, chunk), ()) for chunk in range(lo, lo + n)))
        for src, dst, lo, n, op in rows:
            for chunk in range(lo, lo + n):
                kept = () if op == Op.COPY else brought.get((dst, chunk), ())
                brought[dst, chunk] = (*kept, (i, src, dst))
    return waits


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["ideal:nodes=5", "torus:shape=7", "leaf_spine:nodes=7,nodes_per_leaf=2,spines=1", "lightpath:shape=2x3"]),
    st.lists(st.tuples(*map(st.integers, (0, 0, 1, 0, 1, 0), (3, 4, 4, 7, 8, 1))), min_size=1, max_size=30),
    st.integers(0, 10**6), st.sampled_from([play_flow, play_packet]),
)  # fmt: skip
def test_nothing_is_sent_before_it_is_there(specification, drawn, size, play):
    """Transfers of any chunks between any nodes: each begins after all those that brought its chunks have ended."""
    where = fabric(specification)
    once = {(i, src, (src + ahead) % 5): (lo, min(n, 8 - lo), op) for i, src, ahead, lo, n, op in drawn}

    def step(i):
        return Transfers.of(*np.array([[*key[1:], *row] for key, row in once.items() if key[0] == i]).reshape(-1, 5).T)

    schedule = Schedule("by hand", collective("barrier", where.num_nodes, 8), 4, step)
    runs = play(lower(where, schedule), size, LIGHT, mode="asynchronous", record=True).traffic.runs
    rows = [c.tolist() for c in (runs.step, runs.src, runs.dst)]
    start, end = (dict(zip(zip(*rows, strict=True), times, strict=True)) for times in (runs.start_s, runs.end_s))
    waits = needed(schedule)
    assert waits.keys() == end.keys()
    for key, causes in waits.items():
        assert all(start[key] >= end[cause] * (1 - 1e-9) for cause in causes)


@settings(max_examples=20, deadline=None)
@given(
    plans(packets=False), st.integers(0, 10**8), st.sampled_from(["on_change", "every_step"]),
    st.sampled_from(["cold", "warm"]), st.sampled_from(["none", "fused", "chain"]),
)  # fmt: skip
def test_light_is_never_slower(plan, size, charge, initial, compute):
    """Whatever the collective, the size and what is charged; and never below the bound."""
    assumed = assumptions(reconfiguration_charge=charge, initial=initial, compute=compute)
    barrier, free = (flow(plan, size, assumed, mode=mode) for mode in ("barrier", "asynchronous"))
    assert free.lower_bound_s * (1 - 1e-9) <= free.total_s <= barrier.total_s * (1 + 1e-9)
    assert barrier.total_s == pytest.approx(closed_form(plan, size, assumed).total_s, rel=1e-9)


@settings(max_examples=20, deadline=None)
@given(
    plans(packets=False), st.integers(0, 10**8), st.sampled_from(["barrier", "asynchronous"]),
    st.sampled_from(["rate_bits_per_s", "latency_s", "reconfiguration_s"]), st.floats(1, 8),
)  # fmt: skip
def test_better_light_takes_no_longer(plan, size, mode, field, times):
    """A higher rate, less latency or quicker switches; and a rate that counts brings no more than its factor."""
    slot_free = dataclasses.replace(plan.fabric, slot_s=0.0, slot_payload_bytes=0.0)

    def total_s(factor):
        changed = dataclasses.replace(slot_free, **{field: getattr(slot_free, field) * factor})
        return flow(CircuitPlan(changed, plan.schedule, plan.rounds), size, LIGHT, mode=mode).total_s

    base, better = total_s(1.0), total_s(times if field == "rate_bits_per_s" else 1 / times)
    assert base / times * (1 - 1e-9) <= better <= base * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(
    plans(packets=True), st.integers(0, 10**6), st.sampled_from([play_flow, play_packet]),
    st.sampled_from(["barrier", "asynchronous"]),
)  # fmt: skip
def test_links_carry_what_is_asked_for_and_no_faster_than_they_can(plan, size, play, mode):
    """Bytes of every link, its time, the lower bound; and the same again to the bit."""
    played, again = (play(plan, size, LIGHT, mode=mode, record=True) for _ in range(2))
    traffic, total_s = played.traffic, played.timeline.total_s
    carried = np.zeros(len(Links(plan.fabric).capacity))
    carried[traffic.link] = traffic.carried_bytes
    assert carried == pytest.approx(link_bytes(plan, size))
    assert (carried <= Links(plan.fabric).capacity * total_s * (1 + 1e-9)).all()
    assert (traffic.busy_s <= total_s * (1 + 1e-9)).all()
    assert total_s >= played.timeline.lower_bound_s * (1 - 1e-9)
    assert again.timeline.total_s == total_s
    assert (again.traffic.runs.end_s == traffic.runs.end_s).all()
