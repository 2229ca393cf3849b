"""Pictures of light."""

from xml.etree import ElementTree

import numpy as np
import pytest

import opticcl
from opticcl.errors import ParameterError
from opticcl.fabrics.lightpath import tile_of_node
from opticcl.report.light import light_caption, light_picture, small_instance
from opticcl.report.light.chords import joined
from opticcl.report.light.grid import corners, free_lanes, straight_runs
from opticcl.report.light.panels import panels, strands
from opticcl.report.light.ring import unrolled

SYSTEMS = ("ramp", "sipac", "terarack", "terarack_torus", "oddl", "lightpath", "ideal")


@pytest.fixture(scope="module", params=SYSTEMS)
def plan(request):
    """A small instance of each system."""
    return small_instance(request.param)


def texts(svg):
    """All texts of a picture."""
    return [e.text for e in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_small_instances_are_right_and_their_pictures_tell_every_step(plan):
    """Verified; a headline for each run of steps; all wavelengths in the legend; the caption says what is drawn."""
    assert plan.verify().ok
    assert plan.fabric.num_nodes <= 20
    svg = light_picture(plan)
    assert len(svg) < 150_000  # of a page with a picture of every fabric
    said = texts(svg)
    shown, total = panels(plan)
    assert len(shown) == total
    assert all(panel.title in said for panel in shown)
    lit = {int(w) for panel in shown for w in strands(panel.circuits).wavelength}
    legend = {int(t[1:]) for t in said if t and t.startswith("λ")}
    assert legend == (set() if plan.fabric.is_packet_switched else lit)
    assert f"{plan.fabric.num_nodes} nodes of {plan.fabric.name}" in light_caption(plan)


def test_steps_can_be_chosen():
    """Only the steps asked for are drawn, and the same picture every time."""
    plan = small_instance("oddl")
    svg = light_picture(plan, steps=[2, 4])
    said = texts(svg)
    assert light_picture(plan, steps=iter([2, 4])) == svg
    assert [t for t in said if t and t.startswith("step ")] == ["step 2", "step 4"]


def test_bonded_wavelengths_are_drawn_one_by_one():
    """A circuit of two wavelengths is two lines, one of sixteen is a single one."""
    few, many = (
        opticcl.compile(
            f"oddl:shape=4,wavelengths={w}", "all_reduce", 1000, algorithm="halving_doubling"
        ).circuits.rounds(0)[0]
        for w in (4, 32)
    )
    assert sorted(strands(few).wavelength.tolist()) == [2] * 4 + [3] * 4
    assert len(strands(many).wavelength) == 4


def test_large_plans_are_bundled():
    """512 nodes are drawn as groups of neighbours, in a picture that is still small."""
    plan = opticcl.compile("ideal:nodes=512", "all_reduce", "1 MB", algorithm="ring")
    svg = light_picture(plan)
    assert "nodes 0-12" in texts(svg)
    assert len(svg) < 200_000


def test_nothing_to_draw_is_an_error():
    """A single node sends no light."""
    plan = opticcl.compile("ideal:nodes=1", "all_reduce", 1000, algorithm="ring")
    with pytest.raises(ParameterError, match="sends nothing"):
        light_picture(plan)


@pytest.mark.parametrize("numbering", ["row", "random"])
def test_routes_on_the_grid_begin_and_end_in_their_tiles(numbering):
    """The line of a circuit leads from its sender's tile to its receiver's, and lines on one edge never coincide."""
    where = f"lightpath:shape=3x5,numbering={numbering}"
    plan = opticcl.compile(where, "all_reduce", 1000, algorithm="lumorph:radix=16")
    tile = tile_of_node((3, 5), numbering)
    circuits = plan.circuits.rounds(0)[0]
    runs = [straight_runs(circuits.path(i).tolist()) for i in range(len(circuits))]
    lanes = free_lanes(runs)
    used = [
        (hop, lane)
        for each, at in zip(runs, lanes, strict=True)
        for run, lane in zip(each, at, strict=True)
        for hop in run
    ]
    assert len(used) == len(set(used)) == len(circuits.hops)
    for i in range(len(circuits)):
        points = np.array(corners(runs[i], lanes[i], columns=5, pitch=1.0, gap=0.01))
        ends = [int(-y) * 5 + int(x) for x, y in (points[0], points[-1])]
        assert ends == [tile[circuits.src[i]], tile[circuits.dst[i]]]
        assert ((np.diff(points, axis=0) != 0).sum(axis=1) == 1).all()  # along rows and columns only


def test_light_on_the_ring_covers_its_segments():
    """Pieces on the unrolled ring are as long as the path has segments, and begin and end at its nodes."""
    plan = small_instance("terarack")
    n = plan.fabric.num_nodes
    for step in range(plan.schedule.num_steps):
        for circuits in plan.circuits.rounds(step):
            for i in range(len(circuits)):
                way = int(circuits.port[i]) % 2
                pieces = unrolled(circuits.path(i) % n, way, n)
                assert sum(abs(b - a) for a, b in pieces) == len(circuits.path(i))
                assert pieces[0][0] % n == circuits.src[i]
                assert pieces[-1][1] % n == circuits.dst[i]
                assert all((b > a) == (way == 0) for a, b in pieces)


def test_chords_of_ramp_are_those_of_figure_8():
    """54 nodes: what node 0 is joined to in steps 1 to 3 is its subgroup of table 6; all fields of the matrices are drawn."""
    plan = opticcl.compile("ramp:groups=3,racks=3,wavelengths=6", "reduce_scatter", "1 MB", algorithm="ramp")
    shown, _ = panels(plan)
    subgroups = [{18 * g + 6 * j + device for g, j, device in step} for step in (
        [(y, 0, 0) for y in range(3)],
        [(y, 0, y) for y in range(3)],
        [(y, y, 0) for y in range(3)],
    )]  # fmt: skip
    assert [joined(panel.circuits, 0) for panel in shown[:3]] == subgroups
    svg = light_picture(plan)
    titles = [text for text in texts(svg) if text and text.startswith("step ")]
    assert titles == ["step 0", "step 1", "step 2", "step 3"]
    assert {str(node) for node in range(54)} <= set(texts(svg))
    assert "subgroup of node 0" in svg
    assert "circle" in light_caption(plan)
