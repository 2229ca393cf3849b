"""The optimum table of LUMORPH's Algorithm 1 on small grids: every row proven, verified and executed on integers."""

import pytest
from tests.synthesis.helpers import assert_right

from opticcl.synthesis import synthesize

# (shape, collective, chunks): rounds by (lasers, waveguides). Rows without a number of waveguides have 40.
MULTICASTS = {
    ("2x2", "all_gather"): {(1, 1): 3, (2, 1): 2, (3, 1): 1, (16, 2): 1},
    ("2x2", "all_to_all"): {(1, 2): 3, (2, 1): 2, (3, 1): 1, (16, 1): 1},
    ("2x4", "all_gather"): {(1, 1): 7, (2, 1): 4, (4, 1): 2, (7, 1): 2, (8, 1): 1, (16, 1): 1},
    ("3x5", "all_gather"): {(2, 1): 7, (3, 1): 5},
    ("2x4", "all_to_all"): {(1, 1): 8, (1, 2): 7, (2, 1): 4, (4, 1): 2, (7, 1): 2, (8, 1): 1, (16, 1): 1},
    ("4x4", "all_gather"): {
        (1, 1): 15,
        (2, 1): 8,
        (3, 1): 5,
        (4, 1): 4,
        (5, 1): 3,
        (8, 1): 2,
        (15, 1): 2,
        (15, 2): 1,
        (16, 1): 1,
    },
    ("4x4", "all_to_all"): {(1, 1): 16, (2, 1): 8, (4, 1): 4, (8, 1): 2, (15, 1): 2, (15, 2): 1, (16, 1): 1},
}
REDUCTIONS = {
    ("2x2", 1): {(1, 40): 2, (3, 40): 1},
    ("2x2", 4): {(1, 40): 6, (3, 40): 2, (16, 40): 1},
    ("2x4", 1): {(1, 40): 3, (2, 40): 3, (3, 40): 2, (7, 40): 1},
    ("2x4", 8): {
        (1, 40): 14,
        (2, 40): 7,
        (3, 40): 5,
        (4, 40): 4,
        (7, 40): 2,
        (8, 40): 2,
        (16, 40): 2,
        (4, 1): 4,
    },
    ("4x4", 1): {(1, 40): 4, (3, 40): 2, (7, 40): 2},
    ("4x4", 16): {
        (1, 40): 30,
        (2, 40): 15,
        (4, 40): 8,
        (6, 40): 6,
        (7, 40): 5,
        (8, 40): 4,
        (10, 40): 4,
        (15, 40): 2,
        (16, 40): 2,
    },
    ("4x8", 1): {(1, 40): 5, (3, 40): 3, (7, 40): 2},
}
ROWS = [
    *((shape, name, 1, *light, due) for (shape, name), rows in MULTICASTS.items() for light, due in rows.items()),
    *(
        (shape, "all_reduce", chunks, *light, due)
        for (shape, chunks), rows in REDUCTIONS.items()
        for light, due in rows.items()
    ),
]


@pytest.mark.parametrize(("shape", "collective", "chunks", "lasers", "waveguides", "due"), ROWS)
def test_optimum(shape, collective, chunks, lasers, waveguides, due):
    """The rounds of the table and a proof of optimality without the solver, with time for all constructions."""
    where = f"lightpath:shape={shape},lasers={lasers},waveguides={waveguides}"
    found = synthesize(where, collective, chunks=chunks, method="constructed", time_limit=3600)
    assert (found.num_steps, found.lower_bound, found.optimal) == (due, due, True)
    assert_right(found)
