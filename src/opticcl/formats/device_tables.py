"""The instructions of one node, step by step, as its network interface would load them."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir import CircuitPlan, Op
from opticcl.ir.programme import Programme

__all__ = ["instructions_of_node"]


def instructions_of_node(
    plan: CircuitPlan, size_bytes: int, node: int, max_rows: int = 100_000, programme: Programme | None = None
) -> list[dict[str, Any]]:
    """Every send and receive of a node, in order.

    Args:
        plan: any plan.
        size_bytes: message of every rank [bytes].
        node: of the machine.
        max_rows: largest number of rows; the rest is left out [count].
        programme: times of the plan; without it slots are counted from the start of the round.
    Returns: rows of step, round, action (send, receive), peer, bytes on this circuit, op, chunks, port, wavelengths, path,
        where the fabric numbers them waveguide, with a programme from_s and end_s (last bit arrives), and, where the fabric
        has time slots, first_slot and slots.
    Raises: ParameterError: the machine has no such node.
    """
    fabric, chunk_bytes = plan.fabric, size_bytes / plan.schedule.collective.num_chunks
    if not 0 <= node < fabric.num_machine_nodes:
        raise ParameterError(f"--node: {node} is not a node of {fabric.name}; try 0 to {fabric.num_machine_nodes - 1}")
    found: list[dict[str, Any]] = []
    for step in range(plan.schedule.num_steps):
        transfers = plan.schedule.step(step)
        for number, circuits in enumerate(plan.rounds(step)):
            carries = circuits.transfer >= 0
            circuits = circuits.take(carries)
            wavelengths = np.bincount(circuits.transfer, circuits.wavelength_n, minlength=len(transfers))
            for row in np.flatnonzero((circuits.src == node) | (circuits.dst == node)):
                t = int(circuits.transfer[row])
                share = float(circuits.wavelength_n[row] / wavelengths[t])
                carried = float(transfers.size_chunks()[t]) * chunk_bytes * share
                sends = circuits.src[row] == node
                lo, n, stride = (
                    int(circuits.wavelength_lo[row]),
                    int(circuits.wavelength_n[row]),
                    circuits.wavelength_step,
                )
                chunk = int(transfers.chunk_lo[t])
                apart = 1 if transfers.chunk_step is None else int(transfers.chunk_step[t])
                entry: dict[str, Any] = {
                    "step": step,
                    "round": number,
                    "action": "send" if sends else "receive",
                    "peer": int(circuits.dst[row] if sends else circuits.src[row]),
                    "bytes": carried,
                    "op": Op(transfers.op[t]).name.lower(),
                    "chunks": [chunk, chunk + (int(transfers.chunk_n[t]) - 1) * apart],
                    "port": int(circuits.port[row]),
                    "wavelengths": list(range(lo, lo + n * stride, stride)),
                    "path": circuits.path(int(row)).tolist(),
                }
                if apart != 1:
                    entry["chunk_step"] = apart
                if circuits.waveguide is not None:
                    entry["waveguide"] = int(circuits.waveguide[row])
                if fabric.slot_s:
                    payload = fabric.slot_payload_bytes * n
                    entry |= {"first_slot": 0, "slots": ceil(carried / payload - 1e-9)}
                if programme is not None:
                    rows, later_s = programme.rows_of_round(step, number)
                    times = programme.circuits.take(rows).take(carries)
                    entry |= {"from_s": float(times.start_s[row] + later_s), "end_s": float(times.end_s[row] + later_s)}
                    if fabric.slot_s:
                        entry["first_slot"] = round(entry["from_s"] / fabric.slot_s)
                found.append(entry)
                if len(found) >= max_rows:
                    return found
    return found
