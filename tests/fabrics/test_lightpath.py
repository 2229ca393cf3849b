"""LIGHTPATH's shape, numbering and physics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from opticcl.circuits import lower
from opticcl.errors import FabricError, ParameterError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.fabrics.lightpath import EAST, NORTH, SOUTH, WEST, near_square, tile_of_node
from opticcl.ir import CircuitPlan, Circuits, Fabric, Transfers, concatenate_circuits
from opticcl.kernels import always_compiled, never_compiled
from opticcl.schedule import generate
from opticcl.verify import verify

SHAPES = [(1, 1), (1, 2), (2, 1), (1, 7), (3, 5), (4, 4), (4, 8), (6, 6), (16, 16)]


def edge(tile: int, direction: int) -> int:
    """The number that the fabric's drawing gives an edge."""
    return 4 * tile + direction


def carried(where: Fabric, nodes: Sequence[tuple[int, int]], circuits: Circuits) -> set[str]:
    """Rules that the light of one step breaks; its data are of no interest."""
    src, dst = np.array(nodes).T
    schedule = replace(
        generate("ring", "all_reduce", where), num_steps=1, classes=(), step=lambda i: Transfers.of(src, dst, 0, 1, 1)
    )
    verdict = verify(CircuitPlan(where, schedule, lambda i: (circuits,)))
    return {v.rule for v in verdict.violations} - {"contribution_missing", "contribution_doubled"}


def one_circuit(shape: str, src: int, dst: int, path: Sequence[int], **columns: int) -> set[str]:
    """Rules that a single circuit over the given edges breaks."""
    where = fabric("lightpath", shape=shape)
    return carried(where, [(src, dst)], Circuits.of([0], [src], [dst], path=np.array([path], int), **columns))


# --- shape and numbers ------------------------------------------------------------------------------------------------


def test_numbers_of_the_paper() -> None:
    """256 GPUs, 300 GB/s each (appendix C), 4.4 us before a round's first byte (section 6.1)."""
    wafer = fabric("lightpath")
    assert wafer.num_nodes == 256
    assert wafer.node_rate_bits_per_s / 8 == pytest.approx(300e9)
    assert wafer.latency_s + wafer.reconfiguration_s == pytest.approx(4.4e-6)


def test_resources_are_lasers_photodiodes_and_waveguides() -> None:
    """Four directed edges a tile; their waveguides are counted, or each has a number and one setting."""
    laser, photodiode, waveguide = fabric("lightpath:shape=4x8,waveguides=7").resources
    assert (laser.count, photodiode.count, waveguide.count, waveguide.capacity) == (32, 32, 128, 7)
    assert waveguide.per_wavelength
    numbered = fabric("lightpath:shape=4x8,waveguides=7,switch_unit=waveguide").resources[2]
    assert (numbered.count, numbered.capacity, numbered.one_setting) == (7 * 128, 1, True)


