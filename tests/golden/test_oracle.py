"""Our flow engine against SimGrid itself, where it is installed: every flow ends at the same time."""

import sys

import numpy as np
import pytest
from tests.collectives import nothing_required
from tests.engines import flow_result
from tests.golden import oracle

import opticcl
from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.ir import Op, Schedule, Transfers
from opticcl.simulate.links import Links
from opticcl.simulate.parts import latencies

LIGHT = assumptions("published", compute="none")
SPECIFICATIONS = [
    "ideal:nodes=16",
    "fat_tree:nodes=32,radix=8,routing=ecmp",
    "torus:shape=4x4x2",
    "superpod:nodes=24",
    "leaf_spine:nodes=16,nodes_per_leaf=4,spines=2",
    "bcube:radix=4,levels=2",
    "dragonfly:nodes=16,nodes_per_router=2,routers_per_group=4,global_links=2",
]


def needs_simgrid():
    """Skip the test with the reason where there is no SimGrid."""
    python, reason = oracle.interpreter()
    if not python:
        pytest.skip(reason)


def one_step(where, rows, chunks=8):
    """A plan of one step with transfers (src, dst, chunk_lo, chunk_n)."""
    transfers = Transfers.of(*np.array(rows).T, Op.REDUCE)
    return lower(where, Schedule("by hand", nothing_required(where.num_nodes, chunks), 1, lambda i: transfers))


def both(plan, size_bytes):
    """Ends of all transfers of the only step: ours, SimGrid's [s]."""
    (circuits,) = plan.rounds(0)
    links = Links(plan.fabric)
    routes = [circuits.path(i).tolist() for i in range(len(circuits))]
    amount = plan.schedule.step(0).size_chunks() * (size_bytes // plan.schedule.collective.num_chunks)
    theirs = oracle.ends(links.capacity, routes, latencies(plan.fabric, circuits, assumptions("published")), amount)
    return flow_result(plan, size_bytes, LIGHT).traffic.transfers.end_s, theirs


@pytest.mark.parametrize("specification", SPECIFICATIONS)
@pytest.mark.parametrize("seed", [1, 2])
def test_random_flows(specification, seed):
    """60 flows of 1 to 8 MB, anyone to anyone, some links with many and some with none."""
    needs_simgrid()
    where = fabric(specification)
    rng = np.random.default_rng(seed)
    n = where.num_nodes
    src = rng.integers(0, n, 60)
    rows = np.stack([src, (src + rng.integers(1, n, 60)) % n, np.zeros(60, int), rng.integers(1, 9, 60)], axis=1)
    ours, theirs = both(one_step(where, rows), 8 * 10**6)
    assert ours == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_all_pairs(specification):
    """Everyone to everyone."""
    needs_simgrid()
    where = fabric(specification)
    src, dst = np.divmod(np.arange(where.num_nodes**2), where.num_nodes)
    rows = np.stack([src, dst, 0 * src, 1 + 0 * src], axis=1)
    ours, theirs = both(one_step(where, rows), 8 * 10**6)
    assert ours == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("specification", ["fat_tree:nodes=32,radix=8,routing=single", "torus:shape=4x4"])
def test_steps_of_a_collective(specification):
    """The unlike steps of a halving-doubling, one by one."""
    needs_simgrid()
    plan = opticcl.compile(specification, "all_reduce", "8MB", algorithm="halving_doubling").circuits
    for i in range(plan.schedule.num_steps // 2):
        first = plan.schedule.step(i)
        rows = np.stack([first.src, first.dst, first.chunk_lo, first.chunk_n], axis=1)
        ours, theirs = both(one_step(plan.fabric, rows, plan.schedule.collective.num_chunks), 8 * 2**20)
        assert ours == pytest.approx(theirs, rel=1e-6)


def test_absence_is_told(monkeypatch):
    """Without SimGrid: why, and what to set; nothing is run."""
    oracle.interpreter.cache_clear()
    for python, words in ((sys.executable, "No module named 'simgrid'"), ("/nowhere/python", "does not run")):
        monkeypatch.setenv("OPTICCL_SIMGRID_PYTHON", python)
        found, reason = oracle.interpreter()
        oracle.interpreter.cache_clear()
        if python == sys.executable and found:
            continue  # it is installed right here
        assert not found
        assert reason.startswith("SimGrid's Python module is not installed: ")
        assert words in reason
    monkeypatch.setenv("OPTICCL_SIMGRID_PYTHON", "/nowhere/python")
    with pytest.raises(RuntimeError, match="not installed"):
        oracle.ends(np.ones(1), [[0]], np.zeros(1), np.ones(1))
    oracle.interpreter.cache_clear()
