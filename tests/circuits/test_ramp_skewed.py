"""Circuits of skewed exchanges: by some senders and moves, and over the planes that work."""

import itertools
from types import SimpleNamespace

import pytest
from tests.verify.test_symmetric_steps import not_listed, ramp

from opticcl.circuits import lower
from opticcl.circuits.ramp import _first_fit, _planes_that_work
from opticcl.fabrics import fabric
from opticcl.fabrics.ramp import Ramp
from opticcl.ir import Condition, Op, Transfers
from opticcl.ir.symmetric_steps import symmetric_step
from opticcl.schedule import generate
from opticcl.verify import verify

EACH = [
    ((3, 2, 6), "all_to_all", "skewed_exchange:steps=1"),
    ((3, 2, 6), "all_reduce", "skewed_exchange:block=2,steps=4"),
    ((5, 3, 5), "all_to_all", "skewed_exchange:block=1"),
    ((4, 4, 8), "all_to_all", "skewed_exchange:classes=4"),
    ((3, 2, 6), "all_to_all", "skewed_exchange:block=2,parts=3,direct=2"),
    ((4, 4, 8), "all_reduce", "skewed_exchange:block=2,steps=2"),
]


def rows_of(circuits):
    """Sender, receiver, port, wavelength and gates of each circuit."""
    gates = circuits.hops.reshape(len(circuits), -1).T
    return sorted(zip(circuits.src, circuits.dst, circuits.port, circuits.wavelength_lo, *gates, strict=True))


def orbit(sender, moves):
    """Nodes that moves take a sender to, itself included."""
    found, todo = {sender}, [sender]
    while todo:
        at = todo.pop()
        images = {int(move.nodes[at]) for move in moves} - found
        found |= images
        todo += images
    return found


@pytest.mark.parametrize(("shape", "collective", "algorithm"), EACH)
def test_images_of_some_senders_are_all_circuits(monkeypatch, shape, collective, algorithm):
    """Round by round, each once: the moves join as many senders as there are nodes for each that is listed."""
    listed, plan = not_listed(monkeypatch, ramp(shape), collective, algorithm)
    for i in range(plan.schedule.num_steps):
        if symmetric_step(plan.schedule, i) is None:
            continue
        found = plan.circuits.symmetric(i)
        joined = [orbit(sender, found.moves) for sender in found.senders.tolist()]
        assert sum(map(len, joined)) == plan.fabric.num_nodes == len(set().union(*joined))
        for whole, some in zip(listed.circuits.rounds(i), found.rounds, strict=True):
            every, todo = set(rows_of(some)), [some]
            while todo:
                some = todo.pop()
                for move in found.moves:
                    image = move.of(some)
                    if not every >= set(rows_of(image)):
                        every |= set(rows_of(image))
                        todo.append(image)
            assert sorted(every) == rows_of(whole)


@pytest.mark.parametrize(
    ("kind", "index", "plane"),
    [
        ("tx_gate", (5 * 8 + 3) * 4 + 2, 1), ("rx_gate", (5 * 8 + 7) * 4, 3), ("input_fibre", 8 * 4 + 3, 0),
        ("output_fibre", (6 * 8 + 4) * 4 + 3, 2), ("transmitter", 5 * 8 + 6, 3), ("receiver", 2 * 8 + 1, 0), ("node", 6, None),
    ],
)  # fmt: skip
def test_a_plane_with_a_failed_part_does_not_work(kind, index, plane):
    """Two transceivers a plane, four planes; a failed node hurts none."""
    machine = SimpleNamespace(groups=4, ports_per_node=8, transceivers_per_group=2)
    where = SimpleNamespace(machine_as=lambda _: machine, conditions=[SimpleNamespace(kind=kind, index=index)])
    assert _planes_that_work(where).tolist() == [one for one in range(4) if one != plane]


@pytest.mark.parametrize(
    ("parts", "rounds"),
    [
        ([], 15),
        ([(3, 2)], 19),
        ([(3, 0), (3, 2)], 25),
        ([(p, p) for p in range(4)], 19),
        ([(p, p) for p in range(5)], 19),
    ],
)
def test_labels_are_dealt_over_the_planes_that_work(parts, rounds):
    """75 labels over five planes, or over four or three where that takes fewer rounds than a repair."""
    where = fabric("ramp:groups=5,racks=3,wavelengths=5").without(
        [Condition("transmitter", 5 * n + p) for n, p in parts]
    )
    plan = lower(where, generate("skewed_exchange:steps=1", "all_to_all", where))
    assert verify(plan).ok
    assert len(plan.rounds(0)) == rounds


def halves(machine, one, other):
    """Whether two circuits between four nodes cannot have the same transceiver group, since their light would meet."""
    group, rack, place = machine.nodes_per_group, machine.wavelengths, machine.wavelengths
    between = [(src // group, dst // group, dst % place) for src, dst in (one, other)]
    if machine.subnet == "route_switch":
        between = [(src // rack, *cell[1:]) for (src, _), cell in zip((one, other), between, strict=True)]
    elif machine.signals_meet and machine.subnet == "broadcast":
        between = [cell[:2] for cell in between]
    elif machine.subnet == "route_broadcast" and not machine.signals_meet:
        between = [(*cell, src % place) for (src, _), cell in zip((one, other), between, strict=True)]
    return between[0] == between[1]


@pytest.mark.parametrize("subnet", ["broadcast", "route_broadcast", "route_switch"])
@pytest.mark.parametrize("meet", [False, True])
def test_two_circuits_share_what_their_light_does_not_meet_in(subnet, meet):
    """Both transceiver groups of two each, or one of them where it meets; some pairs of 16 nodes."""
    where = fabric(f"ramp:groups=2,racks=2,wavelengths=4,subnet={subnet}" + ",receiver=none" * meet)
    machine = where.machine_as(Ramp)
    seen = set()
    for pair in itertools.islice(itertools.permutations(range(where.num_nodes), 4), 0, None, 101):
        one, other = pair[:2], pair[2:]
        transfers = Transfers.of([one[0], other[0]], [one[1], other[1]], [0, 1], 1, Op.COPY)
        (circuits,) = _first_fit(where, transfers)
        met = halves(machine, one, other)
        assert len(circuits) == (2 if met else 4), (one, other)
        seen.add(met)
    assert seen == {False, True}