@pytest.mark.parametrize(("nodes", "shape"), [(1, (1, 1)), (2, (1, 2)), (12, (3, 4)), (13, (1, 13)), (256, (16, 16))])
def test_at_scale_takes_the_squarest_grid(nodes: int, shape: tuple[int, int]) -> None:
    """Any number of nodes has a grid, a prime a single row."""
    made = fabric_at_scale("lightpath", nodes, 800e9)
    assert made.parameters["shape"] == shape == near_square(nodes)
    assert made.num_nodes == nodes
    assert made.node_rate_bits_per_s == pytest.approx(800e9)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("lightpath:shape=64", "try shape=8x8"),
        ("lightpath:shape=2x3x4", "try shape=4x6"),
        ("lightpath:shape=99999x99999", "more than"),
        ("lightpath:lasers=0", "lasers=0"),
        ("lightpath:waveguides=0", "waveguides=0"),
        ("lightpath:laser_rate=0", "laser_rate"),
        ("lightpath:reconfiguration=-1 us", "reconfiguration"),
        ("lightpath:numbering=random,seed=-1", "seed=-1"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(text: str, hint: str) -> None:
    """The message names the field and what to try."""
    with pytest.raises(FabricError, match=hint) as error:
        fabric(text)
    assert "\n" not in str(error.value)


def test_unknown_numbering_is_refused() -> None:
    """The message lists the known ones."""
    with pytest.raises(ParameterError, match="row, squares, random"):
        fabric("lightpath:numbering=hilbert")


# --- who sits where ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("numbering", ["row", "squares", "random"])
def test_every_node_has_a_tile_of_its_own(shape: tuple[int, int], numbering: str) -> None:
    """A numbering is a permutation of the tiles, the same every time."""
    tiles = tile_of_node(shape, numbering, seed=5)
    assert sorted(tiles) == list(range(shape[0] * shape[1]))
    assert np.array_equal(tiles, tile_of_node(shape, numbering, seed=5))


def test_seeds_differ() -> None:
    """Another seed, another placement."""
    assert not np.array_equal(tile_of_node((4, 4), "random", 0), tile_of_node((4, 4), "random", 1))


@pytest.mark.parametrize(("shape", "count"), [((16, 16), 64), ((4, 8), 8), ((6, 6), 9)])
def test_squares_numbers_squares_of_four_together(shape: tuple[int, int], count: int) -> None:
    """Nodes 4 i to 4 i + 3 sit on a square of two rows and two columns (section 3.2)."""
    groups = tile_of_node(shape, "squares").reshape(count, 4)
    rows, columns = np.divmod(groups, shape[1])
    assert (np.ptp(rows, axis=1) == 1).all()
    assert (np.ptp(columns, axis=1) == 1).all()


def test_coordinates_name_the_tile() -> None:
    """Messages tell where a node sits."""
    assert fabric("lightpath:shape=4x4,numbering=squares").coordinates(6) == "6 at (row=1, column=2)"


@pytest.mark.parametrize("shape", ["1x1", "1x2", "1x7", "5x1", "3x5", "4x4"])
@pytest.mark.parametrize("numbering", ["row", "squares", "random"])
def test_ring_order_goes_tile_by_tile(shape: str, numbering: str) -> None:
    """A ring needs one waveguide on every edge, however the nodes are numbered."""
    where = fabric("lightpath", shape=shape, numbering=numbering, waveguides=1)
    plan = lower(where, generate("ring", "all_reduce", where))
    verify(plan).raise_if_bad()
    assert all(len(plan.rounds(i)) == 1 for i in range(plan.schedule.num_steps))


# --- what light can do ------------------------------------------------------------------------------------------------

# 3 x 3 tiles:   0 1 2
#                3 4 5
#                6 7 8


@pytest.mark.parametrize(
    "path",
    [
        [edge(0, EAST), edge(1, SOUTH)],
        [edge(0, SOUTH), edge(3, EAST)],
        [edge(0, SOUTH), edge(3, SOUTH), edge(6, EAST), edge(7, NORTH)],
        [edge(0, EAST), edge(1, EAST), edge(2, SOUTH), edge(5, WEST)],
    ],
)
def test_any_walk_is_a_path(path: list[int]) -> None:
    """Column first, row first and detours are all circuits from tile 0 to tile 4."""
    assert one_circuit("3x3", 0, 4, path) == set()


@pytest.mark.parametrize(
    "path",
    [
        pytest.param([], id="no light at all"),
        pytest.param([edge(0, EAST)], id="ends early"),
        pytest.param([edge(1, SOUTH)], id="starts elsewhere"),
        pytest.param([edge(0, EAST), edge(2, SOUTH)], id="gap"),
        pytest.param([edge(0, EAST), edge(1, SOUTH), edge(4, SOUTH)], id="goes on"),
        pytest.param([edge(0, EAST), edge(1, EAST), edge(2, WEST), edge(1, SOUTH)], id="straight back"),
        pytest.param([edge(0, NORTH), edge(1, SOUTH)], id="off the top"),
        pytest.param(
            [edge(0, EAST), edge(1, EAST), edge(2, EAST), edge(3, EAST)], id="off the right, round the corner"
        ),
        pytest.param([edge(0, WEST), edge(1, SOUTH)], id="off the left"),
        pytest.param([edge(0, SOUTH), edge(3, SOUTH), edge(6, SOUTH), edge(1, SOUTH)], id="off the bottom"),
        pytest.param([edge(9, EAST), edge(1, SOUTH)], id="no such tile"),
        pytest.param([-1, edge(1, SOUTH)], id="negative edge"),
        pytest.param([2**31 - 1, edge(1, SOUTH)], id="enormous edge"),
    ],
)
def test_anything_else_is_no_path(path: list[int]) -> None:
    """From tile 0 to tile 4; the kernel for many paths sees it too."""
    with never_compiled():
        assert one_circuit("3x3", 0, 4, path) == {"path_broken"}
    with always_compiled():
        assert one_circuit("3x3", 0, 4, path) == {"path_broken"}


def test_paths_start_where_the_node_sits() -> None:
    """With squares, node 2 of a 4 x 4 grid sits on tile 4."""
    where = fabric("lightpath:shape=4x4,numbering=squares")
    assert carried(where, [(0, 2)], Circuits.of([0], [0], [2], path=np.array([[edge(0, SOUTH)]]))) == set()
    assert carried(where, [(0, 2)], Circuits.of([0], [0], [2], path=np.array([[edge(0, EAST)]]))) == {"path_broken"}


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({"wavelength_lo": 16}, "wavelength_unknown"),
        ({"wavelength_lo": 12, "wavelength_n": 5}, "wavelength_unknown"),
        ({"wavelength_lo": -1}, "wavelength_unknown"),
        ({"port": 1}, "port_unknown"),
    ],
)
def test_sixteen_lasers_and_one_port(columns: dict[str, int], rule: str) -> None:
    """What does not exist cannot be lit."""
    assert one_circuit("1x2", 0, 1, [edge(0, EAST)], **columns) == {rule}


