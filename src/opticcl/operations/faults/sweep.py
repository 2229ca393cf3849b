"""Every part of a machine, one of each class of equal parts; pairs of parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from opticcl.fabrics.lightpath import Lightpath
from opticcl.ir import Condition, Fabric, IntArray, ProgressCallback
from opticcl.operations.faults.answers import MOST_PAIRS, FaultReport, Healthy, answer
from opticcl.operations.faults.least_cuts import MOST_RANKS
from opticcl.operations.faults.relabellings import pairs_to_check, part_classes
from opticcl.verify.sweep import cells_of

__all__ = ["PartClass", "classes_to_try", "limits_of", "pairs_of_parts", "sweep"]

ROOTED = ("broadcast", "reduce", "scatter", "gather")


class PartClass(NamedTuple):
    """Equal parts: the one that is tried, and their number."""

    condition: Condition
    equal_parts: int


def classes_to_try(healthy: Healthy) -> list[PartClass]:
    """One part of each class; parts of a class that the plan uses are apart from those that it does not."""
    fabric = healthy.fabric
    classes = part_classes(fabric, healthy.wanted.root if healthy.wanted.name in ROOTED else None)
    used = _parts_of_plan(healthy)
    tried = []
    for kind in fabric.inventory():
        of_kind = classes[kind.kind] * (int(used[kind.kind].max()) + 1) + used[kind.kind]
        for value in np.unique(of_kind):
            members = np.flatnonzero(of_kind == value)
            tried.append(PartClass(Condition(kind.kind, int(members[0])), len(members)))
    return tried


def _parts_of_plan(healthy: Healthy) -> dict[str, IntArray]:
    """Whether the plan uses each part of each kind; of a waveguide, how full its edge is."""
    fabric, plan = healthy.fabric, healthy.plan.circuits
    used = {kind.kind: np.zeros(kind.count, np.int64) for kind in fabric.inventory()}
    for steps in plan.schedule.step_classes():
        for circuits in plan.rounds(steps.start):
            for use in fabric.parts_used(circuits):
                used[use.kind][use.part] = 1
            if isinstance(fabric, Lightpath):
                *_, edges = fabric.usage(circuits)
                cells = cells_of(edges, circuits, fabric.num_wavelengths)
                load = cells.loads().reshape(-1, cells.depth).max(axis=1)
                if fabric.switch_unit == "wavelength":
                    load = np.repeat(load, fabric.waveguides)
                each = fabric.inner_edges[:, None] * fabric.waveguides + np.arange(fabric.waveguides)
                used["waveguide"] = np.maximum(used["waveguide"], load[each.ravel()])
    return used


def sweep(healthy: Healthy, progress: ProgressCallback, *, search: bool = False) -> Iterator[FaultReport]:
    """The answer to every part.

    Args:
        healthy: the collective where they work.
        progress: called before each answer.
        search: whether all algorithms are searched on what is left of each; else as `answer` does without.
    """
    classes = classes_to_try(healthy)
    for number, each in enumerate(classes):
        progress("answer failures", number, len(classes))
        yield answer(healthy, [each.condition], each.equal_parts, search=search)


def limits_of(fabric: Fabric) -> list[str]:
    """What a sweep of a large fabric does not try, so that time and memory are bounded; empty where it tries all."""
    n = fabric.num_nodes
    limits = []
    pairs = fabric.num_machine_nodes * (fabric.num_machine_nodes - 1)
    checked = pairs if fabric.is_packet_switched else len(pairs_to_check(fabric)[0])
    if checked < pairs:
        limits.append(f"equal parts: relabellings were checked on the ways of {checked:,} of {pairs:,} pairs of nodes")
    if n > MOST_RANKS and not fabric.is_packet_switched:
        limits.append(f"over {MOST_RANKS} nodes: bounds are those of single nodes, not of other sets of ranks")
    if n * (n - 1) > MOST_PAIRS:
        limits.append(f"over {MOST_RANKS} nodes: no restart without the nodes that use a failed part")
    return limits


def pairs_of_parts(fabric: Fabric, count: int, seed: int) -> list[tuple[Condition, Condition]]:
    """Different pairs of parts that are no nodes, at random: kinds are as likely as each other.

    Args:
        fabric: where they fail.
        count: pairs, or all there are if they are fewer.
        seed: of the choice.
    """
    random = np.random.default_rng(seed)
    kinds = [kind for kind in fabric.inventory() if kind.kind != "node"]
    parts = sum(kind.count for kind in kinds)
    most = parts * (parts - 1) // 2
    pairs: set[tuple[Condition, Condition]] = set()
    for _ in range(64 * count):
        if len(pairs) >= min(count, most):
            break
        both = []
        for kind in random.choice(len(kinds), 2):
            both.append(Condition(kinds[kind].kind, int(random.integers(kinds[kind].count))))
        if both[0] != both[1]:
            pairs.add((min(both), max(both)))
    return sorted(pairs)
