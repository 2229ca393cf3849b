"""Dissemination: barriers and short all-reduces of any number of nodes."""

from __future__ import annotations

import dataclasses

import pytest
from tests.schedule.oracle import check

from opticcl.circuits import lower
from opticcl.fabrics import fabric, job
from opticcl.ir import Transfers
from opticcl.schedule import generate, reason_declined
from opticcl.verify import verify


@pytest.mark.parametrize("collective", ["barrier", "all_reduce"])
def test_right_at_every_rank(collective: str) -> None:
    """1 to 17 nodes, 37, 64, 100: log2 N steps, two more where N is not a power of two."""
    for nodes in [*range(1, 18), 37, 64, 100]:
        schedule = check("dissemination", collective, fabric("ideal", nodes=nodes))
        bits = nodes.bit_length() - 1
        assert schedule.num_steps == (bits if nodes == 1 << bits else bits + 2)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("oddl:shape=8", 3),
        ("oddl:shape=3x5", 3 + 4),
        ("oddl:shape=2x3x2", 1 + 3 + 1),
        ("oddl:shape=4x8", 5),
        ("oddl:shape=11", 5),
        ("sipac:radix=3,levels=2", 6),
        ("terarack:nodes=10", 5),
    ],
)
def test_on_light(name: str, steps: int) -> None:
    """On lines of one dimension after the other where only lines are linked; ODDL needs no more than its log2(side)."""
    assert check("dissemination", "barrier", fabric(name)).num_steps == steps


def test_what_is_declined() -> None:
    """Other collectives, and a job whose nodes are not linked."""
    assert reason_declined("dissemination", "reduce", fabric("ideal:nodes=4")) == "it does barrier, all_reduce"
    apart = job(fabric("oddl:shape=2x4"), [0, 5, 2])
    assert "no single circuit joins" in str(reason_declined("dissemination", "barrier", apart))


def test_wrapping_around_would_count_twice() -> None:
    """The textbook's barrier of three nodes: each receives its own signal again in the second step."""
    where = fabric("ideal:nodes=3")
    right = generate("dissemination", "barrier", where)

    def wrapped(i: int) -> Transfers:
        return Transfers.of([0, 1, 2], [(r + (1 << i)) % 3 for r in range(3)], 0, 1, 1)

    schedule = dataclasses.replace(right, step=wrapped, num_steps=2, classes=())
    assert {v.rule for v in verify(lower(where, schedule)).violations} == {"contribution_doubled"}


@pytest.mark.parametrize("step", range(5))
def test_a_missing_message_is_refused(step: int) -> None:
    """Without the first message of any one step some rank misses something."""
    where = fabric("ideal:nodes=11")
    right = generate("dissemination", "barrier", where)
    wrong = dataclasses.replace(right, step=lambda i: right.step(i).take(slice(1 if i == step else 0, None)))
    assert "contribution_missing" in {v.rule for v in verify(lower(where, wrong)).violations}
