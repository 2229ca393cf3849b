"""The light of a plan as plain values: the machine and its rounds, or one round with its circuits and settings.

Steps of one run have equal circuits, so a round is addressed by its run and its number within a step. A round with more than
`MOST_DRAWN` circuits is thinned evenly, and both counts are given; circuits that clash are always among those drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir import Circuits, Fabric, IntArray, Verdict
from opticcl.ir.fabric import Resource, Usage
from opticcl.plans.plan import Plan

__all__ = ["MOST_DRAWN", "clashes", "light_record"]

MOST_DRAWN = 8192
"""Circuits of a round that are sent [count]."""

MOST_RUNS = 20_000
"""Runs of steps that are listed [count]."""

MOST_PLACES = 4096
"""Fibres and switches of a round that are drawn [count]."""

MOST_EXPANDED = 4_000_000
"""Pairs of a resource and a wavelength that are counted in search of clashes [count]."""

AT_NODES = ("laser", "photodiode", "tx_port", "rx_port", "link")
"""Kinds of resources that are drawn with their node; the others have a place between the nodes."""


def light_record(plan: Plan, verdict: Verdict, place: Mapping[str, int]) -> dict[str, Any]:
    """The whole plan, or a round of it if `round` is given.

    Args:
        plan: whose light it is; it may be wrong.
        verdict: on it.
        place: `run` (the first unless given) and `round`.
    Raises: ParameterError: no such round.
    """
    if "round" not in place:
        return _overview(plan, verdict)
    return _round(plan, verdict, place.get("run", 0), place["round"])


def _overview(plan: Plan, verdict: Verdict) -> dict[str, Any]:
    fabric = plan.fabric
    machine = fabric.machine
    runs = plan.schedule.step_classes()
    return {
        "plan": str(plan),
        "fabric": fabric.name,
        "about": machine.about,
        "packets": fabric.is_packet_switched,
        "algorithm": plan.algorithm,
        "collective": plan.schedule.collective.name,
        "size_bytes": plan.size_bytes,
        "num_nodes": fabric.num_machine_nodes,
        "nodes": [machine.coordinates(node) for node in range(fabric.num_machine_nodes)],
        "layout": _layout(machine),
        "num_wavelengths": fabric.num_wavelengths,
        "devices": [
            {"kind": one.kind, "count": one.count, "pool": one.pool, "setting_time_s": one.setting_time_s}
            for one in fabric.devices
        ],
        "resources": [{"kind": one.kind, "count": one.count, "capacity": one.capacity} for one in fabric.resources],
        "num_steps": plan.schedule.num_steps,
        "runs": [
            {"first": run.start, "last": run.stop - 1, "rounds": max(1, len(plan.circuits.rounds(run.start)))}
            for run in runs[:MOST_RUNS]
        ],
        "runs_left_out": max(0, len(runs) - MOST_RUNS),
        "verdict": verdict.record(),
    }


def _layout(machine: Fabric) -> dict[str, Any]:
    """Kind of drawing, and of a grid its sides and the node on each place."""
    if machine.drawing == "grid":
        cells = machine.cell_grid()
        if cells is not None:
            rows, columns = cells.sides[0], cells.sides[1]
            return {
                "kind": "grid",
                "rows": rows,
                "columns": columns,
                "node_at": cells.cells.reshape(rows * columns, -1)[:, 0].tolist(),
            }
    return {"kind": "ring" if machine.drawing == "ring" else "circle"}


def _round(plan: Plan, verdict: Verdict, run: int, number: int) -> dict[str, Any]:
    runs = plan.schedule.step_classes()
    if run >= len(runs):
        raise ParameterError(f"run: {run} is none of the {len(runs):,} runs of this plan")
    rounds = plan.circuits.rounds(runs[run].start)
    if number >= max(1, len(rounds)):
        raise ParameterError(f"round: {number} is none of the {len(rounds):,} rounds of step {runs[run].start}")
    circuits = rounds[number] if len(rounds) else Circuits.of([], np.zeros(0, np.int32), [])
    total = len(circuits)
    n = plan.fabric.num_machine_nodes
    inside = (np.minimum(circuits.src, circuits.dst) >= 0) & (np.maximum(circuits.src, circuits.dst) < n)
    circuits = circuits.take(inside)
    wrong = [v for v in verdict.violations if v.step in runs[run] and v.round in (number, -1)]
    clashing = clashes(plan.fabric, circuits) if any(v.round >= 0 for v in wrong) else []
    rows = _thinned(len(circuits), np.unique([row for one in clashing for row in one["circuits"]]).astype(np.int64))
    drawn = circuits.take(rows)
    place = {int(row): i for i, row in enumerate(rows)}
    for one in clashing:
        one["circuits"] = [place[row] for row in one["circuits"] if row in place]
    used, settings = _occupied(plan.fabric, drawn)
    return {
        "run": run,
        "round": number,
        "total": total,
        "src": drawn.src.tolist(),
        "dst": drawn.dst.tolist(),
        "port": drawn.port.tolist(),
        "wavelength": drawn.wavelength_lo.tolist(),
        "num_wavelengths": drawn.wavelength_n.tolist(),
        "idle": np.flatnonzero(drawn.transfer < 0).tolist(),
        "hops": drawn.hops.tolist(),
        "hop_offsets": drawn.hop_offsets.tolist(),
        "used": used,
        "settings": settings,
        "clashes": clashing,
        "violations": [
            {"rule": v.rule, "where": v.where, "expected": v.expected, "found": v.found} for v in wrong[:50]
        ],
    }


def _thinned(count: int, needed: IntArray) -> IntArray:
    """At most `MOST_DRAWN` rows, evenly, with those that are needed."""
    if count <= MOST_DRAWN:
        return np.arange(count)
    needed = needed[: MOST_DRAWN // 2]
    even = np.linspace(0, count - 1, MOST_DRAWN - len(needed)).astype(np.int64)
    return np.union1d(even, needed)


def _occupied(fabric: Fabric, circuits: Circuits) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Fibres and switches that circuits pass, and settings of devices; both empty if the machine has no such part."""
    try:
        used = [] if fabric.is_packet_switched else list(_between(fabric, circuits))
        settings = [
            {
                "kind": use.kind,
                "index": use.index.tolist(),
                "setting": use.setting.tolist(),
                "circuit": (np.arange(len(use.index)) if use.circuit is None else use.circuit).tolist(),
            }
            for use in fabric.settings(circuits)
        ]
    except IndexError:  # a wrong plan may name parts that the machine does not have; the verdict reports it
        return [], []
    return used, settings


