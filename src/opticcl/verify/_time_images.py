"""Laws of time of steps that are not listed: circuits of some senders have times, and their images have the same ones.

What a rank has depends on ranks whose rows are not listed, so the laws of data and of sums are replaced by stricter ones, which
programmes with a barrier after each step obey:

    3  a step sends once all data of the steps before it has arrived and been summed, anywhere
    4  data of a step takes its place once the last bit of the step has left, anywhere
    5  sums of a step end after its last arrival and all of the work of a rank, which is that of rank 0
    6  images of circuits that meet one unit of a resource do not overlap: all uses in an orbit are compared as those of one
       unit, and no product of moves but one maps a use to the same unit
    2  devices change within the guards of slots, and are parts of units that serve one circuit at a time
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import UnsupportedError
from opticcl.ir import CircuitPlan, Fabric, Op, Violation, concatenate_circuits
from opticcl.ir.floor_plan import FloorPlan
from opticcl.ir.representatives import StepImages, SymmetricRounds
from opticcl.verify._time_rows import StoredStep
from opticcl.verify.images import Loads, images_of_machine
from opticcl.verify.sweep import numbered, runs_of, slack

__all__ = ["Missed", "data_missed", "overlaps_of_images", "refuse_other_machines", "sums_missed"]

FloatArray = npt.NDArray[Any]  # float64


class Missed(NamedTuple):
    """A law that is missed: its name, round or -1, what misses it, by how much at most [s], and how many times."""

    law: str
    round: int
    where: str
    missing_s: float
    times: int


def refuse_other_machines(fabric: Fabric, repeats: int, floor: FloorPlan | None, *, tables: bool) -> None:
    """Refuse what these laws do not cover.

    Args:
        fabric: of the plan.
        repeats: most repetitions of a step of the programme [count].
        floor: plan of which latencies are sums of parts; None: they are what the fabric's paper prints.
        tables: whether the programme has changes of devices or control exchanges.
    Raises: UnsupportedError: devices that take time, tables of them, or repeated steps.
    """
    for wrong, what in (
        (not fabric.slot_s or fabric.reconfiguration_s, "devices that change outside the guards of slots"),
        (any(device.setting_time_s for device in fabric.devices), "devices that take time to change"),
        (fabric.hop_latency_s(np.zeros(0, np.int64)) is not None, "paths of different latencies"),
        (floor is not None and fabric.hop_passages(floor) is not None, "paths of different latencies"),
        (fabric.units_of_devices() is None, "devices that are part of no resource"),
        (fabric.shortest_control_s, "control exchanges"),
        (tables, "tables of devices or control"),
        (repeats > 1, "repeated steps"),
    ):
        if wrong:
            raise UnsupportedError(f"programme: steps that are not listed, with {what}: not judged; take fewer nodes")


def data_missed(stored: StoredStep, ready_s: float) -> Iterator[Missed]:
    """Laws 3 and 4.

    Args:
        stored: listed rows of a step with their times.
        ready_s: when all data of the steps before has been summed [s].
    """
    last_s = max((float(one.left_s[one.carries].max(initial=0.0)) for one in stored.rounds), default=0.0)
    for one in stored.rounds:
        early = np.flatnonzero(ready_s - one.start_s > slack(ready_s))
        if len(early):
            row = early[0]
            where = f"circuit {one.circuits.src[row]} -> {one.circuits.dst[row]}"
            yield Missed("sent_before_there", one.number, where, float((ready_s - one.start_s).max()), len(early))
    for law, missing in (
        ("overwritten_before_sent", last_s - stored.arrived_s),
        ("summed_too_fast", stored.arrived_s - stored.summed_s),
    ):
        bad = np.flatnonzero(missing > slack(last_s))
        if len(bad):
            yield Missed(law, -1, f"transfer {bad[0]}", float(missing.max()), len(bad))


def sums_missed(
    stored: StoredStep, step: StepImages | None, chunk_bytes: float, compute: str, bytes_per_s: float
) -> Iterator[Missed]:
    """Law 5.

    Args:
        stored: listed rows of a step with their times.
        step: that is not listed; None where all are.
        chunk_bytes: size of a chunk [bytes].
        compute: fused, chain or none.
        bytes_per_s: memory bandwidth of a rank [byte/s].
    """
    received = stored.transfers if step is None else step.received_by_first()
    adds = np.flatnonzero(received.op & Op.REDUCE)
    summed = np.flatnonzero(stored.transfers.op & Op.REDUCE)
    if compute == "none" or not len(adds):
        return
    each, _ = received.take(adds).ranges()
    arrived = np.bincount(each.dst, each.chunk_n)
    row, nth = numbered(each.chunk_n.astype(np.int64))
    chunk = each.chunk_lo[row] + nth
    chunks = np.unique(each.dst[row] * (int(chunk.max()) + 1) + chunk) // (int(chunk.max()) + 1)
    work = 3 * arrived if compute == "chain" else arrived + 2 * np.bincount(chunks, minlength=len(arrived))
    due_s = float(stored.arrived_s.max()) + float(work.max()) * chunk_bytes / bytes_per_s
    missing = due_s - stored.summed_s[summed]
    bad = np.flatnonzero(missing > slack(due_s))
    if len(bad):
        yield Missed("summed_too_fast", -1, f"sums of transfer {summed[bad[0]]}", float(missing.max()), len(bad))


def overlaps_of_images(plan: CircuitPlan, stored: StoredStep) -> Iterator[Missed]:
    """Laws 2 and 6, for the circuits of a step; those of other steps have left before (law 3).

    Args:
        plan: with the step.
        stored: listed rows of a step with their times.
    """
    fabric, rounds = plan.fabric, plan.symmetric(stored.step)
    if rounds is None:
        everyone = np.arange(fabric.num_nodes)
        rounds = SymmetricRounds(everyone, tuple(one.circuits for one in stored.rounds), ())
    images = images_of_machine(fabric, plan.schedule.steps, stored.step, rounds)
    if isinstance(images, Violation):
        raise UnsupportedError(
            f"programme: {images.where}: {images.expected}, found {images.found}; verify the plan first"
        )
    circuits = concatenate_circuits(one.circuits for one in stored.rounds)
    number = np.repeat([one.number for one in stored.rounds], [len(one.circuits) for one in stored.rounds])
    start = np.concatenate([one.start_s for one in stored.rounds])
    left = np.concatenate([one.left_s for one in stored.rounds])
    units = {}
    for at, usage in enumerate(fabric.usage(circuits)):
        row = np.arange(len(circuits)) if usage.circuit is None else usage.circuit
        units[at] = np.full(len(circuits), -1)
        units[at][row] = usage.index
        load = Loads(
            fabric.resources[at],
            [of[at] for of in images],
            rounds.moves,
            fabric,
            fabric.num_nodes // len(rounds.senders),
        )
        orbit = load.orbits(usage.index, circuits.wavelength_lo[row])
        order, new = runs_of((orbit,), (start[row],))
        missing = np.where(~new[1:], left[row][order[:-1]] - start[row][order[1:]], 0.0)
        bad = np.flatnonzero(missing > slack(left[row][order[:-1]]))
        own = np.flatnonzero(load.sizes(orbit) < load.products)
        if len(bad) or len(own):
            worst = order[1:][bad[int(np.argmax(missing[bad]))]] if len(bad) else own[0]
            most = float(missing[bad].max()) if len(bad) else float((left - start)[row[worst]])
            ends = f"{circuits.src[row[worst]]} -> {circuits.dst[row[worst]]}"
            name = f"{usage.resource.kind} {usage.index[worst]}, circuit {ends}"
            yield Missed("overlap", int(number[row[worst]]), name, most, len(bad) + len(own))
    owners = fabric.units_of_devices() or ()
    for use, (at, many) in zip(fabric.settings(circuits), owners, strict=True):
        row = np.arange(len(circuits)) if use.circuit is None else use.circuit
        apart = np.flatnonzero(use.index // many != units[at][row])
        if len(apart):
            yield Missed(
                "set_in_flight", int(number[row[apart[0]]]), f"{use.kind} {use.index[apart[0]]}", 0.0, len(apart)
            )
