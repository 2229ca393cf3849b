"""Jobs and fabrics as values: ring orders of what is left of a machine, equality, hashing and pickling."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.altered import altered
from tests.profiles import examples
from tests.strategies import fabrics

from opticcl.circuits import lower
from opticcl.errors import FabricError, ParameterError, UnsupportedError
from opticcl.fabrics import FABRICS, Job, fabric, fabric_at_scale, job
from opticcl.fabrics.ideal import Ideal
from opticcl.fabrics.job import survivors
from opticcl.fabrics.lightpath import Lightpath
from opticcl.fabrics.ramp import Ramp
from opticcl.ir import Circuits, Condition, Fabric
from opticcl.schedule import generate
from opticcl.verify import verify

SPECIFICATIONS = (
    "bcube:radix=3,levels=2",
    "dragonfly:nodes=11,nodes_per_router=2,routers_per_group=3,global_links=1",
    "fat_tree:nodes=29,preset=oddl",
    "ideal:nodes=5",
    "leaf_spine:nodes=20,nodes_per_leaf=6,spines=3,routing=ecmp,seed=4",
    "lightpath:shape=3x5,dead_tiles=7",
    "ocs:nodes=7,planes=2",
    "oddl:shape=2x4",
    "ramp:groups=3,racks=2,wavelengths=3",
    "sip_ring:nodes=7,wavelengths=4",
    "sipac:radices=2x4x3,channels=retuned",
    "superpod:nodes=13,preset=sipac",
    "terarack:nodes=15,wavelengths=2",
    "terarack_torus:shape=3x5",
    "topoopt:nodes=13,degree=2",
    "torus:shape=2x3x4",
)


def without(machine: Fabric, *lost: int) -> Job:
    """The job with all nodes but some."""
    return job(machine, np.delete(np.arange(machine.num_machine_nodes), lost))


# --- ring orders --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "specification",
    [
        "oddl:shape=4x4",
        "oddl:shape=3x5",
        "sipac:radix=4,levels=2",
        "sipac:radices=2x4x3",
    ],
)
def test_a_ring_survives_the_loss_of_any_node(specification: str) -> None:
    """Neighbours in the job's order are linked, and an all-reduce by ring verifies, whichever node is missing."""
    machine = fabric(specification)
    for lost in range(machine.num_nodes):
        left = without(machine, lost)
        order = left.ring_order()
        assert sorted(order.tolist()) == list(range(machine.num_nodes - 1))
        assert left.linked(order, np.roll(order, -1)).all()
        assert verify(lower(left, generate("ring", "all_reduce", left))).ok


@pytest.mark.parametrize("levels", [2, 3])
def test_an_odd_part_of_a_hypercube_has_no_ring(levels: int) -> None:
    """Neighbours differ in one binary digit, so a closed order has an even number of nodes; ring declines in words."""
    machine = fabric(f"sipac:radix=2,levels={levels}")
    assert verify(lower(machine, generate("ring", "all_reduce", machine))).ok
    left = without(machine, 1)
    assert left.ring_order().tolist() == list(range(machine.num_nodes - 1))
    with pytest.raises(UnsupportedError, match="no order of its nodes links"):
        generate("ring", "all_reduce", left)


@given(data=st.data())
@examples(40)
def test_any_part_has_a_ring_or_ring_declines(data: st.DataObject) -> None:
    """The order has every rank once; the algorithm accepts the job exactly where all neighbours are linked."""
    machine = data.draw(fabrics(32))
    usable = np.arange(machine.num_nodes)
    ranks = data.draw(st.permutations(usable.tolist()))[: data.draw(st.integers(1, machine.num_nodes))]
    part = job(machine, machine.machine_nodes(np.array(ranks)))
    order = part.ring_order()
    assert sorted(order.tolist()) == list(range(len(ranks)))
    if part.num_nodes == 1 or part.linked(order, np.roll(order, -1)).all():
        assert verify(lower(part, generate("ring", "all_reduce", part))).ok
    else:
        with pytest.raises(UnsupportedError):
            generate("ring", "all_reduce", part)


def test_a_job_keeps_its_own_order_where_neighbours_are_linked() -> None:
    """The order of the ranks is the caller's: it is changed only where it makes no ring."""
    row = job(fabric("oddl:shape=4x4"), [3, 1, 2, 0])
    assert row.ring_order().tolist() == [0, 1, 2, 3]
    crossed = job(fabric("oddl:shape=4x4"), [0, 5, 1, 4])
    order = crossed.node_of_rank[crossed.ring_order()].tolist()
    assert order in ([0, 1, 5, 4], [0, 4, 5, 1])


