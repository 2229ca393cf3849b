"""TeraRack nodes on a torus or mesh: shapes, and light that the hardware cannot make."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from tests.fabrics.test_terarack import light, refusals

from opticcl.assumptions import assumptions
from opticcl.errors import FabricError, ParameterError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.fabrics.terarack_torus import TerarackTorus

TORUS, MESH = (fabric("terarack_torus", shape=(3, 5), wavelengths=4, wrap=wrap) for wrap in (True, False))
N = 15  # nodes 0..4 are the first row; segment p N + i


def test_numbers_of_the_paper() -> None:
    """n x n nodes of section 3.2: four interfaces of 64 micro-rings at 40 Gb/s, 25 us."""
    made = fabric("terarack_torus")
    assert (made.num_nodes, made.num_wavelengths, made.ports_per_node, made.lasers_per_port) == (1024, 64, 4, 64)
    assert (made.rate_bits_per_s, made.reconfiguration_s) == (40e9, 25e-6)


def test_light_along_rows_and_columns_is_accepted() -> None:
    """Row 1 both ways and column 2 both ways, over the places where the numbers wrap, all on one wavelength."""
    paths = [[8, 9, 5], [N + 7, N + 6, N + 5, N + 9], [2 * N + 7, 2 * N + 12], [3 * N + 2, 3 * N + 12]]
    assert refusals(TORUS, light([8, 8, 7, 7], [6, 9, 2, 12], [0, 1, 2, 3], paths)) == set()


@pytest.mark.parametrize(
    ("where", "src", "dst", "port", "path"),
    [
        pytest.param(TORUS, 0, 6, 0, [0, 2 * N + 1], id="turns from the row into the column"),
        pytest.param(TORUS, 0, 2, 0, [0], id="cut before the receiver"),
        pytest.param(TORUS, 0, 3, 0, [0, 2], id="leaves out a segment"),
        pytest.param(TORUS, 0, 2, 2, [0, 1], id="column port, row fibre"),
        pytest.param(TORUS, 0, 2, 1, [0, 1], id="backward port, forward fibre"),
        pytest.param(TORUS, 4, 5, 0, [4], id="from the end of one row to the next"),
        pytest.param(TORUS, 0, 5, 2, [2 * N, 2 * N + 5, 2 * N + 10, 2 * N], id="round the column again"),
        pytest.param(TORUS, 0, 1, 0, [60], id="a segment that is not there"),
        pytest.param(TORUS, 0, 1, 0, [-15], id="a negative segment"),
        pytest.param(TORUS, 0, 1, 0, [], id="no segment"),
        pytest.param(MESH, 4, 0, 0, [4], id="a mesh has no way round a row"),
        pytest.param(MESH, 10, 0, 2, [2 * N + 10], id="nor a column"),
        pytest.param(MESH, 0, 4, 1, [N + 4], id="nor back"),
    ],
)
def test_broken_path_is_refused(where: Any, src: int, dst: int, port: int, path: list[int]) -> None:
    """Light stays in its row or column and goes from sender to receiver."""
    assert refusals(where, light([src], [dst], port, [path])) == {"path_broken"}


def test_mesh_carries_what_does_not_wrap() -> None:
    """All four directions."""
    paths = [[5, 6], [N + 6, N + 5], [2 * N + 1, 2 * N + 6], [3 * N + 6, 3 * N + 1]]
    assert refusals(MESH, light([5, 7, 1, 11], [7, 5, 11, 1], [0, 1, 2, 3], paths)) == set()


def test_a_wavelength_is_there_once() -> None:
    """On a segment, at a modulator, at a photodiode; other fibres and wavelengths are free."""
    assert refusals(TORUS, light([0, 1], [2, 3], 0, [[0, 1], [1, 2]])) == {"wavelength_clash"}
    assert refusals(TORUS, light([0, 1], [2, 3], 0, [[0, 1], [1, 2]], wavelength=[0, 1])) == set()
    doubled = light([0, 0], [1, 1], 0, [[0], [0]])
    assert refusals(TORUS, doubled) == {"wavelength_clash", "laser_shared", "photodiode_shared"}
    assert refusals(TORUS, light([0], [1], 4, [[0]])) == {"port_unknown"}
    assert refusals(TORUS, light([0], [1], 0, [[0]], wavelength=4)) == {"wavelength_unknown"}


@pytest.mark.parametrize(("nodes", "shape"), [(1, (1, 1)), (2, (1, 2)), (7, (1, 7)), (12, (3, 4)), (1024, (32, 32))])
def test_any_number_of_nodes(nodes: int, shape: tuple[int, int]) -> None:
    """As like a square as can be; every ring order is linked."""
    made = fabric_at_scale("terarack_torus", nodes, 12.8e12)
    assert made.parameters["shape"] == shape
    assert made.node_rate_bits_per_s == pytest.approx(12.8e12)
    order = made.ring_order()
    assert sorted(order) == list(range(nodes))
    assert made.linked(order, np.roll(order, -1)).all()


@pytest.mark.parametrize(
    "text", ["shape=8", "shape=2x2x2", "wavelengths=0", "wavelength_rate=0b/s", "reconfiguration=-1s", "oeo=-1s"]
)
def test_bad_shape_is_refused(text: str) -> None:
    """The message names the field."""
    with pytest.raises(FabricError, match=text.split("=")[0]):
        fabric(f"terarack_torus:{text}")


def test_no_side_is_nothing() -> None:
    """A side of 0 is no shape at all."""
    with pytest.raises(ParameterError):
        fabric("terarack_torus:shape=0x4")


# --- every fibre, from the drawing ------------------------------------------------------------------------------------

SHAPES = [(1, 4), (4, 1), (2, 3), (3, 2), (5, 4)]
EVERY = [(shape, wrap) for shape in SHAPES for wrap in (True, False)]


def fibres(rows: int, columns: int, wrap: bool) -> dict[int, tuple[int, int]]:
    """Node where light enters each segment, and node where it leaves."""
    found = {}
    for i in range(rows * columns):
        row, column = divmod(i, columns)
        for port, (down, right) in enumerate(((0, 1), (0, 1), (1, 0), (1, 0))):
            if wrap or (row + down < rows and column + right < columns):
                far = (row + down) % rows * columns + (column + right) % columns
                found[port * rows * columns + i] = (i, far) if port in (0, 2) else (far, i)
    return found


@pytest.mark.parametrize(("shape", "wrap"), EVERY)
def test_every_fibre_joins_two_neighbours(shape: tuple[int, int], wrap: bool) -> None:
    """Light from end to end of every segment is right, any other end is not; the netlist has these fibres."""
    where = fabric("terarack_torus", shape=shape, wavelengths=2, wrap=wrap)
    n, found = shape[0] * shape[1], fibres(*shape, wrap)
    assert [(r.kind, r.count) for r in where.resources] == [("fibre", 4 * n), ("laser", 4 * n), ("photodiode", 4 * n)]
    for segment in range(4 * n):
        begin, end = found.get(segment, (segment % n, segment % n))
        path = light([begin, begin, end], [end, (end + 1) % n, end], segment // n, [[segment]] * 3)
        right = {0} if segment in found else set()
        right |= {2} if begin == end and segment in found else set()
        assert {0, 1, 2} - set(np.concatenate([f.circuits for f in where.faults(path)]).tolist()) == right
        if segment in found:
            due = f"fibre from {where.node_name(begin)} to {where.node_name(end)} (port {segment // n})"
            assert where.place_name(where.resources[0], segment) == due
    netlist = where.netlist()
    assert netlist is not None
    (group,) = (each for each in netlist.groups if each.name == "fibre")
    assert group.count == len(found)
    assert netlist.count("photodiode") == 4 * n * 2
    named = sorted(group.place(i) for i in range(group.count))
    assert named == sorted(where.place_name(where.resources[0], segment) for segment in found)


@pytest.mark.parametrize(("shape", "wrap"), EVERY)
def test_distance_counts_fibres(shape: tuple[int, int], wrap: bool) -> None:
    """As a search over the fibres finds; nodes are linked if that search need not turn."""
    where = fabric("terarack_torus", shape=shape, wrap=wrap)
    n = shape[0] * shape[1]
    graph = nx.DiGraph(list(fibres(*shape, wrap).values()))
    far = dict(nx.all_pairs_shortest_path_length(graph))
    src, dst = np.divmod(np.arange(n * n), n)
    assert where.distance(src, dst).tolist() == [far[a][b] for a, b in zip(src.tolist(), dst.tolist(), strict=True)]
    same = [divmod(a, shape[1])[k] == divmod(b, shape[1])[k] for a in range(n) for b in range(n) for k in (0, 1)]
    assert where.linked(src, dst).tolist() == np.reshape(same, (-1, 2)).any(axis=1).tolist()
    assert not where.links_all
    assert where.coordinates(n - 1) == str((shape[0] - 1, shape[1] - 1))


@pytest.mark.parametrize(("shape", "wrap"), EVERY)
def test_cuts_count_the_fibres_that_cross_them(shape: tuple[int, int], wrap: bool) -> None:
    """Each cut has the rate of the fibres that leave its first side, and of those that enter it."""
    where = fabric("terarack_torus", shape=shape, wavelengths=3, wrap=wrap)
    n = shape[0] * shape[1]
    cuts = list(where.cuts(np.arange(n)))
    joined = list(fibres(*shape, wrap).values())
    for cut in cuts:
        inside = cut.inside.tolist()
        out = sum(inside[a] and not inside[b] for a, b in joined)
        back = sum(inside[b] and not inside[a] for a, b in joined)
        assert (cut.out_bits_per_s, cut.in_bits_per_s) == (out * 3 * 40e9, back * 3 * 40e9)
        assert 0 < sum(inside) < n
    named = {f"bisection of the {name}" for name, side in zip(("columns", "rows"), shape, strict=True) if side > 1}
    assert {cut.where for cut in cuts} == named


def test_rings_are_cut_in_halves_and_lines_anywhere() -> None:
    """Of 4 columns of 3 nodes: on a torus two of them, through two fibres a row; on a mesh 1, 2 or 3, through one."""
    node = np.arange(12)
    for wrap, due in ((True, {((0, 1), 6), ((1, 2), 6)}), (False, {((0,), 3), ((0, 1), 3), ((0, 1, 2), 3)})):
        where = fabric("terarack_torus:shape=3x4,wavelengths=1,wavelength_rate=1b/s", wrap=wrap)
        cuts = [cut for cut in where.cuts(node) if cut.where == "bisection of the rows"]
        found = {
            (tuple(np.flatnonzero(cut.inside)[: cut.inside.sum() // 3].tolist()), cut.out_bits_per_s) for cut in cuts
        }
        assert found == due


def test_axes_have_two_ports_each() -> None:
    """Down the columns a node changes its row, by ports 2 and 3 of 4 wavelengths each; along the rows its column."""
    where = fabric("terarack_torus:shape=2x3,wavelengths=4,wavelength_rate=10Gb/s")
    found = [(a.name, a.coordinate.tolist(), a.rate_bits_per_s, a.partners) for a in where.axes(np.arange(6))]
    assert found == [
        ("the columns", [0, 0, 0, 1, 1, 1], 80e9, 8),
        ("the rows", [0, 1, 2, 0, 1, 2], 80e9, 8),
    ]


def test_rings_are_set_where_light_passes() -> None:
    """Off at the nodes between, on at the receiver's port, as the sender's modulator: ring (4 node + port) w + wavelength."""
    paths = [[8, 9, 5], [N + 7, N + 6, N + 5, N + 9], [2 * N + 7, 2 * N + 12], [3 * N + 2, 3 * N + 12]]
    through = [[9, 5, 6], [7, 6, 5, 9], [12, 2], [2, 12]]
    lit = light([8, 8, 7, 7], [6, 9, 2, 12], [0, 1, 2, 3], paths, [0, 1, 2, 3])
    where = fabric("terarack_torus:shape=3x5,wavelengths=4")
    modulator, ring = where.settings(lit)
    assert modulator.index.tolist() == [(4 * node + k) * 4 + k for k, node in enumerate((8, 8, 7, 7))]
    assert modulator.setting.tolist() == [1] * 4
    assert ring.index.tolist() == [(4 * node + k) * 4 + k for k, nodes in enumerate(through) for node in nodes]
    assert ring.setting.tolist() == [0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1]
    adds, drops = where.states(lit)
    assert (adds.kind, drops.kind) == ("add", "drop")
    assert adds.index.tolist() == [4 * node + k for k, node in enumerate((8, 8, 7, 7))]
    assert drops.index.tolist() == [4 * node + k for k, nodes in enumerate(through) for node in nodes]
    assert drops.within is not None
    assert drops.within.tolist() == [k for k, nodes in enumerate(through) for _ in nodes]
    assert [(d.kind, d.count, d.setting_time_s) for d in where.devices] == [
        ("modulator", 240, 25e-6),
        ("ring", 240, 25e-6),
    ]
    fibre, laser, photodiode = where.usage(lit)
    assert fibre.index.tolist() == lit.hops.tolist()
    assert laser.index.tolist() == [4 * 8, 4 * 8 + 1, 4 * 7 + 2, 4 * 7 + 3]
    assert photodiode.index.tolist() == [4 * 6, 4 * 9 + 1, 4 * 2 + 2, 4 * 12 + 3]


@pytest.mark.parametrize("shape", SHAPES)
def test_fibres_are_as_long_as_the_way_between_their_nodes(shape: tuple[int, int]) -> None:
    """Racks of 2 nodes; a segment and the one back have one length."""
    where = fabric("terarack_torus", shape=shape)
    floor = replace(assumptions("common").floor, nodes_per_rack=2)
    n = shape[0] * shape[1]
    begin, end = np.array([fibres(*shape, True)[segment] for segment in range(4 * n)]).T
    passed = where.hop_passages(floor)
    assert np.array_equal(passed.fibre_m, floor.segments_m(n, np.minimum(begin, end), np.maximum(begin, end)))
    assert where.passage(floor).receivers == 1


def test_the_example_and_the_worst_path() -> None:
    """Nine nodes of two wavelengths; on 2 x 7 nodes the worst of the shorter ways is along a row."""
    example = TerarackTorus.example()
    assert example == (fabric("terarack_torus:shape=3x3,wavelengths=2"), "torus_all_ports:pieces=2")
    for shape, wrap in (((2, 7), True), ((7, 2), True), ((2, 7), False), ((7, 2), False)):
        where = fabric("terarack_torus", shape=shape, wrap=wrap)
        other = fabric("terarack_torus", shape=(1, 7), wrap=wrap)
        assert where.light_path.extremes.max(axis=0).tolist() == other.light_path.extremes.max(axis=0).tolist()
