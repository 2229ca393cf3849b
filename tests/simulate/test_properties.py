"""Properties of the engines on every fabric at odd sizes: what waits for what, bytes, capacity, bounds, better hardware."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.altered import altered
from tests.collectives import nothing_required
from tests.engines import closed_form, flow, flow_result, packet_result
from tests.profiles import examples
from tests.strategies import fabrics, transfers_by_step

import opticcl
from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Op, Schedule, Transfers
from opticcl.simulate import link_bytes
from opticcl.simulate.links import Links
from opticcl.verify import verify

LIGHT = assumptions("published", compute="none", control="none")
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
        columns = (step.src, step.dst, step.chunk_lo, step.chunk_n, step.chunk_step, step.op)
        rows = list(zip(*(c.tolist() for c in columns), strict=True))
        for src, dst, lo, n, by, _ in rows:
            found = waits.setdefault((i, src, dst), set())
            found.update(*(brought.get((src, chunk), ()) for chunk in range(lo, lo + n * by, by)))
        for src, dst, lo, n, by, op in rows:
            for chunk in range(lo, lo + n * by, by):
                kept = () if op == Op.COPY else brought.get((dst, chunk), ())
                brought[dst, chunk] = (*kept, (i, src, dst))
    return waits


@examples(60)
@given(
    st.sampled_from(["ideal:nodes=5", "torus:shape=7", "leaf_spine:nodes=7,nodes_per_leaf=2,spines=1", "lightpath:shape=2x3"]),
    transfers_by_step(ranks=5, chunks=8, steps=4), st.integers(0, 10**6), st.sampled_from([flow_result, packet_result]),
)  # fmt: skip
def test_nothing_is_sent_before_it_is_there(specification, transfers, size, run):
    """Transfers of any chunks between any nodes: each begins after all those that brought its chunks have ended."""
    where = fabric(specification)

    def step(i):
        rows = [[src, dst, *sent] for (at, src, dst), sent in transfers.items() if at == i]
        *columns, apart = np.array(rows).reshape(-1, 6).T
        return Transfers.of(*columns, chunk_step=apart)

    schedule = Schedule("by hand", nothing_required(where.num_nodes, 8), 4, step)
    assert "chunk_overwritten" not in {violation.rule for violation in verify(lower(where, schedule)).violations}
    runs = run(lower(where, schedule), size, LIGHT, mode="asynchronous").traffic.transfers
    rows = [c.tolist() for c in (runs.step, runs.src, runs.dst)]
    start, end = (dict(zip(zip(*rows, strict=True), times, strict=True)) for times in (runs.start_s, runs.end_s))
    waits = needed(schedule)
    assert waits.keys() == end.keys()
    for key, causes in waits.items():
        assert all(start[key] >= end[cause] * (1 - 1e-9) for cause in causes)


@examples(20)
@given(
    plans(packets=False), st.integers(0, 10**8), st.sampled_from(["on_change", "every_step"]),
    st.sampled_from(["cold", "warm"]), st.sampled_from(["none", "fused", "chain"]),
)  # fmt: skip
def test_light_is_never_slower(plan, size, charge, initial, compute):
    """Whatever the collective, the size and what is charged; and never below the bound."""
    assumed = assumptions("published", reconfiguration_charge=charge, initial=initial, compute=compute)
    barrier, free = (flow(plan, size, assumed, mode=mode) for mode in ("barrier", "asynchronous"))
    assert free.lower_bound_s * (1 - 1e-9) <= free.total_s <= barrier.total_s * (1 + 1e-9)
    assert barrier.total_s == pytest.approx(closed_form(plan, size, assumed).total_s, rel=1e-9)


@examples(20)
@given(
    plans(packets=False), st.integers(0, 10**8), st.sampled_from(["barrier", "asynchronous"]),
    st.sampled_from(["rate_bits_per_s", "latency_s", "reconfiguration_s"]), st.floats(1, 8),
)  # fmt: skip
def test_better_light_takes_no_longer(plan, size, mode, field, times):
    """A higher rate, less latency or quicker switches; and a rate that counts brings no more than its factor."""
    slot_free = altered(plan.fabric, slot_s=0.0, slot_payload_bytes=0.0)

    def total_s(factor):
        changed = altered(slot_free, **{field: getattr(slot_free, field) * factor})
        return flow(CircuitPlan(changed, plan.schedule, plan.rounds), size, LIGHT, mode=mode).total_s

    base, better = total_s(1.0), total_s(times if field == "rate_bits_per_s" else 1 / times)
    assert base / times * (1 - 1e-9) <= better <= base * (1 + 1e-9)


@examples(20)
@given(
    plans(packets=True), st.integers(0, 10**6), st.sampled_from([flow_result, packet_result]),
    st.sampled_from(["barrier", "asynchronous"]),
)  # fmt: skip
def test_links_carry_what_is_asked_for_and_no_faster_than_they_can(plan, size, run, mode):
    """Bytes of every link, its time, the lower bound; and the same again to the bit."""
    result, again = (run(plan, size, LIGHT, mode=mode) for _ in range(2))
    traffic, total_s = result.traffic, result.timeline.total_s
    carried = np.zeros(len(Links(plan.fabric).capacity))
    carried[traffic.link] = traffic.carried_bytes
    assert carried == pytest.approx(link_bytes(plan, size))
    assert (carried <= Links(plan.fabric).capacity * total_s * (1 + 1e-9)).all()
    assert (traffic.busy_s <= total_s * (1 + 1e-9)).all()
    assert total_s >= result.timeline.lower_bound_s * (1 - 1e-9)
    assert again.timeline.total_s == total_s
    assert (again.traffic.transfers.end_s == traffic.transfers.end_s).all()
