"""Binomial tree: any number of nodes, on fabrics of several kinds."""

from __future__ import annotations

import dataclasses
from math import ceil, log2

import pytest

from opticcl.circuits import lower
from opticcl.errors import UnsupportedError
from opticcl.fabric import fabric
from opticcl.ir import Transfers
from opticcl.schedule import generate, reason_declined
from opticcl.verify import verify


@pytest.mark.parametrize("nodes", [*range(1, 20), 97, 127, 128, 257])
def test_sums_come_out_right(nodes: int) -> None:
    """Every contribution once at every rank, with light, in 2 ceil(log2 N) steps; primes too."""
    where = fabric("ideal", nodes=nodes)
    schedule = generate("tree", "all_reduce", where)
    assert schedule.num_steps == 2 * ceil(log2(nodes))
    assert verify(lower(where, schedule)).ok


@pytest.mark.parametrize(
    "name",
    [
        "ramp:groups=1,racks=1,wavelengths=7",
        "ramp:groups=1,racks=1,wavelengths=13",
        "ramp:groups=3,racks=3,wavelengths=3",
        "oddl:shape=7",
        "oddl:shape=31",
        "oddl:shape=1",
        "oddl:shape=2",
        "oddl:shape=8x16",
        "oddl:shape=3x4",
    ],
)
def test_runs_on_light(name: str) -> None:
    """Primes on RAMP and on one switch, grids whose last side is a power of two."""
    where = fabric(name)
    verify(lower(where, generate("tree", "all_reduce", where))).raise_if_bad()


def test_each_node_sends_one_sum_up_and_hears_one_result() -> None:
    """Every node but the root sends once on the way up and hears once on the way down, all in one chunk."""
    schedule = generate("tree", "all_reduce", fabric("ideal:nodes=11"))
    steps = [schedule.step(i) for i in range(schedule.num_steps)]
    up, down = steps[: len(steps) // 2], steps[len(steps) // 2 :]
    assert sorted(int(node) for step in up for node in step.src) == list(range(1, 11))
    assert sorted(int(node) for step in down for node in step.dst) == list(range(1, 11))
    assert schedule.collective.num_chunks == 1


def test_nodes_that_are_not_linked_are_declined() -> None:
    """On 3 x 5 nodes 0 and 8 differ in both coordinates; the first such pair is named."""
    where = fabric("oddl:shape=3x5")
    assert reason_declined("tree", "all_reduce", where) == "no single circuit joins nodes (0, 4) and (1, 0)"
    with pytest.raises(UnsupportedError, match="tree cannot do all_reduce on oddl: no single circuit joins"):
        generate("tree", "all_reduce", where)


@pytest.mark.parametrize("step", range(6))
def test_a_missing_message_is_refused(step: int) -> None:
    """Without the first message of any one step some rank misses something."""
    where = fabric("ideal:nodes=7")
    schedule = generate("tree", "all_reduce", where)

    def without(i: int) -> Transfers:
        t = schedule.step(i)
        return Transfers.of(t.src[1:], t.dst[1:], t.chunk_lo[1:], t.chunk_n[1:], t.op[1:]) if i == step else t

    verdict = verify(lower(where, dataclasses.replace(schedule, step=without)))
    assert "contribution_missing" in {v.rule for v in verdict.violations}
