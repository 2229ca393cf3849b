"""All ports of a torus at the same time: right everywhere, at the bound on equal sides, near it on others."""

import pytest
from tests.schedule.oracle import check

from opticcl.fabrics import fabric
from opticcl.plans.plan import compile

COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "barrier"]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_right_at_every_rank(collective):
    """Verified and executed: odd, even and unequal sides, sides of 1 and 2, three dimensions, optical grids."""
    for shape in ("2x2", "3x3", "4x4", "2x3", "2x8", "3x8", "5x7", "1x3x3", "3x2x4", "3x3x3"):
        check("torus_all_ports", collective, fabric(f"torus:shape={shape}"))
    for name in ("oddl:shape=3x5", "sipac:radix=3,levels=2", "lightpath:shape=3x4"):
        check("torus_all_ports", collective, fabric(name))
    check("torus_all_ports:shape=2x6", collective, fabric("ideal:nodes=12"))


@pytest.mark.parametrize("shape", ["8x8", "7x7", "5x5x5", "4x4x4"])
@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter"])
def test_closed_form_on_equal_sides(shape, collective):
    """As many steps as the diameter has hops; every port is busy for what a node must receive."""
    where = fabric("torus", shape=shape)
    sides = where.dimensions
    size = 64 * where.num_nodes * 2**10
    time = compile(where, collective, size, algorithm="torus_all_ports").simulate(
        compute="none", assumptions="published"
    )
    n, k = where.num_nodes, len(sides)
    assert time.num_steps == sum(side // 2 for side in sides)
    due = time.num_steps * 1e-6 + (n - 1) / n * size * 8 / (2 * k * where.rate_bits_per_s)
    assert time.total_s == pytest.approx(due, rel=1e-9)


@pytest.mark.parametrize(
    ("shape", "over"),
    [("32x32", 1.01), ("8x8x8", 1.01), ("16x64", 1.07), ("8x128", 1.16), ("7x31", 1.21), ("4x4x16", 1.25)],
)
def test_near_the_bound(shape, over):
    """1 GiB; unequal sides are left to wait for each other."""
    time = compile(f"torus:shape={shape}", "all_gather", "1 GiB", algorithm="torus_all_ports").simulate(
        assumptions="published"
    )
    assert 1 <= time.total_s / time.lower_bound_s <= over


def test_the_mark_of_a_torus_of_1024():
    """64 MiB: at most 1.10 of what the ports and the diameter need."""
    time = compile("torus:shape=32x32", "all_gather", "64 MiB", algorithm="torus_all_ports").simulate(
        assumptions="published"
    )
    assert time.total_s <= 1.10 * (time.lower_bound_s + 32e-6)


@pytest.mark.parametrize("shape", ["4x4", "3x4", "8x8"])
def test_pieces_use_all_wavelengths(shape):
    """TeraRack rings without striping: `auto` cuts, and is at least 20 times as fast as with whole blocks."""
    where = fabric(f"terarack_torus:shape={shape}")
    cut, whole = (
        compile(where, "all_reduce", "100MB", algorithm=name).simulate(compute="none", assumptions="published").total_s
        for name in ("auto", "torus_all_ports")
    )
    assert compile(where, "all_reduce", "100MB").algorithm.startswith("torus_all_ports:pieces=")
    assert 20 * cut < whole


@pytest.mark.parametrize("pieces", [2, 3, 8])
def test_any_number_of_pieces(pieces):
    """Equal and unequal sides."""
    for shape in ("3x3", "2x4"):
        for collective in COLLECTIVES:
            check(f"torus_all_ports:pieces={pieces}", collective, fabric(f"terarack_torus:shape={shape}"))
