"""TeraRack nodes on a torus or mesh: shapes, and light that the hardware cannot make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.fabrics.test_terarack import light, refusals

from opticcl.errors import FabricError, ParameterError
from opticcl.fabrics import fabric, fabric_at_scale

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
