"""What came out of a compilation and of a judgement, as plain records and as a table."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from opticcl.ir import Verdict
    from opticcl.plan import Plan

__all__ = ["instructions_table", "summary", "summary_table", "verdict_record"]


def summary(plan: Plan) -> dict[str, Any]:
    """Counts of a plan and of each run of equal steps."""
    from opticcl.registry import write_call

    parameters = {k: v for k, v in plan.fabric.parameters.items() if v is not None}
    steps = [_run_of_steps(plan, run) for run in plan.schedule.step_classes()]
    return {
        "fabric": write_call(plan.fabric.name, parameters),
        "collective": plan.schedule.collective.name,
        "algorithm": plan.algorithm,
        "num_nodes": plan.fabric.num_nodes,
        "size_bytes": plan.size_bytes,
        "num_chunks": plan.schedule.collective.num_chunks,
        "num_steps": plan.schedule.num_steps,
        "num_rounds": sum(s["rounds"] * s["count"] for s in steps),
        "num_transfers": sum(s["transfers"] * s["count"] for s in steps),
        "num_circuits": sum(s["circuits"] * s["count"] for s in steps),
        "steps": steps,
    }


def _run_of_steps(plan: Plan, run: range) -> dict[str, Any]:
    transfers, rounds = plan.schedule.step(run.start), plan.circuits.rounds(run.start)
    top = [int((c.wavelength_lo + (c.wavelength_n - 1) * c.wavelength_step).max(initial=-1)) + 1 for c in rounds]
    return {
        "first": run.start,
        "count": len(run),
        "rounds": len(rounds),
        "transfers": len(transfers),
        "circuits": sum(map(len, rounds)),
        "wavelengths": max(top, default=0),
        "longest_path": max((int(c.num_hops().max(initial=0)) for c in rounds), default=0),
    }


def summary_table(plan: Plan) -> Table:
    """Each run of equal steps of a plan: rounds, transfers, circuits, wavelengths, longest path."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("steps", "rounds a step", "transfers a step", "circuits a step", "wavelengths", "longest path"):
        table.add_column(name, justify="right")
    for step in summary(plan)["steps"]:
        first, count = step["first"], step["count"]
        label = str(first) if count == 1 else f"{first}..{first + count - 1}"
        counts = [f"{step[k]:,}" for k in ("rounds", "transfers", "circuits", "wavelengths", "longest_path")]
        table.add_row(label, *counts)
    return table


def instructions_table(rows: list[dict[str, Any]]) -> Table:
    """One node's instructions: a line a send or receive."""
    from rich import box
    from rich.table import Table

    from opticcl.units import format_bytes

    slotted = any("slots" in row for row in rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    names = ["step", "round", "action", "peer", "bytes", "op", "chunks", "port", "wavelengths", "path"]
    for name in names + ["first slot", "slots"] * slotted:
        table.add_column(name, justify="left" if name in ("action", "op") else "right", overflow="fold")
    for row in rows:
        low, high = row["chunks"]
        light = [str(row["port"]), _numbers(row["wavelengths"]), _numbers(row["path"])]
        cells = [
            str(row["step"]),
            str(row["round"]),
            row["action"],
            str(row["peer"]),
            format_bytes(row["bytes"]),
            row["op"],
        ]
        slots = [str(row["first_slot"]), f"{row['slots']:,}"] if slotted else []
        table.add_row(*cells, f"{low}" if low == high else f"{low}..{high}", *light, *slots)
    return table


def _numbers(values: list[int]) -> str:
    return " ".join(map(str, values[:8])) + (" ..." if len(values) > 8 else "")


def verdict_record(verdict: Verdict) -> dict[str, Any]:
    """A verdict as the plain record that `opticcl verify --json` prints."""
    return {
        "ok": verdict.ok,
        "violations": [dataclasses.asdict(v) for v in verdict.violations],
        "checked": {
            "transfers": verdict.transfers,
            "circuits": verdict.circuits,
            "chunks": verdict.chunks,
            "exhaustive": verdict.exhaustive,
        },
        "notes": list(verdict.notes),
    }
