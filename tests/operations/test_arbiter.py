"""Jobs come and go: running jobs keep their nodes, and all nodes are free in the end."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.profiles import examples

import opticcl
from opticcl.circuits.oddl import routing_table
from opticcl.errors import FabricError, OutputError, ParameterError, StateFileError, UnknownNameError
from opticcl.fabrics import fabric, job
from opticcl.operations.arbiter import Arbiter, switch_ports
from opticcl.operations.placement import find_place
from opticcl.verify import verify
from opticcl.verify.time.isolation import verify_together

MACHINES = (
    "oddl:shape=4x8",
    "oddl:shape=3x4x2",
    "ramp:groups=3,racks=2,wavelengths=6",
    "lightpath:shape=5x6",
    "lightpath:shape=4x8,numbering=squares",
    "sipac:radix=3,levels=3",
    "terarack:nodes=24",
    "torus:shape=2x3x4",
)


class Jobs(RuleBasedStateMachine):
    """Arrivals and departures in any order, with restarts of the arbiter."""

    @initialize(machine=st.sampled_from(MACHINES))
    def begin(self, machine):
        """An empty machine with its file."""
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "jobs.json"
        self.arbiter = Arbiter(machine, self.path)
        self.known: dict[str, list[int]] = {}

    @rule(num_nodes=st.integers(1, 12))
    def arrive(self, num_nodes):
        """It gets the number of nodes requested, or no block is free."""
        try:
            placed = self.arbiter.place(num_nodes)
        except FabricError as error:
            if "are free" not in str(error):
                raise
            return
        assert len(set(placed.nodes.tolist())) == num_nodes
        assert placed.name not in self.known
        self.known[placed.name] = placed.nodes.tolist()

    @precondition(lambda self: getattr(self, "known", None))
    @rule(pick=st.integers(0, 99))
    def leave(self, pick):
        """Some job ends."""
        name = sorted(self.known)[pick % len(self.known)]
        self.arbiter.free(name)
        del self.known[name]

    @precondition(lambda self: hasattr(self, "arbiter"))
    @rule()
    def restart(self):
        """A new arbiter with the same file."""
        self.arbiter = Arbiter(None, self.path)

    @invariant()
    def no_node_is_shared_and_no_job_is_moved(self):
        """Nodes and switch ports belong to one job; running jobs keep theirs."""
        if not hasattr(self, "arbiter"):
            return
        jobs = self.arbiter.jobs
        assert {j.name: j.nodes.tolist() for j in jobs} == self.known
        held = np.concatenate([j.held for j in jobs] or [np.zeros(0, int)])
        ports = np.concatenate([switch_ports(self.arbiter.machine, j.nodes) for j in jobs] or [held])
        assert len(np.unique(held)) == len(held)
        assert len(np.unique(ports)) == len(ports)
        assert self.arbiter.num_free == self.arbiter.machine.num_nodes - len(held)

    def teardown(self):
        """All go; all is free, and the largest job fits again."""
        if not hasattr(self, "arbiter"):
            return
        for name in list(self.known):
            self.arbiter.free(name)
        n = self.arbiter.machine.num_nodes
        assert Arbiter(None, self.path).num_free == n
        assert len(self.arbiter.place(n).nodes) == n
        self.folder.cleanup()


Jobs.TestCase.settings = examples(25, stateful_step_count=25)
test_jobs_come_and_go = Jobs.TestCase


@pytest.mark.parametrize(
    ("machine", "algorithm"),
    [
        ("oddl:shape=8x8", "halving_doubling"),
        ("ramp:groups=4,racks=2,wavelengths=8", "halving_doubling"),
        ("ramp:groups=4,racks=4,wavelengths=8,transceivers_per_group=2,subnet=route_switch", "ring"),
        ("ramp:groups=4,racks=2,wavelengths=8,subnet=route_broadcast", "mesh"),
        ("lightpath:shape=8x8,waveguides=2", "lumorph:radix=4"),
        ("sipac:radix=4,levels=3", "recursive_doubling"),
        ("sipac:radix=4,levels=3", "sipco"),
    ],
)
def test_placed_jobs_verify_alone_and_together(machine, algorithm):
    """Jobs of 4, 16 and 8 nodes: each right by itself, and no resource shared."""
    arbiter = Arbiter(machine)
    plans = []
    for num_nodes in (4, 16, 8):
        placed = arbiter.place(num_nodes)
        plan = opticcl.compile(arbiter.fabric_of(placed.name), "all_reduce", 10**6, algorithm=algorithm)
        verify(plan.circuits).raise_if_bad()
        plans.append(plan.circuits)
    verify_together(plans).raise_if_bad()


def test_jobs_on_a_ramp_run_its_own_algorithm():
    """Two jobs on two groups, both racks and four places each: the steps of that RAMP, right alone and together."""
    arbiter = Arbiter("ramp:groups=2,racks=2,wavelengths=8")
    plans = []
    for _ in range(2):
        where = arbiter.fabric_of(arbiter.place(16).name)
        plans.append(opticcl.compile(where, "all_reduce", 10**6, algorithm="ramp").circuits)
        verify(plans[-1]).raise_if_bad()
    alone = opticcl.compile("ramp:groups=2,racks=2,wavelengths=4", "all_reduce", 10**6, algorithm="ramp")
    assert {plan.schedule.num_steps for plan in plans} == {alone.schedule.num_steps}
    verify_together(plans).raise_if_bad()


def test_dead_tiles_are_in_no_job(tmp_path):
    """Of 4 x 4 tiles one is dead: 15 are free, jobs go round it, and a state file that holds it is damaged."""
    path, machine = tmp_path / "jobs.json", "lightpath:shape=4x4,dead_tiles=5"
    arbiter = Arbiter(machine, path)
    assert arbiter.num_free == 15
    plans = []
    for num_nodes in (8, 4):
        placed = arbiter.place(num_nodes)
        assert 5 not in placed.held
        plans.append(opticcl.compile(arbiter.fabric_of(placed.name), "all_reduce", 1000, algorithm="ring").circuits)
    verify_together(plans).raise_if_bad()
    with pytest.raises(FabricError, match="no block of them fits this job"):
        Arbiter(machine).place(15)
    kept = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(kept | {"jobs": [{"name": "a", "nodes": [5], "held": [5]}]}), "utf-8")
    with pytest.raises(StateFileError, match="job 'a' has nodes that it cannot have"):
        Arbiter(machine, path)


def test_cus_that_are_not_neighbours():
    """SiPAC with every other CU of a switch taken still places a job on the rest, and halving-doubling runs there."""
    machine = fabric("sipac:radix=4,levels=2")
    place = find_place(machine.cell_grid(), np.arange(16) % 2 == 0, 8)
    assert place is not None
    assert place.nodes.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
    plan = opticcl.compile(job(machine, place.nodes), "all_reduce", 1000, algorithm="halving_doubling")
    assert plan.verify().ok


@pytest.mark.parametrize(
    ("machine", "num_nodes"),
    [
        ("ramp:groups=4,racks=4,wavelengths=8", 8),
        ("ramp:groups=4,racks=4,wavelengths=8", 16),
        ("ramp:groups=4,racks=4,wavelengths=8", 64),
        ("ramp:groups=4,racks=2,wavelengths=8", 16),
        ("ramp:groups=4,racks=2,wavelengths=8", 32),
    ],
)
def test_a_ramp_job_gets_the_block_with_the_fastest_all_to_all(machine, num_nodes):
    """Of all blocks of whole racks with its nodes; 16 nodes of 4 x 4 x 8 in one group would take three times as long."""
    made = fabric(machine)
    grid = np.arange(made.num_nodes).reshape(made.groups, made.racks, made.wavelengths)
    placed = find_place(made.cell_grid(), np.ones(made.num_nodes, bool), num_nodes)

    def took_s(nodes):
        return opticcl.compile(job(made, nodes), "all_to_all", "100MB", ignore_light=True).simulate().total_s

    cells = num_nodes // made.racks
    every = {
        g: took_s(grid[:g, :, : cells // g].ravel())
        for g in range(1, made.groups + 1)
        if cells % g == 0 and cells // g <= made.wavelengths
    }
    assert took_s(placed.nodes) == pytest.approx(min(every.values()))
    assert len(placed.held) == num_nodes


def test_blocks_are_the_smallest_and_squarest():
    """16 of 8 x 8 tiles are 4 x 4; SiPAC fills whole switches; a RAMP job of 3 holds both racks of a device in two groups."""
    tiles = find_place(fabric("lightpath:shape=8x8").cell_grid(), np.ones(64, bool), 16)
    assert tiles.nodes.tolist() == [8 * r + c for r in range(4) for c in range(4)]
    cus = find_place(fabric("sipac:radix=8,levels=2").cell_grid(), np.ones(64, bool), 8)
    assert cus.nodes.tolist() == list(range(8))
    ramp = find_place(fabric("ramp:groups=2,racks=2,wavelengths=4").cell_grid(), np.ones(16, bool), 3)
    assert (len(ramp.nodes), ramp.held.tolist()) == (3, [0, 4, 8, 12])


def test_a_running_job_keeps_its_switch_settings():
    """The settings of a job's ports are the same before and after others come and go; no port of theirs is among them."""
    arbiter = Arbiter("oddl:shape=8x8")
    first = arbiter.place(16)
    ports = switch_ports(arbiter.machine, first.nodes)

    def table():
        where = arbiter.fabric_of(first.name)
        return routing_table(opticcl.compile(where, "all_reduce", 10, algorithm="halving_doubling").circuits)

    before = table()
    for num_nodes in (8, 4, 16):
        other = arbiter.place(num_nodes)
        assert not np.isin(switch_ports(arbiter.machine, other.nodes), ports).any()
    arbiter.free("job-2")
    arbiter.place(2)
    assert all(np.array_equal(a, b) for a, b in zip(before, table(), strict=True))
    assert np.isin(np.unique(before.src), first.nodes).all()