def test_links_one_way_are_enough_for_the_own_order() -> None:
    """A ring of links from each node to the next, and one of links both ways in another order: nothing is changed."""
    ahead, both = [0, 1, 2, 3, 4], [0, 2, 4, 1, 3]
    table = np.zeros((5, 5), bool)
    table[ahead, np.roll(ahead, -1)] = table[both, np.roll(both, -1)] = table[np.roll(both, -1), both] = True
    machine = altered(fabric("ideal:nodes=5"), links_all=False, linked=lambda self, src, dst: table[src, dst])
    assert not table[np.roll(ahead, -1), ahead].any()
    assert job(machine, range(5)).ring_order().tolist() == ahead
    other = job(machine, [1, 0, 2, 3, 4])
    order = other.node_of_rank[other.ring_order()]
    assert table[order, np.roll(order, -1)].all()


# --- part of a machine --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_a_job_delegates_to_its_machine(specification: str) -> None:
    """Numbers, parts, names and resources are the machine's; nodes and ranks are the job's."""
    machine = fabric(specification)
    ranks = np.arange(machine.num_nodes)[::2][::-1]
    part = job(machine, machine.machine_nodes(ranks))
    assert (part.num_nodes, part.num_machine_nodes) == (len(ranks), machine.num_machine_nodes)
    assert part.machine is machine
    assert part.name == machine.name
    assert part.parameters == machine.parameters
    for number in ("node_rate_bits_per_s", "num_wavelengths", "reconfiguration_s", "slot_s", "latency_s"):
        assert getattr(part, number) == getattr(machine, number)
    assert part.resources == machine.resources
    assert part.parts() == machine.parts()
    assert part.control_plane() == machine.control_plane()
    index = np.arange(min(5, machine.resources[0].count))
    assert part.place_names(0, index) == machine.place_names(0, index)
    assert part.kind_names(0, index)[0] == machine.kind_names(0, index)[0]
    src, dst = (side.ravel() for side in np.indices((len(ranks),) * 2))
    assert np.array_equal(part.linked(src, dst), machine.linked(ranks[src], ranks[dst]))
    distance = machine.distance(ranks[src], ranks[dst])
    found = part.distance(src, dst)
    assert (found is None) == (distance is None)
    assert distance is None or np.array_equal(found, distance)
    scaled = part.with_node_rate(1e12)
    assert scaled.node_rate_bits_per_s == pytest.approx(1e12)
    assert scaled.node_of_rank.tolist() == part.node_of_rank.tolist()


def test_a_job_on_a_job_is_a_job_on_the_machine() -> None:
    """Nodes are the machine's, and those that the first job does not have are refused."""
    machine = fabric("torus:shape=4x4")
    row = job(machine, range(4, 8))
    assert job(row, [7, 5]) == job(machine, [7, 5])
    with pytest.raises(FabricError, match=r"node \(0, 0\) is dead or not in the job"):
        job(row, [0])


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_a_job_has_the_parameters_of_its_machine(specification: str) -> None:
    """A rule reads them of the fabric that it is given; what no class has is an error, in a copy too."""
    machine = fabric(specification)
    part = pickle.loads(pickle.dumps(job(machine, [0])))
    assert {name: getattr(part, name) for name in machine.parameters} == machine.parameters
    with pytest.raises(AttributeError, match="radixes"):
        _ = part.radixes


def test_nodes_are_whole_numbers_of_the_machine() -> None:
    """Lists and arrays; the first node that is not there, or the one that is given twice, is named."""
    machine = fabric("ideal:nodes=8")
    for nodes in ([0, 7], np.array([0, 7], np.uint8)):
        assert job(machine, nodes).node_of_rank.tolist() == [0, 7]
    for other in (np.array([[0, 1], [2, 3]]), np.array([0.0, 1.0]), np.array(["0"]), [0.5], [[0, 1]], "0"):
        with pytest.raises(ParameterError, match="nodes: "):
            job(machine, other)
    for nodes in ([], np.array([], int), range(0)):
        with pytest.raises(FabricError, match=r"^ideal: a job needs at least one node$"):
            job(machine, nodes)
    for nodes, wrong in (([1, 8, -1], 8), ([-1, 8], -1), (np.array([7, 2**40]), 2**40)):
        with pytest.raises(FabricError, match=rf"^ideal: there is no node {wrong}; try 0 to 7$"):
            job(machine, nodes)
    with pytest.raises(FabricError, match=r"^ideal: node 5 is given twice; a job has each node once$"):
        job(machine, [3, 7, 5, 2, 7, 5])


def test_dead_nodes_are_in_no_job() -> None:
    """What is left of a machine is a job, unless its ranks leave dead nodes out themselves; without any it is the machine."""
    made = fabric("ramp:groups=3,racks=2,wavelengths=3,failed=node:3+node:5-15")
    assert isinstance(made, Job)
    assert made.node_of_rank.tolist() == [0, 1, 2, 4, 16, 17]
    assert isinstance(fabric("ramp:groups=3,racks=2,wavelengths=3,failed=star:3"), Ramp)
    assert isinstance(fabric("lightpath:shape=2x4,failed=node:3"), Lightpath)
    with pytest.raises(FabricError, match=r"^ramp: all nodes are dead; leave at least one$"):
        fabric("ramp:groups=3,racks=2,wavelengths=3,failed=node:0-17")


