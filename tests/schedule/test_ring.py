"""The ring: every collective but send_recv, its steps, its data, and what it costs to ask for 65,536 nodes."""

from __future__ import annotations

import time

import numpy as np
import pytest
from tests.schedule.oracle import check, requests

from opticcl.collective import Request
from opticcl.fabrics import fabric, job
from opticcl.ir import Fabric
from opticcl.schedule import all_variants, generate, reason_declined

ROUND = ["all_reduce", "barrier", "reduce_scatter", "all_gather", "all_to_all"]
CHAIN = ["broadcast", "reduce", "scatter", "gather"]
SIZES = [1, 2, 3, 5, 8]


def _ideal(nodes: int) -> Fabric:
    return fabric("ideal", nodes=nodes)


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
@pytest.mark.parametrize("pipeline", [1, 4, 9])
def test_any_number_of_chunks(collective: str, pipeline: int) -> None:
    """N - 2 + k steps, whatever the pipeline."""
    for nodes in SIZES:
        for request in requests(collective, nodes):
            schedule = check(f"ring:pipeline={pipeline}", request, _ideal(nodes))
            assert schedule.num_steps == (nodes - 2 + pipeline if nodes > 1 else 0)


def test_a_job_has_a_ring_of_its_own() -> None:
    """Four of nine nodes of a fibre ring, in another order."""
    for collective in ROUND + CHAIN:
        check("ring", collective, job(fabric("terarack:nodes=9"), [7, 1, 4, 2]))


@pytest.mark.parametrize(
    ("collective", "steps", "share"),
    [
        ("all_reduce", 14, 2 * 7 / 8),
        ("reduce_scatter", 7, 7 / 8),
        ("all_gather", 7, 7 / 8),
        ("all_to_all", 7, 7 / 2),  # N(N-1)/2 blocks of the N that a buffer has
        ("scatter", 7, 7 / 8),
        ("gather", 7, 7 / 8),
    ],
)
def test_steps_and_data(collective: str, steps: int, share: float) -> None:
    """Eight nodes: number of steps, and the largest share of the message that a node sends in all."""
    schedule = generate("ring", collective, _ideal(8))
    assert schedule.num_steps == steps
    sent = np.zeros(8)
    for i in range(steps):
        step = schedule.step(i)
        np.add.at(sent, step.src, step.size_chunks())
    assert sent.max() / schedule.collective.num_chunks == pytest.approx(share)


@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "all_gather", "barrier"])
def test_65536_nodes_cost_nothing(collective: str) -> None:
    """131,070 steps in two classes, made when asked for."""
    start = time.process_time()
    schedule = generate("ring", collective, _ideal(65536))
    schedule.step(schedule.num_steps - 1)
    assert len(schedule.step_classes()) <= 2
    assert schedule.num_steps in (65535, 131070)
    assert time.process_time() - start < 0.5


def test_what_is_declined() -> None:
    """Nodes without a ring."""
    apart = job(fabric("oddl:shape=2x4"), [0, 5, 2])
    assert reason_declined("ring", "all_reduce", apart) == "no order of its nodes links each with the next"


def test_long_chains_are_not_tried_unasked() -> None:
    """A search for the fastest plan tries rings of a thousand nodes only where their steps are identical."""
    large = _ideal(1024)
    assert "ring" in all_variants(Request("all_reduce"), large)
    assert "ring" not in all_variants(Request("all_to_all"), large)
    assert "ring" in all_variants(Request("all_to_all"), _ideal(512))
