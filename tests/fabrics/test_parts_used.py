"""Parts that light passes: circuits and their parts, worked out by hand from the drawings of the hardware sections."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from opticcl.errors import FabricError
from opticcl.fabrics import fabric
from opticcl.ir import Circuits


def lit(rows: list[tuple[int, int, int, int, int, list[int]]], waveguide: int | None = None, step: int = 1) -> Circuits:
    """Circuits of (src, dst, port, first wavelength, number of wavelengths, hops)."""
    src, dst, port, lo, number, hops = zip(*rows, strict=True)
    path = np.concatenate(hops), np.cumsum([0, *map(len, hops)])
    made = Circuits.of(np.arange(len(rows)), src, dst, port, lo, number, path, step)
    return made if waveguide is None else replace(made, waveguide=np.full(len(rows), waveguide, np.int32))


SIPAC_ENDS = {
    "comb_laser": [2, 3],
    "modulator": [13, 15, 20],  # port 2 x 6 lines + 1 and 3, port 3 x 6 + 2
    "photodiode": [1, 3, 68],
    "switch": [0, 4],  # of level 0: nodes 0 and 1; of level 1, after the three: nodes 1, 3 and 5
    "input_fibre": [2, 3],
    "output_fibre": [0, 11],
}
SIPAC = lit([(1, 0, 0, 1, 2, [0]), (1, 5, 1, 2, 1, [1])], step=2)
TILES = [(0, 5, 0, 1, 2, [0, 4, 10])]  # east, east, south

CASES: dict[str, tuple[str, Circuits, dict[str, list[int]]]] = {
    "terarack": (  # two rings of six nodes; clockwise on the second ring, counter-clockwise on the first past node 0
        "terarack:nodes=6,wavelengths=2,rings=2",
        lit([(1, 4, 2, 0, 2, [1, 2, 3]), (1, 5, 1, 1, 1, [6, 11])]),
        {
            "node": [1, 4, 1, 5],
            "comb_laser": [6, 5],
            "modulator": [12, 13, 11],
            "filter": [36, 37, 43],
            "fibre": [13, 14, 15, 6, 11],
        },
    ),
    "lightpath": (
        "lightpath:shape=2x3,waveguides=2,lasers=4",
        lit(TILES),
        {"node": [0, 1, 2, 5], "laser": [1, 2], "photodiode": [21, 22], "mzi": [0, 2, 6]},
    ),
    "lightpath, waveguides with numbers": (  # tiles 0, 1, 2 and 5 are nodes 0, 1, 4 and 5
        "lightpath:shape=2x3,waveguides=2,lasers=4,switch_unit=waveguide,numbering=squares",
        lit(TILES, waveguide=1),
        {
            "node": [0, 1, 4, 5],
            "laser": [1, 2],
            "photodiode": [21, 22],
            "mzi": [0, 2, 6],
            "waveguide": [1, 5, 13],
        },
    ),
    "oddl": (  # two columns of four; control switches have two nodes each
        "oddl:shape=2x4,control_radix=4",
        lit([(1, 5, 0, 0, 2, [0]), (1, 3, 1, 0, 2, [1])]),
        {
            "node": [1, 5, 1, 3],
            "transmitter": [2, 3],
            "receiver": [10, 7],
            "input_fibre": [2, 3],
            "output_fibre": [10, 7],
            "switch": [1, 4],
            "control_switch": [0, 2, 0, 1],
        },
    ),
    "sipac": (
        "sipac:radices=2x3,wavelengths=6",
        SIPAC,
        {"node": [1, 0, 1, 5], "micro_ring": [2, 17], **SIPAC_ENDS},
    ),
    "sipac, retuned": (  # one ring less an input: node 1 to output 0, then 12 - 6 on, node 1 to the second output after its own
        "sipac:radices=2x3,wavelengths=6,channels=retuned",
        SIPAC,
        {"node": [1, 0, 1, 5], "micro_ring": [1, 9], **SIPAC_ENDS},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_parts_are_those_of_the_drawing(name: str) -> None:
    """Of every kind, circuit by circuit."""
    spec, circuits, expected = CASES[name]
    where = fabric(spec)
    found: dict[str, list[tuple[int, int]]] = {}
    for use in where.parts_used(circuits):
        found.setdefault(use.kind, []).extend(zip(use.owners().tolist(), use.part.tolist(), strict=True))
    assert {kind: sorted(part for _, part in rows) for kind, rows in found.items()} == {
        kind: sorted(parts) for kind, parts in expected.items()
    }
    for kind, parts in expected.items():
        if len(parts) > len(circuits):
            continue
        in_order: list[Any] = [part for _, part in sorted(found[kind])]
        assert in_order == parts, kind


def test_rings_that_retuned_channels_leave_out_have_no_number() -> None:
    """None from an input to the output of its own node: 6 x (1 + 2) rings, where published channels have 6 x (2 + 3)."""
    for channels, rings in (("retuned", 18), ("published", 30)):
        spec = f"sipac:radices=2x3,channels={channels}"
        assert {kind.kind: kind.count for kind in fabric(spec).inventory()}["micro_ring"] == rings
        with pytest.raises(FabricError, match=f"micro_ring are 0 to {rings - 1}"):
            fabric(f"{spec},failed=micro_ring:{rings}")
    assert "micro_ring" not in {kind.kind for kind in fabric("sipac:radix=1,levels=1,channels=retuned").inventory()}