def test_4096_nodes_are_placed_and_freed_fast(tmp_path):
    """Under 50 ms of CPU, the file included, also where half of the machine is full of holes."""
    arbiter = Arbiter("oddl:shape=16x16x16", tmp_path / "jobs.json")
    rng = np.random.default_rng(0)
    for _ in range(60):
        arbiter.place(int(rng.integers(1, 64)))
    for placed in arbiter.jobs[::2]:
        arbiter.free(placed.name)
    taken = []
    for act in (lambda: arbiter.place(512, "big"), lambda: arbiter.place(60, "odd"), lambda: arbiter.free("big")):
        began = time.process_time()
        act()
        taken.append(time.process_time() - began)
    assert max(taken) < 0.05, taken


def test_refusals_are_one_line(tmp_path):
    """More nodes than there are, no block, names taken or unknown, no machine, part of a machine."""
    arbiter = Arbiter("oddl:shape=4x4")
    for asked, text in ((0, "0 nodes; it has at least 1"), (17, "17 nodes for job-1, but 16 of 16 of oddl are free")):
        with pytest.raises((ParameterError, FabricError), match=text):
            arbiter.place(asked)
    arbiter.place(12, "most")
    with pytest.raises(FabricError, match="but 4 of 16 of oddl are free; end a job first"):
        arbiter.place(5)
    with pytest.raises(ParameterError, match="job 'most' exists already"):
        arbiter.place(1, "most")
    for name in ("", " x", "a\tb", "x" * 65):
        with pytest.raises(ParameterError, match="is not a valid job name; use 1 to 64 printable"):
            arbiter.place(1, name)
    with pytest.raises(StateFileError, match="/dev/null is not a regular file"):
        Arbiter("oddl:shape=4x4", "/dev/null")
    with pytest.raises(UnknownNameError, match="no job 'mots'; did you mean 'most'"):
        arbiter.free("mots")
    with pytest.raises(ParameterError, match="which machine"):
        Arbiter(None, tmp_path / "nothing.json")
    with pytest.raises(ParameterError, match="a whole machine"):
        Arbiter(job(fabric("oddl:shape=4x4"), [0, 1]))
    tiles = Arbiter("lightpath:shape=2x4")
    for name in ("a", "b", "c", "d"):
        tiles.place(2, name)
    tiles.free("a")
    tiles.free("d")
    with pytest.raises(FabricError, match="4 of lightpath are free, but no block of them fits this job"):
        tiles.place(4)


