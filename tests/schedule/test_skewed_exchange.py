"""Direct exchanges on a RAMP whose racks are skewed against each other."""

from math import ceil

import pytest
from tests.schedule.oracle import check

from opticcl.fabrics import fabric
from opticcl.ir import Condition
from opticcl.plans.plan import compile

SHAPES = [(3, 2, 6), (5, 3, 10), (4, 4, 8)]
EACH = [
    ("all_reduce", 2),
    ("all_reduce", 3),
    ("all_reduce", 4),
    ("reduce_scatter", 2),
    ("all_gather", 2),
    ("all_to_all", 1),
    ("all_to_all", 2),
    ("broadcast", 1),
    ("barrier", 2),
]


def ramp(shape):
    """A machine of x groups, J racks and L places."""
    return fabric("ramp", **dict(zip(("groups", "racks", "wavelengths"), shape, strict=True)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("collective", "steps"), EACH)
def test_right_at_every_rank(shape, collective, steps):
    """Data and light with one rack a block and with all of them."""
    where = ramp(shape)
    for block in {1, shape[1]}:
        name = f"skewed_exchange:block={block},steps={steps}"
        assert check(name, collective, where).num_steps == steps


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [1_000, 1_000_000])
def test_closed_form(shape, size):
    """Latency of 70 slots a step, p rounds of A, (J / p) (L / x) of B, N / x of all at once, L / x of a broadcast."""
    x, racks, places = shape
    where, n = ramp(shape), x * racks * places
    for block in (1, racks):
        a, b = block, racks // block * places // x
        joined = x * block, n // (x * block)

        def slots(share):
            return ceil(size * share / where.slot_payload_bytes - 1e-9)

        due = {
            ("all_to_all", 2): 140 + a * slots(1 / joined[0]) + b * slots(1 / joined[1]),
            ("reduce_scatter", 2): 140 + a * slots(1 / joined[0]) + b * slots(1 / n),
            ("all_gather", 2): 140 + b * slots(1 / n) + a * slots(1 / joined[0]),
            ("all_reduce", 2): 140 + (a + b) * slots(1),
            ("all_reduce", 3): 210 + (2 * a + b) * slots(1 / joined[0]),
            ("all_reduce", 4): 280 + 2 * a * slots(1 / joined[0]) + 2 * b * slots(1 / n),
            ("all_to_all", 1): 70 + n // x * slots(1 / n),
            ("broadcast", 1): 70 + places // x * slots(1),
        }
        for (collective, steps), number in due.items():
            plan = compile(where, collective, size, algorithm=f"skewed_exchange:block={block},steps={steps}")
            time = plan.simulate(assumptions="published", rounds="in_line", compute="none").total_s
            assert time == pytest.approx(number * where.slot_s, rel=1e-9), (collective, steps, block)


# two classes modulo any x; more in fields of 3, 4 and 5 groups
CLASSES = [((3, 2, 6), 2), ((3, 2, 6), 3), ((4, 3, 8), 4), ((5, 3, 10), 5), ((6, 5, 6), 2), ((2, 1, 4), 2)]


@pytest.mark.parametrize(("shape", "classes"), CLASSES)
def test_classes(shape, classes):
    """Over C and D: data and light, and N / q x rounds, then q - 1 of a transfer on all x transceivers."""
    x, racks, places = shape
    where, n, size = ramp(shape), x * racks * places, 300_000
    name = f"skewed_exchange:classes={classes}"
    assert check(name, "all_to_all", where).num_steps == 2
    plan = compile(where, "all_to_all", size, algorithm=name)
    assert plan.verify(every_chunk=True).ok
    assert [len(plan.circuits.rounds(i)) for i in range(2)] == [n // (classes * x), classes - 1]

    def slots(share):
        return ceil(size * share / where.slot_payload_bytes - 1e-9)

    due = 140 + n // (classes * x) * slots(classes / n) + (classes - 1) * slots(1 / (classes * x))
    time = plan.simulate(assumptions="published", rounds="in_line", compute="none").total_s
    assert time == pytest.approx(due * where.slot_s, rel=1e-9)


PARTS = [((3, 2, 6), 3, 2), ((5, 3, 10), 4, 3), ((4, 4, 8), 7, 5), ((2, 1, 4), 3, 1)]


@pytest.mark.parametrize(("shape", "parts", "direct"), PARTS)
def test_parts(shape, parts, direct):
    """Some parts with all nodes at once, beside A, the others over A and B: data, light and slots."""
    x, racks, places = shape
    where, n, size = ramp(shape), x * racks * places, 300_000
    for block in {1, racks}:
        name = f"skewed_exchange:block={block},parts={parts},direct={direct}"
        assert check(name, "all_to_all", where).num_steps == 2
        plan = compile(where, "all_to_all", size, algorithm=name)
        assert plan.schedule.collective.num_chunks == parts * n
        assert n > 100 or plan.verify(every_chunk=True).ok
        b = racks // block * places // x
        assert [len(plan.circuits.rounds(i)) for i in range(2)] == [n // x + block, b]
        rest = size * (parts - direct) / parts

        def slots(share):
            return ceil(share / where.slot_payload_bytes - 1e-9)

        due = 140 + n // x * slots(size * direct / parts / n)
        due += block * slots(rest / (x * block)) + b * slots(rest * x * block / n)
        time = plan.simulate(assumptions="published", rounds="in_line", compute="none").total_s
        assert time == pytest.approx(due * where.slot_s, rel=1e-9)


def test_classes_around_what_has_failed():
    """Labels of C, and the transceivers of a transfer of D, are those of the planes that work."""
    where = ramp((3, 2, 6)).without([Condition("transmitter", node * 3 + 1) for node in range(36)])
    plan = compile(where, "all_to_all", "1MB", algorithm="skewed_exchange:classes=2")
    assert plan.verify().ok
    assert [len(plan.circuits.rounds(i)) for i in range(2)] == [9, 1]
    assert set(plan.circuits.rounds(1)[0].port.tolist()) == {0, 2}


@pytest.mark.parametrize("subnet", ["route_broadcast", "route_switch"])
def test_other_subnets(subnet):
    """Where routers force the wavelength, planes are found by first fit."""
    where = fabric("ramp:groups=3,racks=3,wavelengths=6", subnet=subnet)
    assert compile(where, "all_to_all", "1MB", algorithm="skewed_exchange").verify().ok


def test_broadcast_on_the_largest_machine():
    """65,536 nodes in one step: 1.48 us for 1 KB."""
    plan = compile("ramp", "broadcast", "1KB", algorithm="skewed_exchange")
    assert plan.simulate(assumptions="published", compute="none", rounds="in_line").total_s == pytest.approx(1.48e-6)
