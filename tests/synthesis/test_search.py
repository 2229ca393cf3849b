"""The search: what the solver closes, what it proves, and results without it or without time."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest
from tests.cli.process import COMMAND
from tests.synthesis.helpers import assert_right

import opticcl
from opticcl.errors import FabricError, ParameterError, UnsupportedError
from opticcl.fabrics import fabric
from opticcl.ir import Collective
from opticcl.ir.collective import HolderTable
from opticcl.synthesis import search as search_module
from opticcl.synthesis import synthesize
from opticcl.synthesis.wafer import wafer_of, with_all_routes

# shape, lasers, waveguides, collective, chunks: rounds, what found them (or "" for a constructed one), what proves them
CLOSED = [
    ("2x4", 4, 1, "all_reduce", 2, 2, "reduction, symmetry of 8", "reach"),
    ("2x4", 2, 1, "all_reduce", 2, 3, "", "search"),
    ("1x5", 2, 4, "all_reduce", 1, 2, "reduction", "reach"),
    ("2x3", 1, 4, "all_reduce", 2, 4, "reduction", "sums"),
    ("2x3", 2, 4, "all_reduce", 2, 3, "", "search"),
    ("1x4", 1, 1, "all_gather", 1, 3, "", "receives"),
    ("3x3", 1, 1, "broadcast", 3, 6, "", "cut reach"),
    ("3x3", 2, 1, "reduce_scatter", 1, 4, "", "receives"),
]


@pytest.mark.parametrize(("shape", "lasers", "waveguides", "name", "chunks", "rounds", "how", "bound"), CLOSED)
def test_closed(shape, lasers, waveguides, name, chunks, rounds, how, bound):
    """Optimal, by the solver where no construction is, or by an exhaustive search."""
    found = synthesize(
        f"lightpath:shape={shape},lasers={lasers},waveguides={waveguides}", name, chunks=chunks, time_limit=600
    )
    assert (found.num_steps, found.optimal_on_routes, found.bound_on_routes.name) == (rounds, True, bound)
    assert found.optimal  # a search proves it on all routes
    assert not how or found.how == how
    assert_right(found)


def four_sends():
    """5 -> 3, 1 -> 5, 2 -> 4 and 0 -> 2 among six ranks."""
    before, after = np.zeros((2, 4, 6), bool)
    for chunk, (src, dst) in enumerate([(5, 3), (1, 5), (2, 4), (0, 2)]):
        before[chunk, src] = after[chunk, dst] = True
    return Collective("four sends", 6, 4, False, HolderTable(before), HolderTable(after))


def test_what_is_searched_on_some_routes_is_no_proof_for_others():
    """Two rounds on two routes a pair, where one round exists with a detour."""
    where = "lightpath:shape=2x3,lasers=1,waveguides=1"
    some, every = (synthesize(where, four_sends(), routes=routes, time_limit=60) for routes in (2, 8))
    assert (some.num_steps, some.lower_bound, some.optimal, some.optimal_on_routes) == (2, 1, False, True)
    assert (every.num_steps, every.optimal) == (1, True)
    assert "optimal on the given routes" in str(some)
    assert some.note == "on other routes 1 round is enough; try more routes"
    assert some.record()["bound_on_routes"].startswith("search: ")
    assert_right(some)


def test_what_is_searched_on_all_routes_is_a_proof():
    """A line of tiles has one path a pair: 0 -> 2 and 1 -> 2's neighbour share its only waveguide."""
    before, after = np.zeros((2, 2, 4), bool)
    for chunk, (src, dst) in enumerate([(0, 2), (1, 3)]):
        before[chunk, src] = after[chunk, dst] = True
    two = Collective("two sends", 4, 2, False, HolderTable(before), HolderTable(after))
    found = synthesize("lightpath:shape=1x4,lasers=1,waveguides=1", two, routes=3, time_limit=60)
    assert (found.num_steps, found.lower_bound, found.optimal) == (2, 2, True)


