"""SiPCO: right for every shape and k, with the paper's steps, volume and times."""

from __future__ import annotations

import numpy as np
import pytest

from opticcl.fabrics import fabric
from opticcl.ir import Op, Schedule, Transfers
from opticcl.plans.plan import compile
from opticcl.schedule import generate

PAPER = [(2, 1), (2, 2), (2, 3), (3, 2), (4, 2), (8, 3), (16, 2)]
ODD = [(7, 1), (5, 2), (3, 3), (2, 5), (6, 2)]
ALL = [(r, levels, k) for r, levels in PAPER + ODD for k in range(levels + 1)]


def _schedule(radix: int, levels: int, k: int = 1) -> Schedule:
    return generate(f"sipco:k={k}", "all_reduce", fabric("sipac", radix=radix, levels=levels))


def _link_chunks(step: Transfers, radix: int, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Chunks that leave and enter each node at each level, int64 (num_nodes, levels) twice."""
    digits = radix ** np.arange(levels)
    differ = step.src[:, None] // digits % radix != step.dst[:, None] // digits % radix
    assert (differ.sum(axis=1) == 1).all()
    level = differ.argmax(axis=1)
    out = np.bincount(step.src * levels + level, step.chunk_n, radix**levels * levels)
    into = np.bincount(step.dst * levels + level, step.chunk_n, radix**levels * levels)
    return out.reshape(-1, levels), into.reshape(-1, levels)


@pytest.mark.parametrize(("radix", "levels", "k"), ALL)
def test_steps_and_volume(radix: int, levels: int, k: int) -> None:
    """L + k steps; every link carries n (2/L (1 - r^-k) + (L-k)(r-1)/(L r^k)), out and in."""
    schedule = _schedule(radix, levels, k)
    assert schedule.num_steps == levels + k
    carried = [_link_chunks(schedule.step(i), radix, levels) for i in range(schedule.num_steps)]
    of_message = np.sum(carried, axis=0) / schedule.collective.num_chunks
    formula = 2 / levels * (1 - radix**-k) + (levels - k) * (radix - 1) / (levels * radix**k)
    assert of_message == pytest.approx(np.full_like(of_message, formula))


@pytest.mark.parametrize(("radix", "levels"), PAPER + ODD)
def test_paper_volume_of_every_step(radix: int, levels: int) -> None:
    """Section V-A: r - 1 chunks of n/(r L) on every link in every one of the L + 1 steps."""
    schedule = _schedule(radix, levels)
    assert schedule.collective.num_chunks == radix * levels
    for i in range(levels + 1):
        assert all((chunks == radix - 1).all() for chunks in _link_chunks(schedule.step(i), radix, levels))


@pytest.mark.parametrize(("radix", "levels"), PAPER + ODD)
def test_full_k_moves_the_least(radix: int, levels: int) -> None:
    """k = L: a node sends 2 (p - 1)/p of the message, which no all-reduce can undercut."""
    schedule = _schedule(radix, levels, levels)
    p, steps = radix**levels, [schedule.step(i) for i in range(schedule.num_steps)]
    sent = sum(int(step.chunk_n[step.src == 0].sum()) for step in steps)
    assert sent * p == 2 * (p - 1) * schedule.collective.num_chunks


def test_groups_turn_as_in_algorithm_1() -> None:
    """Link l carries group (s + l) mod L in step s."""
    radix, levels = 3, 4
    schedule = _schedule(radix, levels)
    for s in range(levels + 1):
        step = schedule.step(s)
        apart = np.abs(step.dst - step.src)  # 3^l or 2 x 3^l
        level = np.searchsorted(radix ** np.arange(levels), apart, side="right") - 1
        assert (step.chunk_lo // radix == (s + level) % levels).all()


def test_table_3() -> None:
    """Who sends what in the example of four CUs A to D; the table counts the chunks of a group from the last."""
    sent = {
        0: "A0B B1A C0D D1C A2C C3A B2D D3B",
        1: "B0D D0B A1C C1A C2D D2C A3B B3A",
        2: "B0A D0C A1B C1D C2A D2B A3C B3D",
    }
    schedule = _schedule(2, 2)
    for s, expected in sent.items():
        step = schedule.step(s)
        rows = zip(step.src, step.chunk_lo, step.dst, strict=True)
        assert {f"{'ABCD'[a]}{chunk ^ 1}{'ABCD'[b]}" for a, chunk, b in rows} == set(expected.split())
        assert (step.op == (Op.COPY if s == 2 else Op.REDUCE)).all()


@pytest.mark.parametrize(
    ("where", "milliseconds"),
    [
        ("sipac:radix=32,levels=2,node_rate=1024Gb/s,channels=retuned", 2.274),  # table II for figure 7
        ("sipac:radix=32,levels=2,node_rate=1024Gb/s", 2.347),  # r/(r-1) of the transfer time
        ("sipac:radix=8,levels=3,node_rate=1536Gb/s,channels=retuned", 1.827),
        ("sipac:radix=16,levels=2,node_rate=1024Gb/s,channels=retuned", 2.200),
    ],
)
def test_times_of_table_2(where: str, milliseconds: float) -> None:
    """(L+1)(α + (r-1)n/(rL)β) for 100 MB, 512 Gb/s a link and 1 us."""
    total_s = compile(where, "all_reduce", "100 MB", algorithm="sipco").simulate(assumptions="sipac").total_s
    assert round(total_s * 1e3, 3) == milliseconds


@pytest.mark.parametrize(("size", "best"), [("100 KB", 1), ("200 KB", 2), ("1 MB", 2), ("10 MB", 3)])
def test_best_k_grows_with_the_message(size: str, best: int) -> None:
    """SiPAC(8, 3) at 512 Gb/s a link: few steps for small messages, little volume for large ones."""
    where = fabric("sipac", node_rate="1536 Gb/s", channels="retuned")

    def time_s(k: int) -> float:
        return compile(where, "all_reduce", size, algorithm=f"sipco:k={k}").simulate(assumptions="sipac").total_s

    assert min((1, 2, 3), key=time_s) == best
