"""Parts that a circuit passes are the elements of the netlist between its transmitter and its photodiode.

The netlist knows no circuits: which elements lie on a way from one port to another follows from its links alone.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest

from opticcl.fabrics import fabric
from opticcl.ir import Circuits, Fabric, Op, PartUse, Transfers
from opticcl.optics.rounds import lanes_of

GROUPS = {
    "ramp:groups=2,racks=2,wavelengths=2": {
        "transmitter": "modulator",
        "receiver": "combiner",
        "tx_gate": "tx_gate",
        "rx_gate": "rx_gate",
        "input_fibre": "fibre_up",
        "output_fibre": "fibre_down",
        "star": "star",
    },
    "sipac:radix=3,levels=2": {
        "comb_laser": "modulator",
        "input_fibre": "fibre_up",
        "output_fibre": "fibre_down",
    },
    "oddl:shape=2x4": {
        "transmitter": "transmitter",
        "receiver": "demux",
        "input_fibre": "fibre_up",
        "output_fibre": "fibre_down",
    },
}
"""Kind of part -> group of elements of the netlist that it is."""

Parts = Callable[[Circuits], Iterator[PartUse]]


def ways(where: Fabric) -> Circuits:
    """A circuit on every port that joins each pair of nodes."""
    pairs = np.argwhere(~np.eye(where.num_nodes, dtype=bool))
    every = where.options(pairs[:, 0], pairs[:, 1]).circuits
    return every.take(np.unique(np.stack([every.src, every.dst, every.port]), axis=1, return_index=True)[1])


def reached(starts: np.ndarray, source: np.ndarray, target: np.ndarray, elements: int) -> np.ndarray:
    """Whether links lead from each start to each element, bool (elements, starts).

    Args:
        starts: elements, int64 (starts,).
        source, target: elements that each link joins.
        elements: number of all.
    """
    found = np.zeros((elements, len(starts)), bool)
    found[starts, np.arange(len(starts))] = True
    while True:
        further = found.copy()
        np.logical_or.at(further, target, found[source])
        if np.array_equal(further, found):
            return found
        found = further


@cache
def elements_passed(spec: str) -> dict[str, set[tuple[int, int]]]:
    """(circuit, element) of each kind of part: on a way from the transmitter of a circuit to its first photodiode."""
    where = fabric(spec)
    net, circuits = where.netlist(), ways(where)
    counts = [group.count for group in net.groups]
    first = dict(zip([group.name for group in net.groups], np.cumsum([0, *counts]), strict=False))
    ends = []
    for side in ("n_out", "n_in"):
        ports = [np.arange(group.count).repeat(getattr(group, side)) + first[group.name] for group in net.groups]
        ends.append(np.concatenate(ports))
    output, target = net.links()
    source, target = ends[0][output], ends[1][target]
    transfers = Transfers.of(circuits.src, circuits.dst, 0, 1, Op.COPY)
    lanes = lanes_of(where, Circuits.of(np.arange(len(circuits)), *columns(circuits)), transfers)
    circuit, lane = np.unique(lanes.circuit, return_index=True)
    ahead = reached(first[net.transmitter] + lanes.transmitter[lane], source, target, sum(counts))
    behind = reached(first[net.photodiodes.name] + lanes.photodiode[lane], target, source, sum(counts))
    found = {}
    for kind, name in GROUPS[spec].items():
        of_group = slice(first[name], first[name] + counts[net.position[name]])
        element, row = np.nonzero(ahead[of_group] & behind[of_group])
        found[kind] = set(zip(circuit[row].tolist(), element.tolist(), strict=True))
    return found


def kinds_that_differ(spec: str, parts: Parts) -> set[str]:
    """Kinds of which some circuit passes other parts than elements.

    Args:
        spec: fabric whose netlist is followed.
        parts: of circuits.
    """
    said: dict[str, set[tuple[int, int]]] = {kind: set() for kind in GROUPS[spec]}
    for use in parts(ways(fabric(spec))):
        if use.kind in said:
            said[use.kind] |= set(zip(use.owners().tolist(), use.part.tolist(), strict=True))
    passed = elements_passed(spec)
    return {kind for kind in said if said[kind] != passed[kind]}


def columns(circuits: Circuits) -> tuple[object, ...]:
    """What `Circuits.of` takes after the transfer."""
    path = (circuits.hops, circuits.hop_offsets)
    return (
        circuits.src, circuits.dst, circuits.port, circuits.wavelength_lo, circuits.wavelength_n, path,
        circuits.wavelength_step,
    )  # fmt: skip


@pytest.mark.parametrize("spec", GROUPS)
def test_circuits_pass_the_elements_between_their_ends(spec):
    """By number, for every pair of nodes and port."""
    assert kinds_that_differ(spec, fabric(spec).parts_used) == set()
    assert all(elements_passed(spec).values())


@pytest.mark.parametrize(("spec", "kind"), [(spec, kind) for spec, groups in GROUPS.items() for kind in groups])
def test_a_part_that_is_left_out_is_noticed(spec, kind):
    """Mutant: light passes a part that `parts_used` does not name."""
    where = fabric(spec)

    def without_one(circuits: Circuits) -> Iterator[PartUse]:
        for use in where.parts_used(circuits):
            kept = use.part != use.part[0] if use.kind == kind else np.ones(len(use.part), bool)
            yield PartUse(use.kind, use.part[kept], use.owners()[kept])

    assert kinds_that_differ(spec, without_one) == {kind}


@pytest.mark.parametrize(
    "spec",
    [
        "ramp:groups=3,racks=2,wavelengths=3,transceivers_per_group=2",
        "ramp:groups=2,racks=2,wavelengths=2,subnet=route_broadcast",
        "sipac:radices=2x3,wavelengths=6",
        "terarack:nodes=3,wavelengths=4,rings=2",
    ],
)
def test_devices_belong_to_the_node_that_the_place_of_their_element_names(spec):
    """Of every group of elements whose devices belong to nodes; several elements may share a device."""
    found = 0
    for group in fabric(spec).netlist().groups:
        if group.node_of is None:
            continue
        element = np.arange(group.count)
        nodes = group.node_of(element if group.control is None else group.control(element))
        named = [int(re.match(r"node (\d+) ", group.place(one)).group(1)) for one in element.tolist()]
        assert nodes.tolist() == named, group.name
        found += 1
    assert found >= 2
