"""Direct exchange: pairs, right results, and what it declines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.altered import altered

from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.execute import execute
from opticcl.fabrics import fabric, fabric_at_scale, job
from opticcl.ir import Op, Schedule, Transfers
from opticcl.schedule import generate, reason_declined
from opticcl.verify import verify

OF_ALL = ("all_to_all", "reduce_scatter", "all_gather", "all_reduce", "barrier")
WITH_ROOT = ("broadcast", "scatter", "gather", "reduce")


def schedule(collective: str | Request, num_nodes: int) -> Schedule:
    """On the ideal switch."""
    return generate("mesh", collective, fabric_at_scale("ideal", num_nodes))


def judged(made: Schedule) -> set[str]:
    """Rules that it breaks, all chunks followed."""
    verdict = verify(lower(fabric_at_scale("ideal", made.collective.num_ranks), made))
    assert verdict.exhaustive
    return {v.rule for v in verdict.violations}


@pytest.mark.parametrize("collective", OF_ALL)
def test_all_pairs_are_right(collective: str) -> None:
    """Every number of nodes up to 20, and 64."""
    for nodes in (*range(1, 21), 64):
        assert judged(schedule(collective, nodes)) == set()


@pytest.mark.parametrize("collective", WITH_ROOT)
def test_every_root_is_right(collective: str) -> None:
    """Every root of 1 to 9 nodes, and the last of 64."""
    for nodes, root in [(n, r) for n in range(1, 10) for r in range(n)] + [(64, 63)]:
        assert judged(schedule(Request(collective, root), nodes)) == set()


@pytest.mark.parametrize("nodes", [1, 2, 5, 8])
def test_results_on_integers(nodes: int) -> None:
    """Against NumPy, with the last rank as the root."""
    root = nodes - 1
    data = np.random.default_rng(nodes).integers(-99, 99, (nodes, nodes, 3))
    total, blocks = data.sum(axis=0), data[:, :1]
    gathered = blocks.reshape(-1, 3)
    due = {
        "all_reduce": (data, [total] * nodes),
        "reduce_scatter": (data, [total[r : r + 1] for r in range(nodes)]),
        "all_gather": (blocks, [gathered] * nodes),
        "all_to_all": (data, [data[:, r] for r in range(nodes)]),
        "broadcast": (data, [data[root]] * nodes),
        "scatter": (data, [data[root, r : r + 1] for r in range(nodes)]),
        "gather": (blocks, [None] * root + [gathered]),
        "reduce": (data, [None] * root + [total]),
    }
    for collective, (arrays, expected) in due.items():
        results = execute(schedule(Request(collective, root), nodes), arrays)
        for result, wanted in zip(results, expected, strict=True):
            if wanted is None:
                assert result is None, collective
            else:
                assert np.array_equal(np.asarray(result), wanted), collective


@pytest.mark.parametrize(
    ("collective", "steps", "transfers"), [("all_to_all", 1, 56), ("all_reduce", 2, 56), ("scatter", 1, 7)]
)
def test_steps_and_transfers_of_eight(collective: str, steps: int, transfers: int) -> None:
    """N (N - 1) or N - 1 transfers of one chunk a step."""
    made = schedule(collective, 8)
    assert [len(made.step(i)) for i in range(made.num_steps)] == [transfers] * steps
    assert all((made.step(i).chunk_n == 1).all() for i in range(steps))


def test_rows_go_by_offset() -> None:
    """The first N rows are a permutation, so are the next."""
    step = schedule("all_to_all", 7).step(0)
    for rows in np.split(np.arange(42), 6):
        assert sorted(step.src[rows]) == sorted(step.dst[rows]) == list(range(7))
    assert ((step.dst - step.src) % 7).tolist() == sorted(((step.dst - step.src) % 7).tolist())


@pytest.mark.parametrize(
    ("collective", "column", "rule"),
    [
        ("all_to_all", {"op": Op.COPY}, "chunk_overwritten"),
        ("all_to_all", {"parts": 2}, "size_wrong"),
        ("reduce_scatter", {"op": Op.COPY}, "chunk_overwritten"),
        ("all_gather", {"chunk_lo": 0}, "sent_before_held"),
    ],
)
def test_mutants_are_refused(collective: str, column: dict[str, int], rule: str) -> None:
    """One column changed."""
    good = schedule(collective, 5)

    def step(i: int) -> Transfers:
        made = good.step(i)
        return replace(made, **{name: np.full_like(getattr(made, name), value) for name, value in column.items()})

    assert rule in judged(replace(good, step=step))


@pytest.mark.parametrize("nodes", [[3, 1, 7], [5, 4, 9, 0, 15, 14, 2, 8, 11], [6]])
def test_part_of_a_machine(nodes: list[int]) -> None:
    """Ranks are not nodes: a job on some tiles of a wafer."""
    part = job(fabric("lightpath:shape=4x4,numbering=squares,lasers=4"), nodes)
    for collective in OF_ALL + WITH_ROOT:
        verify(lower(part, generate("mesh", collective, part))).raise_if_bad()


def test_a_thousand_nodes() -> None:
    """A million transfers, made at once and accepted."""
    where = fabric("ideal:nodes=1024")
    assert reason_declined("mesh", "all_to_all", where) is None
    assert len(generate("mesh", "all_to_all", where).step(0)) == 1024 * 1023


def test_declines_with_a_reason() -> None:
    """Too many pairs, pairs without a circuit, another collective."""
    with pytest.raises(UnsupportedError, match="25,005,000 transfers a step, more than 16,777,216; try lumorph"):
        schedule("all_to_all", 5001)
    assert reason_declined("mesh", "broadcast", fabric("ideal:nodes=5001")) is None
    line = altered(fabric("ideal:nodes=8"), linked=lambda self, src, dst: np.abs(src - dst) == 1)
    assert reason_declined("mesh", "all_gather", line) == "no single circuit joins nodes 7 and 0"
    assert reason_declined("mesh", Request("gather", 3), line) == "no single circuit joins nodes 5 and 3"
    part = job(fabric("oddl:shape=2x8"), [15, 1, 0])
    assert reason_declined("mesh", "all_gather", part) == "no single circuit joins nodes (1, 7) and (0, 1)"
    assert "it does all_to_all" in str(reason_declined("mesh", "send_recv", line))
