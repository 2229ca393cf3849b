"""Optical circuit switches: published numbers, what the switches cannot do, links that stand, mutants."""

from dataclasses import replace

import numpy as np
import pytest
from tests.mutants.test_mutants import with_circuits

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.fabrics.ocs import SHARES
from opticcl.ir import Circuits, Fabric
from opticcl.optics.values import optics
from opticcl.verify import verify
from opticcl.verify.time.programme import check_programme, rules_of

LAW = {"assumptions": "published", "compute": "none", "initial": "warm"}


def circuit(src: list[int], dst: list[int], plane: int, path: list[list[int]], shares: int = SHARES) -> Circuits:
    """Circuits of two nodes or more on one plane."""
    return Circuits.of(np.arange(len(src)), np.array(src), np.array(dst), plane, 0, shares, np.array(path))


def test_published_numbers():
    """arXiv 2602.10468: 64 nodes, one port of 800 Gb/s, 500 ns a hop."""
    made = fabric("ocs")
    assert (made.num_nodes, made.ports_per_node, made.hop_delay) == (64, 1, 500e-9)
    assert made.node_rate_bits_per_s == 800e9
    assert fabric("ocs:planes=8,rate=50GB/s").node_rate_bits_per_s == 8 * 400e9
    assert fabric_at_scale("ocs", 16, "100 Gb/s").node_rate_bits_per_s == pytest.approx(100e9)
    assert [(part.kind, part.count) for part in fabric("ocs:nodes=8,planes=2").parts()] == [
        ("transceiver", 16), ("circuit_switch", 2), ("fibre", 32)
    ]  # fmt: skip


def test_the_law_of_published_planners():
    """alpha + (delta + beta m) h for each step, R for each change; the first links stand."""
    for algorithm, due in (("digit_shifts:cuts=2x4,shifts=1x4x16", 9.55e-6), ("digit_shifts:shifts=1", 34.82e-6)):
        plan = opticcl.compile("ocs:reconfiguration=1us", "all_to_all", "1 KiB", algorithm=algorithm)
        assert plan.verify().ok
        assert plan.simulate(**LAW).total_s == pytest.approx(due, rel=1e-3)


def test_a_setting_is_a_permutation():
    """Two links of one port, in or out, cannot stand together; two on other planes can."""
    made = fabric("ocs:nodes=4,planes=2")
    for src, dst, path in (([0, 0], [1, 2], [[0], [0]]), ([0, 1], [2, 2], [[0], [1]])):
        faults = {
            fault.rule: fault.circuits.tolist()
            for fault in made.faults(circuit(src, dst, 0, path))
            if len(fault.circuits)
        }
        assert faults == {"port_set_twice": [1]}
    on_two = Circuits.of([0, 1], np.array([0, 0]), np.array([1, 2]), np.array([0, 1]), 0, SHARES, np.array([[0], [4]]))
    assert not any(len(fault.circuits) for fault in made.faults(on_two))


@pytest.mark.parametrize(
    "path",
    [[[1, 5]], [[0, 1]], [[0, 8]], [[4, 9]], [[0, 11]]],
    ids=["sender", "plane", "node", "other plane", "itself"],
)
def test_paths_that_lead_elsewhere(path):
    """0 -> 1 -> 3 on plane 0 is hop 0 and hop 2 * 4 + 1."""
    made = fabric("ocs:nodes=4,planes=2")
    good = circuit([0], [3], 0, [[0, 9]])
    assert not any(len(fault.circuits) for fault in made.faults(good))
    found = {fault.rule for fault in made.faults(circuit([0], [3], 0, path)) if len(fault.circuits)}
    assert found == {"path_broken"}


def test_too_much_on_a_shared_link_is_refused():
    """Three circuits of a third each fit a link; one share more does not."""
    plan = opticcl.compile("ocs:nodes=8", "all_to_all", "8 KB", algorithm="digit_shifts:shifts=1").circuits
    assert verify(plan).ok
    step = 2  # shift by 4: four circuits on every link

    def more(circuits: Circuits) -> Circuits:
        shares = circuits.wavelength_n.copy()
        shares[3] += 1
        return replace(circuits, wavelength_n=shares)

    found = verify(with_circuits(plan, more, step))
    assert {v.rule for v in found.violations} == {"transmitter_shared", "receiver_shared"}
    assert "at most 720,720,000 shares" in str(found.violations[0])