def _between(fabric: Fabric, circuits: Circuits) -> Iterator[dict[str, Any]]:
    """Uses of fibres, waveguides, subnets and switches."""
    for use in fabric.usage(circuits):
        if use.resource.kind in AT_NODES:
            continue
        distinct = np.unique(use.index)
        names = {int(index): fabric.place_name(use.resource, int(index)) for index in distinct[:MOST_PLACES]}
        yield {
            "kind": use.resource.kind,
            "count": use.resource.count,
            "index": use.index.tolist(),
            "circuit": (np.arange(len(use.index)) if use.circuit is None else use.circuit).tolist(),
            "names": names,
        }


def clashes(fabric: Fabric, circuits: Circuits) -> list[dict[str, Any]]:
    """Resources with more circuits than their capacity: kind, name, wavelength (-1: all) and circuits.

    It only finds what to draw in red; the verdict is that of the judge.

    Args:
        fabric: the machine.
        circuits: of one round.
    """
    clashing: list[dict[str, Any]] = []
    try:
        for use in fabric.usage(circuits):
            if not use.resource.shared:
                clashing += _over_capacity(fabric, use.resource, use, circuits)
    except IndexError:  # parts that the machine does not have
        return clashing
    return clashing[:200]


def _over_capacity(fabric: Fabric, resource: Resource, use: Usage, circuits: Circuits) -> Iterator[dict[str, Any]]:
    row = np.arange(len(use.index)) if use.circuit is None else use.circuit
    index = np.asarray(use.index, np.int64)
    amount = np.ones(len(index), np.int64) if use.amount is None else use.amount
    wavelength = np.full(len(index), -1)
    if resource.per_wavelength and 0 < circuits.wavelength_n[row].sum() <= MOST_EXPANDED:
        entry, wavelength = circuits.each_wavelength(row)
        index, row, amount = index[entry], row[entry], amount[entry]
    _, group = np.unique(np.stack([index, wavelength]), axis=1, return_inverse=True)
    group = group.ravel()
    over = np.flatnonzero(np.bincount(group, weights=amount) > resource.capacity)
    for one in over[:100]:
        members = np.flatnonzero(group == one)
        if (
            resource.splits
            and len(np.unique(np.stack([circuits.src[row[members]], circuits.port[row[members]]]), axis=1).T) < 2
        ):
            continue  # one signal that passive optics hand to many
        yield {
            "kind": resource.kind,
            "name": fabric.place_name(resource, int(index[members[0]])),
            "index": int(index[members[0]]),
            "wavelength": int(wavelength[members[0]]),
            "circuits": np.unique(row[members])[:100].tolist(),
        }
