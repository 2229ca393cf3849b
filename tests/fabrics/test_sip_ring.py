"""SiP-Ring: ODDL's numbers, shapes, and light that the hardware cannot make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.fabrics.walks import refusals

from opticcl.errors import FabricError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.ir import Circuits

ONE, TWO = (fabric("sip_ring", nodes=6, wavelengths=4, directions=d) for d in (1, 2))


def light(src: list[int], dst: list[int], paths: list[list[int]], port: Any = 0, wavelength: Any = 0) -> Circuits:
    """Circuits on the given segments."""
    offsets = np.cumsum([0, *map(len, paths)])
    hops = np.concatenate([np.asarray(p, int) for p in paths])
    return Circuits.of(np.arange(len(src)), np.array(src), np.array(dst), port, wavelength, 1, (hops, offsets))


def test_numbers_of_oddl() -> None:
    """Table 2 and section 3.C: NICs of 100 Gb/s, 5 us to change a link, 96 wavelengths; one way round."""
    made = fabric("sip_ring")
    assert (made.num_nodes, made.num_wavelengths, made.ports_per_node) == (1024, 96, 1)
    assert (made.rate_bits_per_s, made.node_rate_bits_per_s, made.reconfiguration_s) == (100e9, 100e9, 5e-6)
    assert [(r.kind, r.count) for r in made.resources] == [("fibre", 1024), ("tx_port", 1024), ("rx_port", 1024)]
    assert fabric("sip_ring:directions=2").node_rate_bits_per_s == 200e9


@pytest.mark.parametrize("nodes", [1, 2, 3, 139, 65536])
def test_any_number_of_nodes(nodes: int) -> None:
    """A ring has any number of nodes, and the rate of a node is what was asked for."""
    for spec in ("sip_ring", "sip_ring:directions=2"):
        made = fabric_at_scale(spec, nodes, 12.8e12)
        assert made.num_nodes == nodes
        assert made.node_rate_bits_per_s == pytest.approx(12.8e12)


def test_arcs_that_do_not_meet_share_a_wavelength() -> None:
    """One behind the other on one fibre, over the place where the numbers wrap, and the other way on the other fibre."""
    assert refusals(ONE, light([4, 1], [1, 4], [[4, 5, 0], [1, 2, 3]])) == set()
    both = light([4, 1, 1, 4], [1, 4, 4, 1], [[4, 5, 0], [1, 2, 3], [6, 11, 10], [9, 8, 7]], port=[0, 0, 1, 1])
    assert refusals(TWO, both) == set()


def test_fibre_carries_a_wavelength_once() -> None:
    """Arcs that overlap in one segment clash on one wavelength and not on two."""
    src, dst, paths = [0, 1], [2, 3], [[0, 1], [1, 2]]
    assert refusals(ONE, light(src, dst, paths)) == {"wavelength_clash"}
    assert refusals(ONE, light(src, dst, paths, wavelength=[0, 1])) == set()


def test_a_nic_has_one_partner_at_a_time() -> None:
    """Two wavelengths of one sender, or towards one receiver, are refused; a fibre each way has its own NIC."""
    assert refusals(ONE, light([0, 0], [1, 2], [[0], [0, 1]], wavelength=[0, 1])) == {"transmitter_shared"}
    assert refusals(ONE, light([0, 1], [2, 2], [[0, 1], [1]], wavelength=[0, 1])) == {"receiver_shared"}
    assert refusals(TWO, light([0, 0], [1, 5], [[0], [11]], port=[0, 1])) == set()


def test_a_transmitter_lights_one_wavelength() -> None:
    """Two side by side would double its rate."""
    wide = Circuits.of([0], np.array([0]), np.array([1]), 0, 0, 2, np.array([[0]]))
    assert refusals(ONE, wide) == {"wavelength_unheard"}


@pytest.mark.parametrize(
    ("port", "path"),
    [
        pytest.param(0, [1, 2], id="cut before the receiver"),
        pytest.param(0, [2, 3], id="starts behind the sender"),
        pytest.param(0, [1, 3], id="jumps over a segment"),
        pytest.param(0, [], id="no segment"),
        pytest.param(0, [6, 11, 10], id="the fibre of the other way"),
        pytest.param(1, [1, 2, 3], id="the port of the other way"),
        pytest.param(0, [1, 2, 15], id="a segment that is not there"),
    ],
)
def test_broken_path_is_refused(port: int, path: list[int]) -> None:
    """Light goes from 1 to 4 along the fibre of its port, or not at all."""
    assert refusals(TWO, light([1], [4], [path], port)) == {"path_broken"}


def test_what_is_not_there_is_refused() -> None:
    """A second port on a one-way ring, a fifth wavelength of four."""
    assert refusals(ONE, light([1], [0], [[6]], port=1)) == {"port_unknown"}
    assert refusals(ONE, light([1], [2], [[1]], wavelength=4)) == {"wavelength_unknown"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes=0", "nodes=0; at least 1"),
        ("wavelengths=0", "wavelengths=0"),
        ("directions=0", "directions=0"),
        ("directions=3", "directions=3; light runs round a ring in 1 or 2"),
        ("nic_rate=0b/s", "nic_rate=0"),
        ("reconfiguration=-1s", "at least 0"),
    ],
)
def test_bad_shape_is_refused(text: str, message: str) -> None:
    """The message names the field."""
    with pytest.raises(FabricError, match=message):
        fabric(f"sip_ring:{text}")