def test_damaged_files_are_refused(tmp_path):
    """Not JSON, another form, another machine, jobs that share a node; nothing is overwritten."""
    path = tmp_path / "jobs.json"
    Arbiter("oddl:shape=4x4", path).place(4)
    good = json.loads(path.read_text("utf-8"))
    with pytest.raises(StateFileError, match="belongs to another machine, oddl:shape=4x4"):
        Arbiter("oddl:shape=2x4", path)
    twice = good["jobs"] + [{"name": "other", "nodes": [0], "held": [0]}]
    for broken, text in (
        ("{", "is not a file of an arbiter"),
        (json.dumps(good | {"more": 1}), "is not a file of an arbiter"),
        (json.dumps(good | {"version": 99}), "is not a file of this arbiter"),
        (json.dumps(good | {"jobs": twice}), "job 'other' has nodes that it cannot have"),
        (json.dumps(good | {"jobs": [{"name": "a", "nodes": [99], "held": [99]}]}), "job 'a'"),
        (json.dumps(good | {"jobs": [{"name": "a", "nodes": [1], "held": [0]}]}), "job 'a'"),
        (json.dumps(good | {"jobs": [{"name": "a", "nodes": [1, 1], "held": [1]}]}), "job 'a'"),
        (json.dumps(good | {"jobs": [{"name": "a", "nodes": [1], "held": [1, 1]}]}), "job 'a'"),
        (json.dumps(good | {"jobs": [{"name": "a", "nodes": [], "held": []}]}), "job 'a'"),
        (json.dumps(good | {"jobs": [{"name": "a", "nodes": [10**30], "held": [0]}]}), "is not a file of an arbiter"),
        (json.dumps(good | {"jobs": [{"name": "a", "nodes": [-1], "held": [-1]}]}), "is not a file of an arbiter"),
        (json.dumps(good | {"jobs": [{"name": "", "nodes": [1], "held": [1]}]}), "a job is called ''"),
        (json.dumps(good | {"jobs": [{"name": "a\nb", "nodes": [1], "held": [1]}]}), r"a job is called 'a\\nb'"),
        (json.dumps(good | {"fabric": "odl"}), "is damaged: unknown fabric 'odl'"),
        ("", "is not a file of an arbiter"),
    ):
        path.write_text(broken, "utf-8")
        with pytest.raises(StateFileError, match=text):
            Arbiter(None, path)
        assert path.read_text("utf-8") == broken
    path.write_bytes(b'{"form":"\xff","version":1,"fabric":"oddl","jobs":[]}')
    with pytest.raises(StateFileError, match="is not a file of an arbiter"):
        Arbiter(None, path)


def test_a_change_that_cannot_be_written_is_undone(tmp_path):
    """The arbiter and its file always agree."""
    folder = tmp_path / "state"
    folder.mkdir()
    arbiter = Arbiter("oddl:shape=4x4", folder / "jobs.json")
    arbiter.place(4)
    (folder / "jobs.json").unlink()
    folder.rmdir()
    with pytest.raises(OutputError):
        arbiter.place(4)
    with pytest.raises(OutputError):
        arbiter.free("job-1")
    assert [j.name for j in arbiter.jobs] == ["job-1"]
    assert arbiter.num_free == 12
