"""Light paths: the papers' counts, and that worst and typical are what they say, over all pairs of small machines."""

import numpy as np
import pytest

from opticcl.circuits import lower
from opticcl.errors import UnsupportedError
from opticcl.fabrics import FABRICS, fabric, fabric_at_scale, job
from opticcl.fabrics.oddl import dimension_between, modules_passed
from opticcl.ir import Circuits
from opticcl.optics.values import chain_of, light_path_of, optics
from opticcl.schedule import generate

SMALL = (
    "ramp:groups=3,racks=2,wavelengths=6",
    "ramp:groups=2,racks=2,wavelengths=2,subnet=route_broadcast",
    "ramp:groups=2,racks=2,wavelengths=2,subnet=route_switch",
    "sipac:radix=1,levels=1,channels=ring",
    "sipac:radix=2,levels=1",
    "sipac:radix=3,levels=2",
    "sipac:radices=2x4x3,channels=retuned",
    "sipac:radices=2x4x3,channels=ring",
    "terarack:nodes=1",
    "terarack:nodes=2",
    "terarack:nodes=7,wavelengths=16",
    "terarack:nodes=8,wavelengths=16",
    "sip_ring:nodes=7,wavelengths=16",
    "sip_ring:nodes=6,wavelengths=16,directions=2",
    "topoopt:nodes=5,degree=2",
    "oddl:shape=4x8",
    "oddl:shape=5",
    "oddl:shape=16x2",
    "lightpath:shape=1x1",
    "lightpath:shape=3x5,numbering=random",
    "lightpath:shape=5x9,numbering=squares",
)


def all_pairs(made):
    """A circuit for every ordered pair that one circuit can join."""
    src, dst = (a.ravel() for a in np.indices((made.num_nodes,) * 2))
    keep = (src != dst) & made.linked(src, dst)
    src, dst = src[keep], dst[keep]
    if made.name == "oddl":
        hop = dimension_between(made.parameters["shape"], src, dst)
        return Circuits.of(np.arange(len(src)), src, dst, hop, path=hop[:, None])
    if made.name == "sipac":
        level = np.searchsorted(made.strides, np.abs(dst - src), side="right") - 1
        group = (dst - src) // made.strides[level] % np.array(made.sides)[level]
        return Circuits.of(np.arange(len(src)), src, dst, level, group, path=level[:, None])
    plan = lower(made, generate("mesh", "all_to_all", made))
    found = [c for step in range(plan.schedule.num_steps) for c in plan.rounds(step)]
    counts = np.concatenate([made.light_path(c) for c in found])
    ends = np.concatenate([np.stack([c.src, c.dst], 1) for c in found])
    assert len(np.unique(ends, axis=0)) == made.num_nodes * (made.num_nodes - 1)
    return counts[np.unique(ends, axis=0, return_index=True)[1]]


@pytest.mark.parametrize("spec", SMALL)
def test_worst_and_typical_are_those_of_all_pairs(spec):
    """No pair does worse than the worst path, one does as badly, and the typical path is the mean of all."""
    made = fabric(spec)
    path = made.light_path
    if made.num_nodes == 1:
        assert np.isfinite(path.typical).all()
        return
    found = all_pairs(made)
    counts = path(found) if isinstance(found, Circuits) else found
    assert counts.shape == (len(counts), len(path.elements))
    assert np.allclose(counts.mean(axis=0), path.typical)
    chain = chain_of(path, optics(path.table, "typical"))
    assert chain.margin_db(counts).min() == pytest.approx(chain.margin_db(path.extremes).min())


def test_pieces_of_the_papers():
    """RAMP's two stages of star couplers, ODDL's modules, LIGHTPATH's wafer, SiPAC's rings, WRHT's interfaces."""
    kinds = [e.kind for e in fabric("ramp").light_path.elements]
    ramp = fabric("ramp").light_path
    assert ramp.extremes[0][kinds.index("star")] == 2
    assert [e.ways for e in ramp.elements if e.ways > 1] == [32, 2048, 32]
    assert [modules_passed(ports) for ports in (8, 32, 64)] == [(8, 1), (32, 1), (8, 3)]
    board = fabric("lightpath:shape=4x8").light_path.extremes[0]
    assert board.tolist() == [1, 20, 7, 3, 10, 0]
    sipac = fabric("sipac", radix=128, levels=1).light_path
    assert sipac.extremes[0][[e.kind for e in sipac.elements].index("ring_pass")] == 254
    assert fabric("terarack:nodes=1024").light_path.extremes.tolist() == [[1, 512]]
    assert fabric("terarack_torus:shape=4x6,wrap=false").light_path.extremes.tolist() == [[1, 5], [1, 3]]


