"""LUMORPH-k: digits, chunks, sums and times."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from tests.altered import altered

import opticcl
from opticcl.circuits import lower
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.ir import Op, Schedule
from opticcl.schedule import generate, reason_declined
from opticcl.schedule.lumorph import digits, rank_of_node
from opticcl.verify import verify

SIZES = [1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 64, 96, 128]


def schedule(num_nodes: int, parameters: str = "radix=2", collective: str = "all_reduce") -> Schedule:
    """On the ideal switch, which links all nodes."""
    return generate(f"lumorph:{parameters}", collective, fabric_at_scale("ideal", num_nodes))


# --- digits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "radix", "expected"),
    [
        (256, 2, (2,) * 8),
        (256, 4, (4,) * 4),
        (128, 4, (4, 4, 4, 2)),
        (12, 4, (4, 3)),
        (96, 4, (4, 4, 3, 2)),
        (256, 8, (8, 8, 4)),
        (13, 4, (13,)),
        (14, 4, (2, 7)),
        (1, 4, ()),
    ],
)
def test_digits(nodes: int, radix: int, expected: tuple[int, ...]) -> None:
    """The largest digits up to the radix; a larger prime is a digit of its own."""
    assert digits(nodes, radix) == expected


@pytest.mark.parametrize("radix", [2, 3, 4, 7, 8, 1000])
def test_digits_multiply_to_the_number_of_nodes(radix: int) -> None:
    """For every number up to 300."""
    for nodes in range(1, 301):
        assert prod(digits(nodes, radix)) == nodes


def test_rank_reverses_the_digits() -> None:
    """Bit reversal for radix 2, a permutation for all."""
    assert rank_of_node((2, 2, 2)).tolist() == [0, 4, 2, 6, 1, 5, 3, 7]
    assert sorted(rank_of_node((4, 3, 5))) == list(range(60))


# --- right sums -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "factors"), [(32, "4x4x2"), (32, "2x16"), (30, "5x2x3"), (24, "1x24x1"), (1, "1")])
def test_factors_are_taken_as_they_come(nodes: int, factors: str) -> None:
    """Mixed digits in any order; a digit of one value is no step."""
    made = schedule(nodes, f"factors={factors}")
    assert made.num_steps == 2 * sum(k != "1" for k in factors.split("x"))
    verify(lower(fabric_at_scale("ideal", nodes), made)).raise_if_bad()


def test_all_to_all_hands_on_what_it_collected() -> None:
    """N / k blocks for each peer in every step, fewer chunks of more contributions each."""
    made = schedule(64, "radix=4", "all_to_all")
    steps = [made.step(i) for i in range(3)]
    assert [(set(s.chunk_n.tolist()), set(s.parts.tolist())) for s in steps] == [  # type: ignore[union-attr]
        ({16}, {1}),
        ({4}, {4}),
        ({1}, {16}),
    ]
    assert all((s.op == Op.MOVE).all() and (s.size_chunks() == 16).all() for s in steps)


# --- numbers of the paper ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("radix", "steps"), [(2, 16), (4, 8), (8, 6)])
def test_steps_for_256(radix: int, steps: int) -> None:
    """2 log_k N steps (section 4)."""
    assert schedule(256, f"radix={radix}").num_steps == steps


@pytest.mark.parametrize("nodes", SIZES)
@pytest.mark.parametrize("radix", [2, 4])
def test_every_node_sends_the_least_possible(nodes: int, radix: int) -> None:
    """2 (N-1)/N of the message, whatever the radix (section 4)."""
    made = schedule(nodes, f"radix={radix}")
    sent = np.zeros(nodes, int)
    for i in range(made.num_steps):
        step = made.step(i)
        sent += np.bincount(step.src, step.chunk_n, minlength=nodes).astype(int)
    assert (sent == 2 * (nodes - 1)).all()


def test_pieces_of_appendix_b() -> None:
    """Sixteen GPUs: a quarter and a sixteenth for each of three peers, then a sixteenth and a quarter."""
    made = schedule(16, "radix=4")
    assert [set(made.step(i).chunk_n.tolist()) for i in range(4)] == [{4}, {1}, {1}, {4}]
    assert [len(made.step(i)) for i in range(4)] == [48] * 4


def test_gpu_1_of_appendix_b() -> None:
    """GPU 1 sends chunks 4, 8, 12, 16 to GPU 4 and then meets GPUs 5, 9 and 13."""
    made = schedule(16, "radix=4")
    first, second = made.step(0), made.step(1)
    row = np.flatnonzero((first.src == 0) & (first.dst == 3))[0]
    chunk_of_gpu = rank_of_node((4, 4))
    assert sorted(chunk_of_gpu[[3, 7, 11, 15]]) == list(range(first.chunk_lo[row], first.chunk_lo[row] + 4))
    assert second.dst[second.src == 0].tolist() == [4, 8, 12]


@pytest.mark.parametrize("nodes", [12, 16, 96])
def test_gather_mirrors_scatter(nodes: int) -> None:
    """The same nodes communicate in step i and in step i from the end."""
    made = schedule(nodes, "radix=4")
    for i in range(made.num_steps // 2):
        scatter, gather = made.step(i), made.step(made.num_steps - 1 - i)
        assert np.array_equal(scatter.src, gather.src)
        assert np.array_equal(scatter.dst, gather.dst)
        assert (scatter.op == Op.REDUCE).all()
        assert (gather.op == Op.COPY).all()


def time_us(algorithm: str, size: str, where: str = "lightpath") -> float:
    """By the paper's model."""
    return opticcl.compile(where, "all_reduce", size, algorithm=algorithm).simulate(assumptions="lumorph").total_s * 1e6


@pytest.mark.parametrize(
    ("radix", "times"), [(2, (70.5, 97.0, 495.4)), (4, (35.3, 63.5, 488.5)), (8, (26.5, 56.7, 511.7))]
)
def test_times_by_whole_lasers(radix: int, times: tuple[float, ...]) -> None:
    """2 sum(4.4 us + B / (k_1 ... k_i) (k_i - 1) / rate of the lasers in use): 10 KB, 4 MB, 64 MB on 256 GPUs."""
    for size, expected in zip(("10 KB", "4 MB", "64 MB"), times, strict=True):
        assert time_us(f"lumorph:radix={radix}", size) == pytest.approx(expected, abs=0.06)


# --- times of section 5, for the size of figure 7 ---------------------------------------------------------------------


# --- what it declines -------------------------------------------------------------------------------------------------


def test_declines_nodes_that_are_not_linked() -> None:
    """A line of neighbours cannot exchange digits of distance 2."""
    line = altered(fabric("ideal:nodes=8"), linked=lambda self, src, dst: np.abs(src - dst) == 1)
    assert "digit 2 of 2x2x2" in str(reason_declined("lumorph", "all_reduce", line))
    pair = altered(fabric("ideal:nodes=2"), linked=lambda self, src, dst: np.abs(src - dst) == 1)
    assert reason_declined("lumorph", "all_reduce", pair) is None