def test_two_routes_are_searched_for_a_schedule_and_all_for_the_proof():
    """One round would take 16 circuits over the two edges in the middle, which have room for 14."""
    found = synthesize("lightpath:shape=2x4,lasers=7,waveguides=1", "all_reduce", time_limit=60)
    assert (found.num_steps, found.optimal, found.note) == (2, True, "")
    assert found.bound.why == "search exhausted: no schedule of 1 round on any routes"
    assert found.trials[-1].how == "reduction, all routes"


def test_a_large_grid_has_too_many_routes_for_the_proof():
    """Opposite corners of 4 x 4 tiles have 184 paths."""
    where = fabric("lightpath:shape=4x4")
    assert with_all_routes(wafer_of(where), where) is None
    small = fabric("lightpath:shape=2x3")
    routes = with_all_routes(wafer_of(small), small).routes
    assert sorted(map(len, (routes[0, 5], routes[0, 1], routes[1, 4]))) == [3, 3, 4]


def test_every_collective_on_an_odd_grid():
    """Three by three tiles, two lasers: all ten collectives."""
    for name in opticcl.collective.COLLECTIVES:
        assert_right(synthesize("lightpath:shape=3x3,lasers=2", name, method="constructed"))


@pytest.mark.parametrize("shape", ["1x1", "1x2", "1x7"])
def test_few_nodes(shape):
    """One node does nothing; two nodes and a prime number of nodes in a line."""
    for name in ("all_gather", "all_to_all", "all_reduce", "scatter", "reduce"):
        found = synthesize(f"lightpath:shape={shape},lasers=3", name, method="constructed")
        assert_right(found)
        assert (found.num_steps == 0) == (shape == "1x1")


def test_the_same_seed_gives_the_same_schedule():
    """The same problem twice, including the solver."""
    made = [synthesize("lightpath:shape=2x3,lasers=1,waveguides=1", "all_gather", seed=3) for _ in range(2)]
    steps = [[m.circuits.schedule.step(i) for i in range(m.num_steps)] for m in made]
    assert all(np.array_equal(a.src, b.src) and np.array_equal(a.dst, b.dst) for a, b in zip(*steps, strict=True))


def test_no_time_gives_the_constructed_schedule():
    """A limit of a millisecond: the result is right and not claimed optimal."""
    found = synthesize("lightpath:shape=4x4,lasers=11", "all_reduce", chunks=16, time_limit="1 ms")
    assert (found.num_steps, found.lower_bound, found.optimal) == (4, 3, False)
    assert found.note == "the time limit was reached"
    assert_right(found)


def test_without_the_solver(monkeypatch):
    """Constructed schedules are returned with the gap and the command that installs the solver; requiring it is refused."""
    for module in (search_module, search_module.require_solver.__globals__):
        names = module if isinstance(module, dict) else vars(module)
        monkeypatch.setitem(names, "has_solver", lambda: False)
    where = "lightpath:shape=4x4,lasers=11"
    found = synthesize(where, "all_reduce", chunks=16)
    assert (found.num_steps, found.optimal) == (4, False)
    assert "pip install 'opticcl[synth]'" in found.note
    with pytest.raises(UnsupportedError, match="pip install"):
        synthesize(where, "all_reduce", chunks=16, method="solver")


def test_waveguides_from_end_to_end():
    """With switch_unit=waveguide circuits get waveguides, or the number of rounds that they would take is named."""
    where = "lightpath:shape=1x4,lasers=4,waveguides={},switch_unit=waveguide"
    found = synthesize(where.format(4), "all_to_all")
    assert (found.num_steps, found.optimal) == (1, True)
    assert_right(found)
    with pytest.raises(UnsupportedError, match="take 2 rounds"):
        synthesize(where.format(2), "all_to_all")


def test_more_routes_can_help():
    """A ring of eight tiles around a failed one: detours never need more rounds."""
    where = "lightpath:shape=3x3,dead_tiles=4,lasers=1,waveguides=1"
    few, many = (synthesize(where, "all_to_all", nodes=[0, 2, 6, 8], routes=n, time_limit=10) for n in (1, 4))
    assert_right(few)
    assert_right(many)
    assert many.num_steps <= few.num_steps


