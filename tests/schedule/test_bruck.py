"""Bruck's algorithms: rounds, blocks, right results for any number of nodes and any radix."""

from __future__ import annotations

from math import ceil, log

import numpy as np
import pytest
from tests.altered import altered
from tests.schedule.oracle import check

from opticcl.circuits import lower
from opticcl.fabrics import fabric, fabric_at_scale, job
from opticcl.ir import Schedule
from opticcl.schedule import generate, reason_declined
from opticcl.verify import verify

COLLECTIVES = ("all_to_all", "all_gather")


def schedule(collective: str, num_nodes: int, radix: int = 2) -> Schedule:
    """On the ideal switch."""
    return generate(f"bruck:radix={radix}", collective, fabric_at_scale("ideal", num_nodes))


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("radix", [2, 3, 4, 7, 100])
def test_right_for_any_number_of_nodes(collective: str, radix: int) -> None:
    """Numbers up to 9, and primes and powers up to 81."""
    for nodes in (*range(1, 10), 27, 31, 49, 81):
        check(f"bruck:radix={radix}", collective, fabric_at_scale("ideal", nodes))


# --- numbers of the paper ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("radix", "steps", "peers", "blocks"), [(2, 8, 1, 128), (4, 4, 3, 64), (16, 2, 15, 16)])
def test_rounds_and_blocks_of_256(radix: int, steps: int, peers: int, blocks: int) -> None:
    """log_k N rounds; in each a node gives N / k blocks to each of k - 1 peers (section 4, appendix C)."""
    made = schedule("all_to_all", 256, radix)
    assert made.num_steps == steps
    for i in range(steps):
        step = made.step(i)
        pairs, row = np.unique(step.src * 256 + step.dst, return_inverse=True)
        assert len(pairs) == 256 * peers
        assert set(np.bincount(row, step.size_chunks()).tolist()) == {blocks}


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("radix", [2, 3, 5])
def test_number_of_steps(collective: str, radix: int) -> None:
    """ceil(log_r N)."""
    for nodes in range(2, 200):
        assert schedule(collective, nodes, radix).num_steps == ceil(log(nodes) / log(radix) - 1e-9)


def test_node_0_of_eight() -> None:
    """As the drawing has it: (peer, chunks, contributions) by step."""

    def sent(made: Schedule) -> list[tuple[int, int, int, int]]:
        steps = [made.step(i) for i in range(made.num_steps)]
        rows = [(s, int(np.flatnonzero(s.src == 0)[0])) for s in steps if (s.src == 0).sum() == 1]
        return [
            (int(s.dst[r]), int(s.chunk_lo[r]), int(s.chunk_n[r]), int(s.size_chunks()[r] // s.chunk_n[r]))
            for s, r in rows
        ]

    assert sent(schedule("all_to_all", 8)) == [(4, 4, 4, 1), (2, 2, 2, 2), (1, 1, 1, 4)]
    assert sent(schedule("all_gather", 8)) == [(7, 0, 1, 1), (6, 0, 2, 1), (4, 0, 4, 1)]


@pytest.mark.parametrize("nodes", [5, 12, 13, 64])
def test_gathering_sends_the_least(nodes: int) -> None:
    """Every node sends N - 1 blocks, whatever the radix."""
    for radix in (2, 3, 4):
        made = schedule("all_gather", nodes, radix)
        steps = [made.step(i) for i in range(made.num_steps)]
        sent = np.sum([np.bincount(s.src, s.chunk_n, minlength=nodes) for s in steps], axis=0)
        assert set(sent.tolist()) == {nodes - 1}


# --- what is wrong is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [[3, 1, 7], [5, 4, 9, 0, 15, 14, 2, 8, 11], [6]])
def test_part_of_a_machine(nodes: list[int]) -> None:
    """Ranks are not nodes: a job on some tiles of a wafer."""
    part = job(fabric("lightpath:shape=4x4"), nodes)
    for collective in COLLECTIVES:
        verify(lower(part, generate("bruck", collective, part))).raise_if_bad()


def test_nodes_that_are_not_linked_are_declined() -> None:
    """On a line of neighbours; the first such pair is named."""
    line = altered(fabric("ideal:nodes=8"), linked=lambda self, src, dst: np.abs(src - dst) == 1)
    assert reason_declined("bruck", "all_gather", line) == "no single circuit joins nodes 0 and 7"
