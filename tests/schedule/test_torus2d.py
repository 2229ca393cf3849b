"""Rings along rows and columns."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.schedule.oracle import check

from opticcl.circuits import lower
from opticcl.fabrics import fabric, job
from opticcl.ir import Op, Transfers
from opticcl.schedule import generate, reason_declined
from opticcl.verify import verify

COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "all_to_all"]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_right_at_every_rank(collective: str) -> None:
    """1 and 2 nodes, primes (a single row), squares, 6 x 8."""
    for nodes in (1, 2, 3, 4, 6, 9, 12, 13, 16, 48):
        check("torus2d", collective, fabric("ideal", nodes=nodes))


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("shape", ["12x1", "1x12", "2x6", "6x2", "4x3"])
def test_any_shape(collective: str, shape: str) -> None:
    """Flat, high and narrow, the sides the other way round."""
    schedule = check(f"torus2d:shape={shape}", collective, fabric("ideal:nodes=12"))
    rows, columns = map(int, shape.split("x"))
    assert schedule.num_steps == (rows + columns - 2) * (2 if collective == "all_reduce" else 1)


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(
    "name", ["oddl:shape=3x5", "sipac:radix=3,levels=2", "terarack:nodes=12", "lightpath:shape=3x4"]
)
def test_on_light(collective: str, name: str) -> None:
    """Rows and columns are the machine's where it has two dimensions."""
    check("torus2d", collective, fabric(name))


def test_a_job_is_near_a_square() -> None:
    """Six of nine nodes, in another order."""
    schedule = check("torus2d", "all_reduce", job(fabric("terarack:nodes=9"), [5, 0, 7, 2, 8, 4]))
    assert schedule.num_steps == 2 * (2 + 3 - 2)


def test_steps_data_and_classes() -> None:
    """1024 nodes: 124 steps in four classes instead of 2046, and no more than 2(N-1)/N of the message."""
    schedule = generate("torus2d", "all_reduce", fabric("ideal:nodes=1024"))
    assert schedule.num_steps == 124
    assert [len(steps) for steps in schedule.step_classes()] == [31, 31, 31, 31]
    sent = sum(int(schedule.step(s.start).chunk_n[0]) * len(s) for s in schedule.step_classes())
    assert sent / 1024 == pytest.approx(2 * 1023 / 1024)


def test_an_all_to_all_sends_less_than_a_ring() -> None:
    """Sixteen nodes: 6 + 6 quarters of the buffer against 7.5 buffers of the ring."""
    schedule = generate("torus2d", "all_to_all", fabric("ideal:nodes=16"))
    sent = sum(int(schedule.step(i).size_chunks()[0]) for i in range(schedule.num_steps))
    assert sent / 16 == pytest.approx(3.0)


def test_what_is_declined() -> None:
    """Shapes of another size, with one that fits; lines that are not linked; other collectives."""
    where = fabric("ideal:nodes=12")
    assert (
        reason_declined("torus2d", "broadcast", where) == "it does all_reduce, reduce_scatter, all_gather, all_to_all"
    )
    for shape in ("5x2", "2x2x3", "12"):
        reason = reason_declined(f"torus2d:shape={shape}", "all_reduce", where)
        assert reason == f"shape={shape} is not two sides of 12 nodes; try 3x4"
    assert "no single circuit joins" in str(reason_declined("torus2d", "all_reduce", fabric("oddl:shape=2x2x2")))
    assert "in distinct steps" in str(reason_declined("torus2d", "all_to_all", fabric("ideal:nodes=1048576")))


@pytest.mark.parametrize(
    ("collective", "step", "columns", "rule"),
    [
        ("all_reduce", 0, {"op": Op.COPY}, "contribution_missing"),
        ("reduce_scatter", 2, {"chunk_lo": 0}, "contribution_missing"),
        ("all_to_all", 3, {"parts": 1}, "size_wrong"),
    ],
)
def test_mutants_are_refused(collective: str, step: int, columns: dict[str, object], rule: str) -> None:
    """A wrong operation, chunk or size on 3 x 4."""
    where = fabric("ideal:nodes=12")
    right = generate("torus2d", collective, where)

    def changed(i: int) -> Transfers:
        t = right.step(i)
        given = {k: np.full(len(t), v, np.uint8 if k == "op" else np.int32) for k, v in columns.items()}
        return dataclasses.replace(t, **given) if i == step else t

    wrong = dataclasses.replace(right, step=changed, classes=())
    assert rule in {v.rule for v in verify(lower(where, wrong)).violations}
