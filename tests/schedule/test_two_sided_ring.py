"""The ring in both directions: right everywhere, its steps, its closed form, its proof."""

import pytest
from tests.schedule.oracle import check

from opticcl.fabrics import fabric, job
from opticcl.plans.plan import compile
from opticcl.schedule import reason_declined

COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "barrier"]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_right_at_every_rank(collective):
    """Verified and executed: 1 and 2 nodes, odd, even, where node numbers are not the order of the ring, a job."""
    for nodes in (1, 2, 3, 4, 5, 8, 13):
        schedule = check("two_sided_ring", collective, fabric("ideal", nodes=nodes))
        assert schedule.num_steps == nodes // 2 * (2 if collective in ("all_reduce", "barrier") else 1)
    for name in ("oddl:shape=3x5", "terarack:nodes=7", "sipac:radix=3,levels=2", "torus:shape=4x4", "sip_ring:nodes=6"):
        check("two_sided_ring", collective, fabric(name))
    check("two_sided_ring", collective, job(fabric("terarack:nodes=9"), [5, 0, 7, 2, 8, 4]))


@pytest.mark.parametrize("nodes", [15, 16])
def test_closed_form_on_a_ring(nodes):
    """T = R + (N - 1) / N x V over the rate of a direction, and the bound but for R: twice as fast as one direction."""
    where = fabric("terarack", nodes=nodes, striping=True)
    size = 240 * 1024 * 1024
    both = compile(where, "all_reduce", size, algorithm="two_sided_ring").simulate(
        compute="none", assumptions="published"
    )
    one = compile(where, "all_reduce", size, algorithm="ring").simulate(compute="none", assumptions="published")
    rate = where.rate_bits_per_s * where.num_wavelengths
    assert both.totals()["transfer_s"] <= (nodes - 1) / nodes * size * 8 / rate * (1 + 1e-9)
    assert both.totals()["transfer_s"] == pytest.approx(one.totals()["transfer_s"] / 2, rel=1e-9)


def test_what_is_declined():
    """Nodes that are not joined."""
    assert "no order" in str(reason_declined("two_sided_ring", "all_reduce", job(fabric("oddl:shape=3x3"), [0, 4])))


@pytest.mark.parametrize("nodes", [5, 16, 256])
def test_pieces_use_all_wavelengths(nodes):
    """TeraRack without striping: one retuning and 2 (N-1)/N of the message on all wavelengths of both directions."""
    where = fabric("terarack", nodes=nodes)
    wavelengths = where.lasers_per_port
    plan = compile(where, "all_reduce", "1GB", algorithm=f"two_sided_ring:pieces={2 * wavelengths}")
    due = where.reconfiguration_s + 2 * (nodes - 1) / nodes * 8e9 / (2 * wavelengths * where.rate_bits_per_s)
    assert plan.simulate(compute="none", assumptions="published").total_s == pytest.approx(due, rel=1e-3)
    fastest = compile(where, "all_reduce", "1GB", assumptions="published")
    assert fastest.simulate(assumptions="published").total_s <= plan.simulate(assumptions="published").total_s


@pytest.mark.parametrize("pieces", [1, 2, 3, 8])
def test_any_number_of_pieces(pieces):
    """Odd and even rings."""
    for nodes in (1, 2, 5, 6):
        for collective in ("all_reduce", "reduce_scatter", "all_gather"):
            check(f"two_sided_ring:pieces={pieces}", collective, fabric("terarack", nodes=nodes))


def test_impossible_numbers_of_pieces():
    """Refused with the range."""
    assert "pieces=0 is not 1 to" in reason_declined("two_sided_ring:pieces=0", "all_reduce", fabric("ideal", nodes=8))
