"""Parts of the synthesis: tables of colours, sums under symmetries, and the two solvers."""

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from tests.synthesis.helpers import wafer

from opticcl.synthesis.product import line_colours
from opticcl.synthesis.reduction import solve_reduction
from opticcl.synthesis.solver import Clock
from opticcl.synthesis.symmetric import translation_orbits


@pytest.mark.parametrize("waveguides", [1, 2, 4])
@pytest.mark.parametrize("length", range(1, 6))
def test_colours_of_a_line(length, waveguides):
    """Rows and columns without repeats, no edge over capacity, and as few colours as the middle edge allows."""
    table = np.array(line_colours(length, waveguides))
    colours = max(length, -(-(length // 2) * (length - length // 2) // waveguides))
    assert table.max() < colours
    for lines in (table, table.T):
        assert all(len(set(line)) == length for line in lines.tolist())
    for edge in range(length - 1):
        for side in (table[: edge + 1, edge + 1 :], table[edge + 1 :, : edge + 1]):
            assert max(Counter(side.ravel().tolist()).values()) <= waveguides


def test_symmetric_sums_are_a_schedule():
    """Four ranks, four chunks, one laser: six rounds, each with the same offsets for all ranks."""
    light, everyone = wafer("2x2", 1), np.ones((4, 4), bool)
    answer, schedule = solve_reduction(
        6, light, everyone, everyone, Clock(60), translation_orbits(4, 4, 4), effort=20, seed=0
    )
    assert answer
    for sends in schedule:
        assert Counter(s.src for s in sends) == dict.fromkeys(range(4), 1)
        assert len({s.src ^ s.dst for s in sends}) == 1


def test_a_smaller_symmetry_finds_more():
    """One piece among 16 with two lasers: three rounds, but not with a symmetry of 16; each part is added exactly once."""
    light, everyone = wafer("4x4", 2), np.ones((1, 16), bool)
    some = [
        solve_reduction(3, light, everyone, everyone, Clock(600), translation_orbits(1, 16, q), effort=40, seed=0)
        for q in (16, 4)
    ]
    assert [answer for answer, _ in some] == [False, True]
    has = np.eye(16, dtype=int)
    for sends in some[1][1]:
        then = has * np.array([all(s.adds for s in sends if s.dst == rank) for rank in range(16)])[:, None]
        for s in sends:
            then[s.dst] += has[s.src]
        has = then
    assert (has == 1).all()


def test_one_round_fewer_has_no_sums():
    """An infeasible case: 4 GPUs, 4 chunks, one laser, 5 rounds."""
    everyone = np.ones((4, 4), bool)
    answer, _ = solve_reduction(
        5, wafer("2x2", 1), everyone, everyone, Clock(600), translation_orbits(4, 4, 1), effort=20, seed=0
    )
    assert answer is False


def test_both_solvers_live_in_one_process():
    """HiGHS, which routing uses, and OR-Tools, which contains a HiGHS of its own, imported in either order."""
    pytest.importorskip("ortools")
    for first, second in (("highspy", "ortools.sat.python.cp_model"), ("ortools.sat.python.cp_model", "highspy")):
        code = f"import {first}, {second}; import highspy; highspy.Highs().silent(); print('both')"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.stdout.strip() == "both", done.stderr
