"""LIGHTPATH with dead tiles, lasers and waveguides: what it refuses, and that plans keep to what is alive."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.altered import altered
from tests.profiles import examples
from tests.routing.grids import graph_of, grids

import opticcl
from opticcl.circuits import lower
from opticcl.errors import FabricError, UnsupportedError
from opticcl.execute import execute
from opticcl.fabrics import fabric, job
from opticcl.fabrics.lightpath import EAST, SOUTH, tile_of_node
from opticcl.ir import CircuitPlan, Circuits, Fabric, concatenate_circuits
from opticcl.routing.grid import Grid
from opticcl.schedule import generate, reason_declined
from opticcl.verify import verify


def plan(where: Fabric, algorithm: str = "lumorph", collective: str = "all_reduce") -> CircuitPlan:
    """A verified plan."""
    made = lower(where, generate(algorithm, collective, where))
    verify(made).raise_if_bad()
    return made


def all_circuits(made: CircuitPlan) -> Circuits:
    """Of all rounds of all steps."""
    rounds = (circuits for i in range(made.schedule.num_steps) for circuits in made.rounds(i))
    return concatenate_circuits(rounds)


# --- what a user may write --------------------------------------------------------------------------------------------


def test_what_is_no_text_is_refused() -> None:
    """A list where a text is due."""
    with pytest.raises(FabricError, match="dead_tiles"):
        fabric("lightpath", dead_tiles=[3])
    assert fabric("lightpath", shape="2x4", dead_tiles=3).num_nodes == 7


def test_edges_of_a_single_column() -> None:
    """Neighbours are above and below."""
    damage = fabric("lightpath:shape=4x1,dead_waveguides=1-2:1+2-1:1").damage
    assert damage.edge.tolist() == [4 * 1 + 2, 4 * 2 + 3]


@examples(50)
@given(grids())
def test_the_grid_is_what_is_written(drawn: Grid) -> None:
    """A drawn grid as texts, read again: the same tiles and edges are open."""
    if len(drawn.shut) == drawn.num_tiles:
        return
    texts = {"dead_tiles": "+".join(map(str, drawn.shut.tolist())) or None}
    if drawn.share is not None:
        start, way = np.divmod(np.flatnonzero(drawn.share < 1), 4)
        stop = start + drawn.onward[way]
        inside = Grid(drawn.rows, drawn.columns).width()[4 * start + way] > 0
        dead = np.round(4 * (1 - drawn.share[4 * start + way])).astype(int)
        listed = zip(start[inside], stop[inside], dead[inside], strict=True)
        texts["dead_waveguides"] = "+".join(f"{a}-{b}:{k}" for a, b, k in listed) or None
    made = fabric("lightpath", shape=(drawn.rows, drawn.columns), waveguides=4, **texts)
    grid = made.grid
    assert sorted(graph_of(grid).edges(data="share")) == sorted(graph_of(drawn).edges(data="share"))


# --- jobs avoid what is dead ------------------------------------------------------------------------------------------


def test_a_dead_tile_is_in_no_job() -> None:
    """Ranks are counted without it; nodes keep their numbers."""
    made = fabric("lightpath:shape=4x4,dead_tiles=5+10")
    assert (made.num_nodes, made.num_machine_nodes) == (14, 16)
    assert sorted(set(range(16)) - set(made.node_of_rank.tolist())) == [5, 10]
    assert job(made, [0, 6, 15]).num_nodes == 3
    with pytest.raises(FabricError, match=r"node 5 at .* leave it out"):
        job(made, [0, 5])


def test_tiles_are_not_nodes() -> None:
    """With other numberings the node that sits on the dead tile is left out."""
    made = fabric("lightpath:shape=4x4,numbering=squares,dead_tiles=2")
    (gone,) = set(range(16)) - set(made.node_of_rank.tolist())
    assert tile_of_node((4, 4), "squares")[gone] == 2 != gone


def test_a_job_on_a_cut_grid_knows_who_is_joined() -> None:
    """Two halves; a job within one of them runs, over both of them not."""
    cut = fabric("lightpath:shape=2x5,dead_tiles=2+7")
    assert not cut.links_all
    plan(job(cut, [0, 1, 5, 6]))
    assert "linked" in str(reason_declined("lumorph", "all_reduce", cut))
    with pytest.raises(UnsupportedError, match="no single circuit joins nodes"):
        lower(job(cut, [1, 3]), generate("lumorph", "all_reduce", fabric("ideal:nodes=2")))


def test_one_way_cuts_count() -> None:
    """Light gets from tile 0 to tile 1 and not back."""
    made = fabric("lightpath:shape=1x2,dead_waveguides=1-0:40")
    assert made.linked(np.array([0]), np.array([1])).all()
    assert not made.linked(np.array([1]), np.array([0])).any()


def test_a_tile_without_a_laser_is_refused() -> None:
    """With the name of its node."""
    made = fabric("lightpath:shape=2x2,lasers=3,dead_lasers=1:0-2")
    with pytest.raises(UnsupportedError, match="all lasers of node 1 at"):
        lower(made, generate("ring", "all_reduce", made))
    plan(job(made, [0, 2, 3]), "ring")


@pytest.mark.parametrize("algorithm", ["ring", "lumorph:radix=4", "mesh", "tree", "divide_and_conquer"])
def test_dead_lasers_stay_dark(algorithm: str) -> None:
    """Every other laser keeps its light; a tile with a single laser takes turns."""
    made = plan(fabric("lightpath:shape=3x4,dead_lasers=0:3+0:7-8+5:0-14"), algorithm)
    circuits = all_circuits(made)
    lit = {
        (int(s), int(lo) + k)
        for s, lo, n in zip(circuits.src, circuits.wavelength_lo, circuits.wavelength_n, strict=True)
        for k in range(n)
    }
    assert not lit & {(0, 3), (0, 7), (0, 8), *((5, k) for k in range(15))}
    assert (5, 15) in lit
    if algorithm == "ring":
        assert {k for s, k in lit if s == 0} == set(range(16)) - {3, 7, 8}


@pytest.mark.parametrize("routing", ["dimension_order", "random", "least_overlap"])
def test_plans_go_around_holes(routing: str) -> None:
    """Four dead tiles and a dead edge on 8 x 8 tiles; executed on integers, saved and judged again."""
    text = f"lightpath:shape=8x8,routing={routing},numbering=squares,dead_tiles=9+18+27-28,dead_waveguides=0-1:40"
    made = plan(fabric(text), "lumorph:radix=4")
    hops = all_circuits(made).hops
    assert not np.isin(hops // 4, [9, 18, 27, 28]).any()
    assert not (hops == EAST).any()  # of tile 0
    data = np.random.default_rng(0).integers(-99, 99, (60, 60))
    assert all((result == data.sum(axis=0)).all() for result in execute(made.schedule, data))


@pytest.mark.parametrize(
    ("dead", "words"),
    [
        ("dead_tiles=4-7", r"from node 0 at \(row=0, column=0\) to node 8 at \(row=2, column=0\); give a job"),
        ("dead_waveguides=1-0:40+4-0:40", r"from node 1 at \(row=0, column=1\) to node 0 at"),  # one way only
        ("dead_lasers=1:0-15", r"all lasers of node 1 .* are dead"),
    ],
)
def test_auto_says_why_nothing_works(dead: str, words: str) -> None:
    """A grid that is cut, even one way, and a tile that cannot send: the refusal names the nodes."""
    with pytest.raises(UnsupportedError, match=f"no algorithm does all_reduce on lightpath with .*{words}"):
        opticcl.compile(f"lightpath:shape=4x4,{dead}", "all_reduce", "1 MB")


def test_a_plan_file_on_what_is_left_is_read_back(tmp_path) -> None:
    """Its header names the damage."""
    file = tmp_path / "plan.json"
    opticcl.compile("lightpath:shape=3x3,dead_tiles=4,dead_lasers=0:1", "all_reduce", "1 MB", algorithm="ring").save(
        file
    )
    read = opticcl.load(file)
    assert read.fabric.num_nodes == 8
    assert read.fabric.parameters["dead_tiles"] == "4"


@examples(30)
@given(st.data())
def test_random_damage_verifies_or_is_refused(data: st.DataObject) -> None:
    """Any algorithm, any job on what is left, any dead lasers: a right plan, or one line with the reason."""
    drawn = data.draw(grids(5))
    if len(drawn.shut) == drawn.num_tiles:
        return
    edges = Grid(drawn.rows, drawn.columns)
    open_edges = np.flatnonzero(edges.width() > 0)
    hurt = (
        data.draw(st.dictionaries(st.sampled_from(open_edges.tolist()), st.integers(1, 2), max_size=6))
        if len(open_edges)
        else {}
    )
    lasers = data.draw(st.sets(st.tuples(st.integers(0, drawn.num_tiles - 1), st.integers(0, 3)), max_size=5))
    made = fabric(
        "lightpath",
        shape=(drawn.rows, drawn.columns),
        lasers=4,
        waveguides=2,
        numbering=data.draw(st.sampled_from(["row", "squares", "random"])),
        routing=data.draw(st.sampled_from(["dimension_order", "random", "least_overlap"])),
        switch_unit=data.draw(st.sampled_from(["wavelength", "waveguide"])),
        dead_tiles="+".join(map(str, drawn.shut.tolist())) or None,
        dead_lasers="+".join(f"{t}:{k}" for t, k in sorted(lasers)) or None,
        dead_waveguides="+".join(f"{e // 4}-{e // 4 + edges.onward[e % 4]}:{k}" for e, k in hurt.items()) or None,
    )
    algorithm = data.draw(st.sampled_from(["ring", "lumorph", "lumorph:radix=4", "mesh", "tree", "bruck"]))
    collective = "all_gather" if algorithm == "bruck" else "all_reduce"
    dark = any(sum(tile == t for tile, _ in lasers) == 4 for t, _ in lasers)
    try:
        lowered = lower(made, generate(algorithm, collective, made))
    except UnsupportedError:
        lowered = None
    if lowered is None:
        assert dark or not made.links_all
    else:
        verify(lowered).raise_if_bad()


# --- the judge --------------------------------------------------------------------------------------------------------


def judged(dead: str, circuits: Circuits, **options: object) -> set[str]:
    """Rules that the light of a single step on 3 x 3 tiles breaks; its data are of no interest."""
    where = fabric(f"lightpath:shape=3x3,waveguides=2,{dead}", **options)
    whole = fabric("lightpath:shape=3x3")
    step = replace(generate("mesh", "all_to_all", whole).step(0), src=circuits.src, dst=circuits.dst)
    one = np.arange(len(circuits))
    step = replace(step, chunk_lo=one, chunk_n=np.ones_like(one), op=np.ones(len(one), np.uint8), parts=None)
    schedule = replace(generate("mesh", "all_reduce", whole), num_steps=1, classes=(), step=lambda i: step)
    alone = altered(where, node_of_rank=None, num_nodes=9, machine_size=0)
    found = verify(CircuitPlan(alone, schedule, lambda i: (circuits,))).violations
    return {v.rule for v in found} - {"contribution_missing", "contribution_doubled"}


def along_the_top(count: int, lo: int = 0) -> Circuits:
    """Circuits from tile 0 by tile 1 to tile 2, on `count` wavelengths of their own."""
    k = np.arange(count)
    path = np.tile([4 * 0 + EAST, 4 * 1 + EAST], (count, 1))
    return Circuits.of(k, np.zeros_like(k), np.full_like(k, 2), wavelength_lo=lo + k, path=path)


def test_the_judge_refuses_light_through_a_dead_tile() -> None:
    """By its own name; beside it is fine."""
    assert judged("dead_tiles=1", along_the_top(1)) == {"part_failed"}
    assert judged("dead_tiles=2", along_the_top(1)) == {"part_failed"}
    assert judged("dead_tiles=0", along_the_top(1)) == {"part_failed"}
    assert judged("dead_tiles=4", along_the_top(1)) == set()


def test_the_judge_refuses_dead_lasers() -> None:
    """Of the sender alone."""
    assert judged("dead_lasers=0:3", along_the_top(4)) == {"part_failed"}
    assert judged("dead_lasers=0:3", along_the_top(3)) == set()
    assert judged("dead_lasers=2:0", along_the_top(1)) == set()


def test_the_judge_refuses_more_than_is_alive() -> None:
    """One of two waveguides is dead: one circuit of a wavelength, or none on that waveguide, and none if both are."""
    other = Circuits.of([0], [3], [2], path=[[4 * 3 + 3, EAST, 4 + EAST]])
    both = replace(concatenate_circuits([along_the_top(1), other]), transfer=np.arange(2, dtype=np.int32))
    assert judged("dead_waveguides=5-8:1", both) == {"photodiode_shared"}
    apart = replace(both, wavelength_lo=np.array([0, 1], np.int32))
    assert judged("dead_waveguides=0-1:1", apart) == set()
    first, second = (replace(apart, waveguide=np.array([k, 1 - k], np.int32)) for k in (0, 1))
    assert judged("dead_waveguides=0-1:1", first, switch_unit="waveguide") == {"part_failed"}
    assert judged("dead_waveguides=0-1:1", second, switch_unit="waveguide") == {"part_failed"}
    assert judged("dead_waveguides=3-0:1", first, switch_unit="waveguide") == set()
    assert judged("dead_waveguides=0-1:2", along_the_top(1)) == {"part_failed"}
    assert judged("dead_waveguides=1-0:2", along_the_top(1)) == set()
    down = Circuits.of(
        [0, 1], [0, 3], [2, 5], path=([EAST, 4 + EAST, 4 * 3 + 3, EAST, 4 + SOUTH, 16 + EAST], [0, 2, 6])
    )
    assert judged("dead_waveguides=0-1:1", down) == {"part_failed"}
    assert judged("dead_waveguides=3-0:1", down) == set()


def test_the_netlist_of_a_fabric_has_its_failures() -> None:
    """Boards of 4 x 8 tiles; tile 4, laser 1 of tile 2 and a waveguide between tiles 0 and 1 are dead."""
    for unit, guide in (("wavelength", 1), ("waveguide", 0)):
        where = fabric(
            f"lightpath:shape=5x3,lasers=2,waveguides=2,numbering=random,switch_unit={unit},dead_tiles=4,"
            "dead_lasers=2:1,dead_waveguides=0-1:1"
        )
        net = where.netlist()
        broken = {
            group.place(e)
            for group in net.groups
            if group.name in ("transmitter", "tile", "waveguide_x", "waveguide_x_board", "waveguide_y_board")
            for e in np.flatnonzero(~group.parameters["works"](np.arange(group.count))).tolist()
        }
        around = {
            f"waveguide {m} {name} of tile (row={row}, column={column})"
            for name, row, column in (("east", 1, 0), ("west", 1, 1), ("east", 1, 1), ("west", 1, 2))
            for m in range(2)
        }
        lost = {f"waveguide {guide} east of tile (row=0, column=0)", "laser 1 of tile (row=0, column=2)"}
        assert broken - around - {"tile (row=1, column=1)"} == lost