def test_a_job_loses_dead_nodes_and_keeps_its_order() -> None:
    """Nodes beside it do not matter, nor do parts that are no nodes: it stays the job that it is."""
    part = job(fabric("ramp:groups=3,racks=2,wavelengths=3"), [9, 2, 17, 4])
    assert part.without([Condition("node", 2), Condition("node", 3)]).node_of_rank.tolist() == [9, 17, 4]
    for condition in (Condition("node", 3), Condition("star", 3)):
        left = part.without([condition])
        assert left.node_of_rank.tolist() == [9, 2, 17, 4]
        assert left.conditions == (condition,)
    with pytest.raises(FabricError, match=r"^ramp: all nodes are dead; leave at least one$"):
        part.without([Condition("node", n) for n in (2, 4, 9, 17)])


def test_a_machine_of_any_size_is_as_it_is() -> None:
    """Its nodes are not listed: 8 PB would be."""
    machine = Ideal(nodes=10**15)
    assert survivors(machine) is machine


# --- values -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_fabrics_and_jobs_are_equal_by_value(specification: str) -> None:
    """Same parameters or same nodes in the same order: equal, with equal hashes, whatever was computed before."""
    one, same = fabric(specification), fabric(specification)
    one.ring_order()
    assert one is not same
    assert one == same
    assert hash(one) == hash(same)
    assert one != one.with_node_rate(one.node_rate_bits_per_s * 2)
    assert one != fabric_at_scale("ideal", 9)
    nodes = one.machine_nodes(np.arange(one.num_nodes))
    parts = job(one, nodes[:3]), job(same, nodes[:3].tolist())
    assert parts[0] == parts[1]
    assert len({*parts, one, same}) == 2
    assert parts[0] != job(one, nodes[:3][::-1])
    assert parts[0] != job(one, nodes[:2])
    assert job(one, nodes) != one
    others = [parts[0], job(one, nodes[:2]), job(one.with_node_rate(one.node_rate_bits_per_s * 2), nodes[:3])]
    assert others[0] != others[2]
    assert len({hash(each) for each in others}) == 3
    assert {one: 1}[same] == 1


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_a_copy_behaves_as_its_original(specification: str) -> None:
    """A pickled fabric is its parameters alone; resources, paths and names of the copy are equal."""
    made = fabric(specification)
    before = pickle.dumps(made)
    for place in range(len(made.resources)):
        made.place_names(place, [0] if made.resources[place].count else [])
    made.ring_order()
    assert pickle.dumps(made) == before
    copy = pickle.loads(before)
    assert copy == made
    assert (repr(copy), str(copy), hash(copy)) == (repr(made), str(made), hash(made))
    assert copy.resources == made.resources
    assert copy.parts() == made.parts()
    part = job(made, made.machine_nodes(np.arange(made.num_nodes))[1:])
    twin = pickle.loads(pickle.dumps(part))
    assert twin == part
    assert np.array_equal(twin.ring_order(), part.ring_order())
    if made.is_packet_switched:
        src, dst = (side.ravel() for side in np.indices((made.num_nodes,) * 2))
        paths = made.route(src, dst)
        assert all(map(np.array_equal, copy.route(src, dst), paths))
        circuits = Circuits.of(np.arange(len(src)), src, dst, path=paths)
        used = [[usage.index.tolist() for usage in where.usage(circuits)] for where in (made, copy)]
        assert used[0] == used[1]


def test_every_registered_fabric_is_tried() -> None:
    """A new fabric gets a line in this file."""
    assert {text.partition(":")[0] for text in SPECIFICATIONS} == set(FABRICS.names())


_IN_ANOTHER_PROCESS = """
import pickle, sys
loaded = pickle.load(sys.stdin.buffer)
found = [(where, repr(where), where.ring_order(), where.parts(), [r.count for r in where.resources]) for where in loaded]
pickle.dump(found, sys.stdout.buffer)
"""


def test_fabrics_and_jobs_go_to_another_process_and_back() -> None:
    """A fresh interpreter loads them without other imports and finds the same; what returns is equal."""
    made: list[Fabric] = [fabric(text) for text in SPECIFICATIONS]
    made += [job(where, where.machine_nodes(np.arange(where.num_nodes))[::2]) for where in made]
    done = subprocess.run(
        [sys.executable, "-c", _IN_ANOTHER_PROCESS], input=pickle.dumps(made), capture_output=True, check=True
    )
    found = pickle.loads(done.stdout)
    assert len(found) == len(made)
    for where, (back, text, order, parts, counts) in zip(made, found, strict=True):
        assert type(back) is type(where)
        assert back == where
        assert hash(back) == hash(where)
        assert text == repr(where)
        assert np.array_equal(order, where.ring_order())
        assert parts == where.parts()
        assert counts == [r.count for r in where.resources]