def test_a_plan_is_saved_and_loaded(tmp_path):
    """The plan file is verified again and takes the same time."""
    found = opticcl.synthesize("lightpath:shape=2x4,lasers=3,waveguides=2", "all_reduce", chunks=8)
    plan = opticcl.Plan(found.circuits, 8_000_000)
    plan.save(tmp_path / "plan.parquet")
    again = opticcl.load(tmp_path / "plan.parquet")
    assert (
        again.simulate(assumptions="published").total_s
        == plan.simulate(assumptions="published").total_s
        > plan.simulate(assumptions="published").lower_bound_s
    )


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"fabric": "ideal:nodes=4"}, UnsupportedError, "not a grid of tiles"),
        ({"fabric": "lightpath:shape=32x32"}, UnsupportedError, "1,024 nodes are more than 256"),
        ({"fabric": "lightpath:lasers=0"}, FabricError, "lasers=0"),
        ({"fabric": "lightpath:waveguides=0"}, FabricError, "waveguides=0"),
        ({"collective": "all_scatter"}, ParameterError, "unknown collective"),
        ({"chunks": 0}, ParameterError, "chunks=0"),
        ({"chunks": 10**9}, ParameterError, "too many"),
        ({"time_limit": 0}, ParameterError, "time_limit=0"),
        ({"time_limit": "soon"}, ParameterError, "time_limit"),
        ({"seed": -1}, ParameterError, "seed=-1"),
        ({"method": "magic"}, ParameterError, "method"),
        ({"routes": 0}, ParameterError, "routes=0"),
        ({"collective": "broadcast", "root": 4}, ParameterError, "root=4"),
        ({"nodes": [0, 0]}, FabricError, "twice"),
    ],
)
def test_bad_input(change, error, words):
    """Refused in one line that names it."""
    asked = {"fabric": "lightpath:shape=2x2", "collective": "all_gather"} | change
    with pytest.raises(error, match=words) as refused:
        synthesize(**asked)
    assert "\n" not in str(refused.value)


def test_the_command_line(answer, tmp_path):
    """JSON for scripts, and a plan file that is verified when loaded."""
    out = tmp_path / "p.json"
    options = ("-f", "lightpath:shape=2x4,lasers=4,waveguides=1", "-c", "all-gather", "--time-limit", "10s", "-o", out)
    found, code = answer("synthesize", *options)
    assert (code, found["num_steps"], found["lower_bound"], found["optimal"]) == (0, 2, 2, True)
    assert found["bound"].startswith("receives: ")
    assert opticcl.load(out).schedule.num_steps == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--out", "nowhere/plan.json"], "there is no folder nowhere"),
        (["--file", "mine.toml", "-c", "all_gather"], "leave --collective out"),
    ],
)
def test_what_cannot_be_is_refused_before_the_search(opticcl, options, words):
    """One line, exit code 2: a custom collective beside a registered one, and a folder that does not exist."""
    done = opticcl("synthesize", "-f", "lightpath:shape=2x2", *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_ctrl_c_gives_the_best_so_far():
    """An interrupted search returns its best schedule and reports the interruption."""
    options = ("-f", "lightpath:shape=4x4,lasers=11", "--chunks", "16", "--time-limit", "200s", "--json")
    terminal, its_end = os.openpty()  # progress is on a terminal only
    running = subprocess.Popen([*COMMAND, "synthesize", *options], stdout=subprocess.PIPE, stderr=its_end, text=True)
    os.close(its_end)
    while b"effort" not in os.read(terminal, 4096):  # the solver is at work
        assert running.poll() is None
    time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=60)
    answer = json.loads(out)
    assert running.returncode == 0
    assert (answer["num_steps"], answer["interrupted"], answer["optimal"]) == (4, True, False)