def test_links_stand_until_their_ports_get_others():
    """On two planes, what one plane holds is not charged again after steps on the other."""
    plan = opticcl.compile("ocs:nodes=8", "all_reduce", "8 KB", algorithm="digit_shifts:cuts=3,shifts=1x1")
    assert plan.simulate().reconfiguration_s.sum() == pytest.approx(10e-6)
    halves = opticcl.compile("ocs:nodes=8", "all_reduce", "8 KB", algorithm="digit_shifts:radices=2x2x2")
    assert halves.simulate().reconfiguration_s.sum() == pytest.approx(50e-6)  # 1 2 4 4 2 1: the middle stands


@pytest.mark.parametrize("engine", ["closed_form", "flow:mode=asynchronous", "device"])
@pytest.mark.parametrize("algorithm", ["digit_shifts:cuts=1,shifts=1x2", "mesh", "bruck"])
def test_programmes_are_possible(engine, algorithm):
    """Relays, rounds and planes under the laws of time."""
    plan = opticcl.compile("ocs:nodes=8,planes=2,control=1us", "all_to_all", "1 MB", algorithm=algorithm)
    times = plan.programme(engine)
    assert check_programme(plan.circuits, times, rules_of(times)).ok


def test_shared_links_over_time_are_counted():
    """Circuits moved so that they overlap exceed a port."""
    plan = opticcl.compile("ocs:nodes=8", "all_to_all", "8 MB", algorithm="digit_shifts:shifts=1")
    times = plan.programme("closed_form")
    circuits = times.circuits
    moved = np.where(circuits.step == 1, circuits.start_s - 5e-6, circuits.start_s)
    found = check_programme(plan.circuits, replace(times, circuits=replace(circuits, start_s=moved)), rules_of(times))
    assert "overlap" in {violation.law for violation in found.violations}


@pytest.mark.parametrize(
    ("algorithm", "said"),
    [
        ("digit_shifts:radices=3x4", "radices=3x4 make 12 nodes, not 8; try radices=2x2x2"),
        ("digit_shifts:cuts=1", "cuts=1 without shifts"),
        ("digit_shifts:cuts=1,shifts=1", "shifts=1 are 1, with 1 cuts"),
        ("digit_shifts:cuts=3,shifts=1x2", "cuts=3 are not ascending below the 3 steps"),
        ("digit_shifts:shifts=9", "shifts are below the 8 nodes"),
        ("digit_shifts:shifts=2", "links of shift 2 do not lead 1 nodes ahead in step 0; try shift 1"),
    ],
)
def test_held_links_that_do_not_serve(algorithm, said):
    """Declined with the reason and what to try."""
    with pytest.raises(UnsupportedError, match=said):
        opticcl.compile("ocs:nodes=8", "all_to_all", "8 KB", algorithm=algorithm)


# --- links, settings and light, counted by hand -----------------------------------------------------------------------


def conflicts(where: Fabric, rows: list[tuple[int, int, int]]) -> list[int]:
    """Circuits (plane, from, to) of one link each that `faults` lists as a second link of a port."""
    plane, src, dst = np.array(rows).T
    circuits = Circuits.of(np.arange(len(rows)), src, dst, plane, 0, 1, (plane * where.num_nodes + src)[:, None])
    found = {fault.rule: fault.circuits.tolist() for fault in where.faults(circuits)}
    assert not found.pop("path_broken")
    return found["port_set_twice"]


def test_every_pair_of_links() -> None:
    """On 3 nodes and 2 planes: two links conflict if they share one end of one plane and not both."""
    where = fabric("ocs:nodes=3,planes=2")
    links = [(plane, a, b) for plane in range(2) for a in range(3) for b in range(3) if a != b]
    for one in links:
        for other in links:
            apart = one[0] == other[0] and (one[1] == other[1]) != (one[2] == other[2])
            assert bool(conflicts(where, [one, other])) == apart
    four = fabric("ocs:nodes=4,planes=2")
    assert conflicts(four, [(0, 0, 1), (0, 1, 2), (0, 0, 3)]) == [2]  # 0 sends to 1 and 3
    assert conflicts(four, [(1, 1, 0), (1, 2, 1), (1, 3, 0)]) == [2]  # 0 receives from 1 and 3
    assert conflicts(where, [(0, 0, 1), (0, 0, 2), (0, 0, 1)]) == [1]


