"""Costs of pipelines on routes, whose stages are evaluated once, beside those counted circuit by circuit."""

import numpy as np
import pytest

import opticcl
from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric, groups
from opticcl.schedule import generate
from opticcl.simulate import profile
from opticcl.simulate.latency import path_latency

MACHINES = (
    "torus:shape=4x4",
    "topoopt:nodes=16,degree=3",
    "dragonfly:nodes=16",
    "fat_tree:nodes=16",
    "bcube:radices=4x4",
)


def machine(name, members):
    """A machine, or groups of it whose nodes are far apart."""
    whole = fabric(name)
    many = whole.num_nodes // members
    return whole if members == 1 else groups(whole, [range(at, many * members, members) for at in range(members)])


def by_hand(plan, step, law):
    """Time of the busiest link [s a byte of chunk] and the longest latency [s], one circuit after the other."""
    fabric, transfers = plan.fabric, plan.schedule.step(step)
    capacity = [r.capacity for r in fabric.resources for _ in range(r.count)]
    (circuits,) = plan.rounds(step)
    carried, longest = [0] * len(capacity), 0.0
    for at in range(len(circuits)):
        row = int(circuits.transfer[at])
        hops = circuits.hops[circuits.hop_offsets[at] : circuits.hop_offsets[at + 1]].tolist()
        for hop in hops:
            carried[hop] += int(transfers.chunk_n[row])
        added = [] if law.constant else law.of_hops(np.array(hops, int)).tolist()
        longest = max(longest, law.base_s + sum(added))
    return max(8 * chunks / rate for chunks, rate in zip(carried, capacity, strict=True)), longest


@pytest.mark.parametrize("members", [1, 2, 4])
@pytest.mark.parametrize("name", MACHINES)
def test_every_step_of_a_pipeline(name, members):
    """Loads and latencies of forests, whose stages overlap in steps; other pipelines meet the same stages again."""
    where, judged = machine(name, members), 0
    for algorithm in ("forest:pipeline=1", "forest:pipeline=3", "forest:pipeline=8", "double_tree", "two_sided_ring"):
        try:
            plan = opticcl.compile(where, "all_reduce", "1MB", algorithm=algorithm).circuits
        except UnsupportedError:  # no trees on these routes
            continue
        for assumed in (assumptions("common", message_gap=0), assumptions("published")):
            law = path_latency(where, assumed)
            for cost, steps in zip(profile(plan, assumed).costs, plan.schedule.step_classes(), strict=True):
                busiest, longest = by_hand(plan, steps.start, law)
                assert cost.slowest == (pytest.approx(busiest, rel=1e-12),)
                assert cost.latency_s / len(steps) == pytest.approx(longest, rel=1e-12)
                judged += 1
    assert judged > 10


def test_waves_are_the_step():
    """Pairs and sizes of a step of a pipeline, together; those of stages do not depend on the number of pieces."""
    where, found = fabric("torus:shape=3x3"), []
    for pieces in (2, 5):
        steps = generate(f"forest:pipeline={pieces}", Request("all_reduce"), where).steps
        for step in range(steps.num_steps):
            waves = steps.waves(step)
            assert len(waves) <= pieces
            assert sorted(row for wave in waves for row in rows_of(wave(0))) == rows_of(steps(step))
        found.append({wave.digest for step in range(steps.num_steps) for wave in steps.waves(step)})
    assert found[0] == found[1]
    ring = generate("ring", Request("all_reduce"), where).steps
    assert not ring.waves(0)  # all rows in all steps


def rows_of(transfers):
    """Sender, receiver and size of each, sorted."""
    columns = (transfers.src, transfers.dst, transfers.size_chunks())
    return sorted(zip(*(column.tolist() for column in columns), strict=True))