def test_seams_between_wafers_are_fibres():
    """Two wafers side by side have one, and a path straight through passes it once."""
    corner = fabric("lightpath:shape=1x16").light_path.extremes[0]
    assert corner.tolist() == [1, 30, 15, 0, 14, 1]
    made = fabric("lightpath:shape=1x16")
    plan = lower(made, generate("ring", "all_reduce", made))
    counts = made.light_path(plan.rounds(0)[0])
    assert counts[:, -1].sum() == 2  # from tile 7 to 8, and from the last tile home to the first


@pytest.mark.parametrize(
    "spec",
    [
        "lightpath:shape=5x9,numbering=squares",
        "lightpath:shape=9x17,routing=random",
        "lightpath:shape=4x10,routing=least_overlap,dead_waveguides=12-13:40+23-33:40+35-34:39",
        "lightpath:shape=3x9,dead_tiles=12+20,switch_unit=waveguide",
    ],
)
def test_seams_and_fibres_are_those_that_a_path_crosses(spec):
    """Hop by hop, on shortest paths and around dead parts, and never fewer of any than the pair has at least."""
    made = fabric(spec)
    plan = lower(made, generate("mesh", "all_to_all", made))
    least = made.light_path.least
    for circuits in (one for step in range(plan.schedule.num_steps) for one in plan.rounds(step)):
        due = []
        for i in range(len(circuits)):
            tiles, ways = np.divmod(circuits.path(i), 4)
            line, board = np.where(ways < 2, tiles % made.shape[1], tiles // made.shape[1]), np.where(ways < 2, 8, 4)
            fibres = np.count_nonzero(line // board != (line + 1 - 2 * (ways % 2)) // board)
            along_row = np.count_nonzero(ways < 2)
            due.append([1, 2 * len(ways), along_row, len(ways) - along_row, len(ways) - fibres, fibres])
        assert made.light_path(circuits).tolist() == due
        assert (least(circuits.src, circuits.dst) <= due).all()


@pytest.mark.parametrize("spec", [spec for spec in SMALL if "=1x1" not in spec and spec != "terarack:nodes=1"])
def test_no_circuit_passes_less_than_its_pair(spec):
    """Where a fabric says how much that is: what the best of all circuits of a plan passes, and no less."""
    made = fabric(spec)
    if made.light_path.least is None:
        assert not spec.startswith(("terarack", "sip_ring", "lightpath"))
        return
    found = {}
    for algorithm in ("mesh", "ring"):
        plan = lower(made, generate(algorithm, "all_reduce", made))
        for circuits in (one for step in range(plan.schedule.num_steps) for one in plan.rounds(step)):
            for src, dst, counts in zip(circuits.src, circuits.dst, made.light_path(circuits).tolist(), strict=True):
                found.setdefault((int(src), int(dst)), []).append(counts)
    src, dst = np.array(list(found)).T
    least = made.light_path.least(src, dst).tolist()
    assert all(min(counts) >= due for counts, due in zip(found.values(), least, strict=True))
    shortest = all(min(counts) == due for counts, due in zip(found.values(), least, strict=True))
    assert shortest or spec.startswith("terarack")  # which takes the longer way where the shorter is full


def test_a_job_keeps_the_light_of_the_machine():
    """Its circuits have the machine's nodes."""
    machine = fabric("sipac:radix=4,levels=2")
    part = job(machine, [0, 3, 12, 15])
    assert part.light_path is machine.light_path


@pytest.mark.parametrize("name", ["fat_tree", "ideal", "torus"])
def test_electrical_networks_have_no_light_path(name):
    """Nothing is invented for them."""
    assert fabric(name).light_path is None


def test_the_refusal_says_where_optical_fabrics_are_listed():
    """No list of names is kept."""
    with pytest.raises(UnsupportedError, match=r"ideal: no light path: .* opticcl list shows the optical fabrics"):
        light_path_of(fabric("ideal"))
    assert sum(fabric_at_scale(name, 16).light_path is not None for name in FABRICS.names()) == 9