def test_links_between_nodes_that_forward() -> None:
    """0 -> 1 -> 3 on plane 0 and 2 -> 0 on plane 1 of 4 nodes: port p of node i is number 2 i + p."""
    where = fabric("ocs:nodes=4,planes=2,reconfiguration=2us")
    circuits = Circuits.of([0, 1], [0, 2], [3, 0], [0, 1], 0, [30, 7], (np.array([0, 9, 6]), np.array([0, 2, 3])))
    assert not any(len(fault.circuits) for fault in where.faults(circuits))
    sends, receives = [0, 2, 5], [2, 6, 1]
    tx, rx = where.usage(circuits)
    assert (tx.index.tolist(), rx.index.tolist()) == (sends, receives)
    assert tx.amount.tolist() == rx.amount.tolist() == [30, 30, 7]
    assert tx.circuit.tolist() == rx.circuit.tolist() == [0, 0, 1]
    into, out = where.settings(circuits)
    assert (into.index.tolist(), into.setting.tolist()) == (sends, [1, 3, 0])
    assert (out.index.tolist(), out.setting.tolist()) == (receives, [0, 1, 2])
    assert [column.tolist() for column in where.links_set(circuits)] == [sends, receives]
    assert [(d.kind, d.count, d.setting_time_s) for d in where.devices] == [("input", 8, 2e-6), ("output", 8, 2e-6)]
    for resource in where.resources:
        assert (resource.count, resource.capacity, resource.per_wavelength) == (8, SHARES, False)
        assert resource.in_wavelengths


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_a_circuit_without_links_is_no_path(empty: int) -> None:
    """First, in the middle or last: it alone is refused."""
    paths = [[0], [1], [2]]
    paths[empty] = []
    offsets = np.cumsum([0, *map(len, paths)])
    path = (np.concatenate([np.array(one, int) for one in paths]), offsets)
    circuits = Circuits.of(np.arange(3), np.arange(3), np.arange(1, 4), 0, 0, 1, path)
    (fault,) = fabric("ocs:nodes=4").faults(circuits)
    assert (fault.rule, fault.circuits.tolist()) == ("path_broken", [empty])


def test_light_of_a_link() -> None:
    """Two fibres and a switch; the largest loss of the switch is what is left of 4 dB after 0.1 km of 0.2 dB/km twice."""
    where = fabric("ocs:nodes=5,planes=2")
    path = where.light_path
    assert path.kinds == ("fibre", "circuit_switch")
    (limit,) = where.limits(optics(path.table, "typical"))
    assert (limit.name, limit.value) == ("largest_switch_loss_db", pytest.approx(4.0 - 2 * 0.02))
    assert limit.text == "a switch may lose up to 3.96 dB"
    (limit,) = where.limits(optics(path.table, "typical", {"launch": "-5dBm"}))
    assert (limit.value, limit.text) == (None, "not even a switch without loss closes")
    for launch, due in (("-4dBm", 0.0), ("-3.5dBm", 0.5)):
        (limit,) = where.limits(optics(path.table, "typical", {"launch": launch, "fibre.loss": "0dB/km"}))
        assert (limit.value, limit.text) == (due, f"a switch may lose up to {due:.2f} dB")
    lit = Circuits.of([0, 1], [0, 1], [1, 2], 0, 0, 1, np.array([[0], [1]]))
    assert path.counts(lit).tolist() == [[1, 1, 1], [1, 1, 1]]
    assert (path.extremes.tolist(), path.typical.tolist()) == ([[1, 1, 1]], [1, 1, 1])
    floor = assumptions("common").floor
    passed = where.hop_passages(floor)
    assert passed.fibre_m.tolist() == [floor.through_centre_m(5)] * 20
    assert passed.receivers.tolist() == [1] * 20
    assert passed.switches.tolist() == [0] * 10 + [1] * 10
