"""Rules that hold of circuits alone: a transfer has its circuits, each circuit exists, and the hardware can make it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opticcl.ir import Circuits, Fabric, Fault, Transfers, Violation
from opticcl.ir.paths import paths_of_rows
from opticcl.ir.phases import TransferEnds

__all__ = [
    "RULE_OF_KIND",
    "astray",
    "circuit_name",
    "not_carried",
    "out_of_range",
    "part_faults",
    "setting_of",
    "transfers_without_circuit",
    "violation_of",
]

RULE_OF_KIND = {
    "laser": "laser_shared",
    "tx_port": "transmitter_shared",
    "photodiode": "photodiode_shared",
    "rx_port": "receiver_shared",
    "subnet": "wavelength_clash",
    "fibre": "wavelength_clash",
    "waveguide": "waveguide_overfull",
    "switch_port": "switch_reset",
}
"""Rule that circuits break which share a resource, by its kind."""

UNPLACED = -1, -1
"""Step and round of a violation that is named where these are not known."""


def transfers_without_circuit(
    fabric: Fabric, transfers: Transfers | TransferEnds, rounds: tuple[Circuits, ...], step: int
) -> Iterator[Violation]:
    """Transfers without circuits, with circuits in two rounds, or with circuits that join other nodes.

    Args:
        fabric: with the nodes of the ranks.
        transfers: of the step.
        rounds: circuits of each round.
        step: its number.
    """
    carried = np.zeros(len(transfers), bool)
    for number, circuits in enumerate(rounds):
        astray_ones = list(astray(fabric, transfers, circuits, step, number))
        yield from astray_ones
        if any(violation.rule == "transfer_unknown" for violation in astray_ones):
            return
        rows = circuits.transfer
        rows = rows[rows >= 0]
        again = np.flatnonzero(carried[rows])
        if len(again):
            row = rows[again[0]]
            yield Violation("transfer_carried_twice", step, number, f"transfer {row}", "one round", "two", len(again))
        carried[rows] = True
    yield from not_carried(transfers, ~carried, step)


def astray(
    fabric: Fabric, transfers: Transfers | TransferEnds, circuits: Circuits, step: int, number: int
) -> Iterator[Violation]:
    """Circuits of transfers that do not exist, or between other nodes or on other paths than those of their transfers.

    Args:
        fabric: with the nodes of the ranks.
        transfers: of the step.
        circuits: of the round.
        step, number: of the step and of the round.
    """
    rows = circuits.transfer
    least = 0 if fabric.is_packet_switched else -1  # a circuit may stand idle, a route that carries nothing is none
    unknown = np.flatnonzero((rows < least) | (rows >= len(transfers)))
    if len(unknown):
        where, found = f"circuit {unknown[0]}", f"transfer {rows[unknown[0]]}"
        yield Violation("transfer_unknown", step, number, where, f"below {len(transfers)}", found, len(unknown))
        return
    carries = np.flatnonzero(rows >= 0)
    begin, end, rows = circuits.src[carries], circuits.dst[carries], rows[carries]
    src, dst = (fabric.machine_nodes(ranks[rows]) for ranks in (transfers.src, transfers.dst))
    other = np.flatnonzero((begin != src) | (end != dst))
    if len(other):
        row, due = int(carries[other[0]]), f"{src[other[0]]} -> {dst[other[0]]}"
        yield Violation("circuit_astray", step, number, f"circuit {row}", due, circuit_name(circuits, row), len(other))
    elif isinstance(transfers, Transfers) and transfers.path is not None:
        yield from _off_path(circuits, *transfers.path, step, number)


def _off_path(circuits: Circuits, hops: np.ndarray, offsets: np.ndarray, step: int, number: int) -> Iterator[Violation]:
    """Circuits on other paths than their transfers state.

    Args:
        circuits: of the round, of transfers that exist.
        hops, offsets: path of each transfer; an empty one states none.
        step, number: of the step and of the round.
    """
    carried = np.flatnonzero(circuits.transfer >= 0)
    carried = carried[np.diff(offsets)[circuits.transfer[carried]] > 0]
    paths = circuits.take(carried)
    due, ends = paths_of_rows(hops, offsets, paths.transfer)
    off = np.diff(ends) != paths.num_hops()
    equal = np.flatnonzero(~off)
    mine, (its, _) = paths.take(equal), paths_of_rows(due, ends, equal)
    off[equal[mine.hop_owner()[mine.hops != its]]] = True
    rows = np.flatnonzero(off)
    if len(rows):
        row = int(rows[0])
        links = " ".join(map(str, due[ends[row] : ends[row + 1]][:8]))
        where = circuit_name(paths, row)
        yield Violation("circuit_astray", step, number, where, f"links {links}", setting_of(paths, row), len(rows))


def not_carried(transfers: Transfers | TransferEnds, dark: np.ndarray, step: int) -> Iterator[Violation]:
    """Transfers of a step without a circuit.

    Args:
        transfers: of the step.
        dark: which have none, bool (transfers,).
        step: its number.
    """
    rows = np.flatnonzero(dark)
    if len(rows):
        where = f"transfer {transfers.src[rows[0]]} -> {transfers.dst[rows[0]]}"
        yield Violation("transfer_not_carried", step, -1, where, "a circuit", "none", len(rows))


def part_faults(fabric: Fabric, circuits: Circuits) -> Iterator[Fault]:
    """Circuits that need a failed part; none where nothing has failed."""
    if fabric.conditions:
        yield from fabric.part_faults(circuits)


def out_of_range(fabric: Fabric, circuits: Circuits) -> Violation | None:
    """The first circuit whose node, port, wavelength or path does not exist."""
    offsets = circuits.hop_offsets
    if (
        len(offsets) != len(circuits) + 1
        or offsets[0]
        or offsets[-1] != len(circuits.hops)
        or (np.diff(offsets) < 0).any()
    ):
        return violation_of("path_broken", "the paths of all circuits", "ends that cut the hops in order", "others", 1)
    if circuits.wavelength_step < 1:
        return violation_of(
            "wavelength_unknown", "all circuits", "a wavelength step of 1 or more", f"{circuits.wavelength_step}", 1
        )
    top = circuits.wavelength_lo.astype(np.int64) + (circuits.wavelength_n - 1) * circuits.wavelength_step
    n, ports, wavelengths = fabric.num_machine_nodes, fabric.ports_per_node, fabric.num_wavelengths
    for rule, bad, expected in (
        (
            "node_unknown",
            (np.minimum(circuits.src, circuits.dst) < 0) | (np.maximum(circuits.src, circuits.dst) >= n),
            n,
        ),
        ("port_unknown", (circuits.port < 0) | (circuits.port >= ports), ports),
        (
            "wavelength_unknown",
            (circuits.wavelength_lo < 0) | (circuits.wavelength_n < 1) | (top >= wavelengths),
            wavelengths,
        ),
    ):
        rows = np.flatnonzero(bad)
        if len(rows):
            found = f"{circuit_name(circuits, int(rows[0]))}, {setting_of(circuits, int(rows[0]))}"
            return violation_of(rule, f"circuit {rows[0]}", f"0..{expected - 1}", found, len(rows))
    return None


def violation_of(rule: str, where: str, expected: str, found: str, count: int) -> Violation:
    """A violation whose step and round are not known here.

    Args:
        rule: name of the rule.
        where: what breaks it.
        expected: what the rule asks.
        found: what the plan has.
        count: how many break it.
    """
    return Violation(rule, *UNPLACED, where, expected, found, count)


def circuit_name(circuits: Circuits, row: int) -> str:
    """Ends of a circuit."""
    return f"{circuits.src[row]} -> {circuits.dst[row]}"


def setting_of(circuits: Circuits, row: int) -> str:
    """Port, wavelengths and path of a circuit."""
    path = circuits.path(row)
    hops = " ".join(map(str, path[:8])) + (" ..." if len(path) > 8 else "")
    lo, n = int(circuits.wavelength_lo[row]), int(circuits.wavelength_n[row])
    guide = "" if circuits.waveguide is None else f", waveguide {circuits.waveguide[row]}"
    return f"port {circuits.port[row]}, wavelength {lo} x{n}{guide}, path [{hops}]"
