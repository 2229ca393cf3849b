"""TeraRack ring: the paper's numbers, shapes, and light that the hardware cannot make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.fabrics.walks import refusals

from opticcl.errors import FabricError, ParameterError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.ir import Circuits

RING = fabric("terarack", nodes=6, wavelengths=4, rings=2)


def light(
    src: list[int], dst: list[int], port: Any, paths: list[list[int]], wavelength: Any = 0, n: int = 1
) -> Circuits:
    """Circuits on the given segments."""
    offsets = np.cumsum([0, *map(len, paths)])
    hops = np.concatenate([np.asarray(p, int) for p in paths])
    return Circuits.of(np.arange(len(src)), np.array(src), np.array(dst), port, wavelength, n, (hops, offsets))


def test_numbers_of_the_paper() -> None:
    """Table 2 and section 3.2: 64 wavelengths of 40 Gb/s each way, 25 us, 497 fs; four interfaces with both rings."""
    made = fabric("terarack")
    assert (made.num_nodes, made.num_wavelengths, made.ports_per_node, made.lasers_per_port) == (1024, 64, 2, 64)
    assert (made.rate_bits_per_s, made.reconfiguration_s, made.latency_s) == (40e9, 25e-6, 497e-15)
    assert made.node_rate_bits_per_s == 5.12e12
    assert fabric("terarack:rings=2").ports_per_node == 4


def test_light_both_ways_is_accepted() -> None:
    """Two arcs each way between the same nodes, over the place where the numbers wrap, on one wavelength."""
    paths = [[4, 5, 0], [1, 2, 3], [6 + 0, 6 + 5, 6 + 4], [6 + 3, 6 + 2, 6 + 1]]
    assert refusals(RING, light([4, 1, 1, 4], [1, 4, 4, 1], [0, 0, 1, 1], paths)) == set()


@pytest.mark.parametrize(
    ("port", "path"),
    [
        pytest.param(0, [1, 2], id="cut before the receiver"),
        pytest.param(0, [2, 3], id="starts behind the sender"),
        pytest.param(0, [1, 3], id="jumps over a segment"),
        pytest.param(0, [1, 8, 3], id="bent onto the other fibre"),
        pytest.param(0, [1, 1, 3], id="a segment repeated for another"),
        pytest.param(0, [6 + 0, 6 + 5, 6 + 4], id="clockwise port, counter-clockwise fibre"),
        pytest.param(1, [1, 2, 3], id="counter-clockwise port, clockwise fibre"),
        pytest.param(0, [1, 2, 3, 4, 5, 0, 1, 2, 3], id="past the receiver and round again"),
        pytest.param(0, [], id="no segment"),
        pytest.param(0, [1, 2, 15], id="a segment that is not there"),
        pytest.param(0, [-5, 2, 3], id="a negative segment"),
    ],
)
def test_broken_path_is_refused(port: int, path: list[int]) -> None:
    """Light goes from 1 to 4 along the fibre of its port, or not at all."""
    assert refusals(RING, light([1], [4], port, [path])) == {"path_broken"}


def test_broken_path_among_good_ones_is_found() -> None:
    """The check of joints does not run over from one circuit into the next."""
    good = light([0, 2, 4], [2, 4, 0], 0, [[0, 1], [2, 3], [4, 5]])
    assert refusals(RING, good) == set()
    bad = light([0, 2, 4], [2, 4, 0], 0, [[0, 1], [2, 4], [4, 5]])
    assert [list(f.circuits) for f in RING.faults(bad)][-1] == [1]


def test_port_or_wavelength_that_is_not_there_is_refused() -> None:
    """Ports 0 to 3, wavelengths 0 to 3."""
    assert refusals(RING, light([1], [2], 4, [[1]])) == {"port_unknown"}
    assert refusals(RING, light([1], [2], 0, [[1]], wavelength=4)) == {"wavelength_unknown"}
    assert refusals(RING, light([1], [2], 0, [[1]], wavelength=3, n=2)) == {"wavelength_unknown"}


def test_fibre_carries_a_wavelength_once() -> None:
    """Arcs that overlap in one segment clash on one wavelength and not on two, nor on the other ring."""
    src, dst, paths = [0, 1], [2, 3], [[0, 1], [1, 2]]
    assert refusals(RING, light(src, dst, 0, paths)) == {"wavelength_clash"}
    assert refusals(RING, light(src, dst, 0, paths, wavelength=[0, 1])) == set()
    assert refusals(RING, light(src, dst, [0, 2], paths)) == set()
    assert refusals(RING, light(src, dst, 0, paths, wavelength=[0, 1], n=2)) == {"wavelength_clash"}


def test_doubled_circuit_is_refused() -> None:
    """The same light twice: fibre, modulator and photodiode are each there once."""
    doubled = light([1, 1], [3, 3], 0, [[1, 2], [1, 2]])
    assert refusals(RING, doubled) == {"wavelength_clash", "laser_shared", "photodiode_shared"}


@pytest.mark.parametrize("nodes", [1, 2, 3, 139, 65536])
def test_any_number_of_nodes(nodes: int) -> None:
    """A ring has any number of nodes, and the rate of a node is what was asked for."""
    made = fabric_at_scale("terarack", nodes, 12.8e12)
    assert made.num_nodes == nodes
    assert made.node_rate_bits_per_s == pytest.approx(12.8e12)


@pytest.mark.parametrize("nodes", [1, 2])
def test_smallest_rings(nodes: int) -> None:
    """On two nodes every segment joins the two; on one node it joins the node to itself."""
    made = fabric("terarack", nodes=nodes)
    last = nodes - 1
    assert refusals(made, light([0], [last], 0, [[0]])) == set()
    assert refusals(made, light([0], [last], 1, [[nodes + last]])) == set()
    assert refusals(made, light([0], [last], 0, [[nodes]])) == {"path_broken"}


@pytest.mark.parametrize(
    "text", ["nodes=0", "wavelengths=0", "rings=0", "wavelength_rate=0b/s", "reconfiguration=-1s", "oeo=-1s"]
)
def test_bad_shape_is_refused(text: str) -> None:
    """The message names the field."""
    with pytest.raises(FabricError, match=text.split("=")[0]):
        fabric(f"terarack:{text}")


def test_unknown_parameter_is_refused() -> None:
    """A group size is the algorithm's business."""
    with pytest.raises(ParameterError, match="group_size"):
        fabric("terarack:group_size=5")