def test_waveguides_switched_by_wavelength_or_as_a_whole() -> None:
    """Two circuits on different wavelengths share a waveguide, but not where an MZI moves all of it."""
    both = Circuits.of(
        [0, 1], [0, 1], [2, 2], 0, [0, 5], 5, (np.array([edge(0, EAST), edge(1, EAST), edge(1, EAST)]), [0, 2, 3])
    )
    by_wavelength = fabric("lightpath:shape=1x3,waveguides=1")
    as_a_whole = fabric("lightpath:shape=1x3,waveguides=1,switch_unit=waveguide")
    assert carried(by_wavelength, [(0, 2), (1, 2)], both) == set()
    assert carried(as_a_whole, [(0, 2), (1, 2)], both) == {"waveguide_unassigned"}
    assert carried(as_a_whole, [(0, 2), (1, 2)], replace(both, waveguide=np.zeros(2, np.int32))) == {"mzi_clash"}


def test_a_loop_fills_its_edges_twice() -> None:
    """Light that comes round again needs another waveguide."""
    loop = [edge(0, EAST), edge(1, SOUTH), edge(4, WEST), edge(3, NORTH)]
    path = np.array([[*loop, *loop, edge(0, EAST)]])
    circuits = Circuits.of([0], [0], [1], path=path)
    assert carried(fabric("lightpath:shape=3x3,waveguides=3"), [(0, 1)], circuits) == set()
    assert carried(fabric("lightpath:shape=3x3,waveguides=2"), [(0, 1)], circuits) == {"waveguide_overfull"}


# --- a good plan, spoiled ---------------------------------------------------------------------------------------------


def spoiled(change: Callable[[Circuits], Circuits]) -> set[str]:
    """Rules broken by LUMORPH-4 on 4 x 4 tiles after a change to the light of its step 1."""
    where = fabric("lightpath:shape=4x4")
    good = lower(where, generate("lumorph:radix=4", "all_reduce", where))

    def rounds(i: int) -> tuple[Circuits, ...]:
        return tuple(map(change, good.rounds(i))) if i == 1 else good.rounds(i)

    return {v.rule for v in verify(replace(good, rounds=rounds)).violations}


def with_column(name: str, row: int, value: int) -> Callable[[Circuits], Circuits]:
    """One entry of one column changed."""

    def change(circuits: Circuits) -> Circuits:
        column = getattr(circuits, name).copy()
        column[row] = value
        return replace(circuits, **{name: column})

    return change


def test_unspoiled_plan_is_good() -> None:
    """The mutants below start from a plan that the judge accepts."""
    assert spoiled(lambda circuits: circuits) == set()


@pytest.mark.parametrize(
    ("change", "rules"),
    [
        pytest.param(with_column("wavelength_lo", 0, 3), {"laser_shared", "photodiode_shared"}, id="other lasers"),
        pytest.param(with_column("wavelength_n", 0, 6), {"laser_shared", "photodiode_shared"}, id="one laser more"),
        pytest.param(with_column("port", 0, 1), {"port_unknown"}, id="other port"),
        pytest.param(with_column("hops", 0, 7), {"path_broken"}, id="bent path"),
        pytest.param(with_column("dst", 0, 1), {"circuit_astray", "path_broken"}, id="other receiver"),
        pytest.param(with_column("transfer", 0, 1), {"circuit_astray", "transfer_not_carried"}, id="other transfer"),
        pytest.param(lambda c: c.take(np.arange(1, len(c))), {"transfer_not_carried"}, id="dropped circuit"),
        pytest.param(
            lambda c: concatenate_circuits([c, c.take([0])]),
            {"laser_shared", "photodiode_shared"},
            id="doubled circuit",
        ),
    ],
)
def test_a_spoiled_plan_is_refused_by_name(change: Callable[[Circuits], Circuits], rules: set[str]) -> None:
    """Each change breaks exactly these rules."""
    assert spoiled(change) == rules


def test_rounds_that_were_split_cannot_stand_together() -> None:
    """Two rounds of a step on few waveguides, put into one, overfill the waveguides and nothing else."""
    where = fabric("lightpath:shape=4x4,waveguides=1")
    split = lower(where, generate("lumorph:radix=2", "all_reduce", where))
    together = replace(split, rounds=lambda i: (concatenate_circuits(split.rounds(i)),))
    verify(split).raise_if_bad()
    assert {v.rule for v in verify(together).violations} == {"waveguide_overfull"}
