"""Published planners' cases: schedules of circuits that Harvest states, and matrices of cases that SWOT solves.

    Harvest    JSON: for every step links [from, to, capacity]; `carried` finds the algorithm whose steps these links carry, and
               makes a plan of it with circuits over one link or several
    SWOT       TOML: switches, nodes, rate, times of a change, sizes and algorithms; `cases` are all combinations, `solved`
               divides the steps of each among the switches

Times follow from the assumptions and the machine given, not from the costs in the file.

Source: Harvest (arXiv 2602.09188), its schedules for ASTRA-sim; SWOT (arXiv 2510.19322), its `config/matrix` (bytes in units of
10^6, rates in GB/s, times in ms).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from opticcl.assumptions import DEFAULT_SET, Assumptions
from opticcl.circuits.ocs import MOST_HOPS
from opticcl.collective import Request
from opticcl.errors import ParameterError, PlanFileError, UnsupportedError, printable
from opticcl.fabrics import fabric
from opticcl.fabrics.ocs import SHARES, Ocs
from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray, Schedule, Transfers
from opticcl.ir.circuit_plan import StoredRounds
from opticcl.ir.limits import limit
from opticcl.plans.held_sets import factorisations
from opticcl.plans.overlap import Overlapped, SwitchLaw, overlap, settings_of
from opticcl.plans.plan import Plan
from opticcl.plans.planner import Planned, PlanTask, plan_collective
from opticcl.schedule import generate, reason_declined
from opticcl.simulate.closed_form.engine import profile
from opticcl.units import format_seconds, toml_number

__all__ = ["StepLinks", "SwitchCase", "as_ocs", "carried", "cases", "links_of", "plan_published", "solved"]

MOST_BYTES = limit("published.MOST_BYTES")
MOST_STEPS = limit("published.MOST_STEPS")
MOST_NODES = limit("published.MOST_NODES")
MOST_CASES = limit("published.MOST_CASES")
MOST_TRIED = 64  # factorisations of the number of nodes

ALGORITHMS = {
    "ar_having-doubling": ("all_reduce", "halving_doubling"),
    "a2a_pairwise": ("all_to_all", "digit_shifts:radices={p}"),
    "a2a_bruck": ("all_to_all", "digit_shifts"),
}
"""SWOT's name of an algorithm, as it is written there -> collective and algorithm."""


class StepLinks(NamedTuple):
    """Links that stand in a step.

    Args:
        follows: node that each node's links lead to, -1 for none, int64 (nodes,).
        capacity: links from each node to it [count].
    """

    follows: IntArray
    capacity: int


def as_ocs(machine: Fabric) -> Ocs:
    """The machine itself.

    Raises: UnsupportedError: it is of another fabric, or part of one.
    """
    if not isinstance(machine, Ocs):
        raise UnsupportedError(f"plan: {machine.name} has no links of published planners; --import is for a whole ocs")
    return machine


def links_of(path: Path | str, machine: Ocs) -> tuple[StepLinks, ...]:
    """The links of every step of one of Harvest's schedules.

    Args:
        path: of the JSON file.
        machine: on which they would stand.
    Raises: PlanFileError: no such JSON, nodes that the machine does not have, loads above its ports, or nodes with links to
        several others in a step.
    """
    content = _read(Path(path), "JSON", json.loads)
    steps = content.get("steps") if isinstance(content, dict) else None
    if not isinstance(steps, list) or not 0 < len(steps) <= MOST_STEPS:
        raise PlanFileError(f"{path}: `steps` is not a list of 1 to {MOST_STEPS:,} steps with their links")
    return tuple(_links(f"{path}: step {number}", step, machine) for number, step in enumerate(steps, start=1))


def _read(path: Path, kind: str, read: Callable[[str], Any]) -> Any:
    """Content of a file of a kind of text."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise PlanFileError(f"{path}: is larger than {MOST_BYTES >> 20} MiB")
        return read(path.read_text("utf-8"))
    except OSError as error:
        raise PlanFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise PlanFileError(f"{path}: no {kind}: {error}") from None


def _links(where: str, step: Any, machine: Ocs) -> StepLinks:
    """The links of a step.

    Args:
        where: file and step, for messages.
        step: object with `topology`.
        machine: on which they would stand.
    """
    listed = step.get("topology") if isinstance(step, dict) else None
    if not isinstance(listed, list) or len(listed) > machine.nodes * machine.planes:
        raise PlanFileError(f"{where}: `topology` is not a list of at most {machine.nodes * machine.planes:,} links")
    whole = all(isinstance(row, list) and len(row) == 3 and all(type(v) is int for v in row) for row in listed)
    if not whole:
        raise PlanFileError(f"{where}: a link is not [from, to, capacity] in whole numbers")
    rows = np.array(listed, object).reshape(-1, 3)
    if any(not 0 <= node < machine.nodes for node in rows[:, :2].ravel()) or any(c < 1 for c in rows[:, 2]):
        raise PlanFileError(f"{where}: nodes are 0 to {machine.nodes - 1} on this ocs, capacities 1 or more")
    src, dst, capacity = rows.T.astype(np.int64)
    for end, name in ((src, "from"), (dst, "to")):
        load = np.bincount(end, capacity, machine.nodes)
        if load.max(initial=0) > machine.planes:
            node = int(load.argmax())
            raise PlanFileError(
                f"{where}: {load.max():g} links lead {name} node {node}, its ports are planes={machine.planes}; "
                "give an ocs with more planes"
            )
    if len(np.unique(src)) < len(src) or len(np.unique(dst)) < len(dst) or len(np.unique(capacity)) > 1:
        raise PlanFileError(f"{where}: nodes with links to several others, or of unequal capacity, cannot be carried")
    follows = np.full(machine.nodes, -1, np.int64)
    follows[src] = dst
    return StepLinks(follows, int(capacity[0]) if len(capacity) else 1)


def carried(machine: Ocs, collective: str, links: Sequence[StepLinks]) -> tuple[CircuitPlan, ...]:
    """Plans of the algorithms whose steps these links carry.

    Args:
        machine: on which they stand.
        collective: name.
        links: of every step.
    Raises: UnsupportedError: there is none with as many steps, between nodes that the links join.
    """
    wanted, radices = Request(collective), factorisations(machine.nodes)[:MOST_TRIED]
    names = ["halving_doubling", "recursive_doubling", "ring"]
    names += [f"digit_shifts:radices={'x'.join(map(str, some))}" for some in radices if some]
    plans = []
    for name in names:
        if reason_declined(name, wanted, machine) is not None:
            continue
        schedule = generate(name, wanted, machine)
        if schedule.num_steps == len(links):
            rounds = tuple(_over(machine, schedule.step(i), links[i]) for i in range(len(links)))
            if all(circuits is not None for circuits in rounds):
                stored = StoredRounds(tuple((circuits,) for circuits in rounds if circuits is not None))
                plans.append(CircuitPlan(machine, _each_step(schedule), stored))
    if not plans:
        raise UnsupportedError(
            f"plan: no algorithm does {collective} in {len(links)} steps between nodes that these links join; "
            "try another collective"
        )
    return tuple(plans)


def _each_step(schedule: Schedule) -> Schedule:
    """The same schedule without runs of steps, since links may change within one."""
    return replace(schedule, classes=())


def _over(machine: Ocs, transfers: Transfers, links: StepLinks) -> Circuits | None:
    """Circuits of a step along the links; None if they do not join its pairs.

    Args:
        machine: with its planes.
        transfers: of the step.
        links: that stand.
    Raises: UnsupportedError: the circuits pass too many links.
    """
    n, k = machine.nodes, machine.planes
    src, dst = transfers.src.astype(np.int64), transfers.dst.astype(np.int64)
    node, rows = src.copy(), np.arange(len(src))
    passed: list[IntArray] = []
    row_of: list[IntArray] = []
    total = 0
    for _ in range(n):
        if not len(rows):
            break
        passed.append(node)
        row_of.append(rows)
        total += len(rows)
        if total * k > MOST_HOPS:
            raise UnsupportedError(f"ocs: the circuits of a step pass more than {MOST_HOPS:,} links")
        node = links.follows[node]
        if (node < 0).any():
            return None
        left = node != dst[rows]
        node, rows = node[left], rows[left]
    if len(rows):
        return None
    row, via = np.concatenate(row_of), np.concatenate(passed)
    along = np.repeat(np.arange(len(passed)), [len(some) for some in passed])
    order = np.argsort(row, kind="stable")
    row, via, along = row[order], via[order], along[order]
    size = transfers.size_chunks()
    load = np.bincount(via, size[row], minlength=n).max()
    share = np.maximum(1, np.floor(SHARES * (size / load))).astype(np.int64)
    c = links.capacity
    hops = (np.arange(c)[:, None] + np.where(along > 0, k, 0)) * n + via
    offsets = np.concatenate([[0], np.cumsum(np.tile(np.bincount(row, minlength=len(src)), c))])
    every = np.tile(np.arange(len(src)), c)
    port = np.repeat(np.arange(c), len(src))
    return Circuits.of(every, src[every], dst[every], port, 0, share[every], (hops.ravel(), offsets))


def plan_published(
    machine: Ocs,
    collective: str,
    size: str | float,
    path: Path | str,
    *,
    assumptions: str | Assumptions = DEFAULT_SET,
    time_limit_s: float = inf,
) -> Planned:
    """The plan that one of Harvest's schedules states, beside the fastest of our own.

    Args:
        machine: on which its links stand.
        collective: name.
        size: message of every rank: "100 MB" or bytes.
        path: of the JSON file.
        assumptions: named set of time assumptions, or a custom set.
        time_limit_s: of the search for our own plan [s].
    Raises: PlanFileError, UnsupportedError: as `links_of` and `carried`.
    """
    asked = PlanTask.of(machine, collective, size, assumptions=assumptions)
    name, size_bytes, assumed = asked.wanted.name, asked.size_bytes, asked.assumed
    plans = carried(machine, name, links_of(path, machine))
    timelines = [profile(plan, assumed).timeline(size_bytes) for plan in plans]
    timeline, circuits = min(zip(timelines, plans, strict=True), key=lambda one: one[0].total_s)
    plan = Plan(circuits, size_bytes)
    own = plan_collective(machine, name, size_bytes, assumptions=assumed, time_limit_s=time_limit_s, break_evens=False)
    note = f"the fastest plan found here takes {format_seconds(own.total_s)}, by {own.plan.algorithm}"
    notes = (f"links of {printable(Path(path).name)}", note)
    return asked.answer(plan, timeline, (own.bound_s, own.bound_by), notes, own.finished)


class SwitchCase(NamedTuple):
    """A case of SWOT.

    Args:
        collective, algorithm: that it runs.
        nodes: number [count].
        size_bytes: message of every node [bytes].
        law: of its switches.
    """

    collective: str
    algorithm: str
    nodes: int
    size_bytes: int
    law: SwitchLaw


def cases(path: Path | str) -> tuple[SwitchCase, ...]:
    """All combinations of a matrix of SWOT.

    Args: path: of the TOML file.
    Raises: PlanFileError: no such TOML, a key that is missing or of another kind, or too many combinations.
    """
    path = Path(path)
    content = _read(path, "TOML", partial(tomllib.loads, parse_float=toml_number))
    topology = content.get("topology", content)
    names = [_listed(path, content, "algorithms"), _listed(path, content, "message_sizes_mib")]
    keys = ("k", "p", "B", "T_reconf", "T_lat")
    axes = [*names, *(_listed(path, topology, key) for key in keys)]
    count = int(np.prod([float(len(axis)) for axis in axes]))
    if not 0 < count <= MOST_CASES:
        raise PlanFileError(f"{path}: {count:,} cases; 1 to {MOST_CASES:,} are solved")
    return tuple(_case(path, *values) for values in product(*axes))


def _listed(path: Path, table: Any, key: str) -> list[Any]:
    """A value or a list of values.

    Args:
        path: of the file, for messages.
        table: that has it.
        key: its name.
    """
    value = table.get(key) if isinstance(table, dict) else None
    values = value if isinstance(value, list) else [value]
    kind: tuple[type, ...] = (str,) if key == "algorithms" else (int, float)
    if not values or any(not isinstance(one, kind) or isinstance(one, bool) for one in values):
        raise PlanFileError(f"{path}: {key} is missing, or no {'name' if key == 'algorithms' else 'number'}")
    return values


def _case(path: Path, *values: Any) -> SwitchCase:
    """A combination of values: algorithm, size, k, p, B, T_reconf, T_lat."""
    name, size_mb, k, p, rate, change_ms, latency_ms = values
    if name not in ALGORITHMS:
        raise PlanFileError(f"{path}: algorithms: {name[:40]!r} is not one of {', '.join(ALGORITHMS)}")
    if not (isinstance(k, int) and isinstance(p, int) and 1 <= k <= MOST_NODES and 2 <= p <= MOST_NODES):
        raise PlanFileError(f"{path}: k={k}, p={p}; whole numbers up to {MOST_NODES:,}, two nodes or more")
    if not 0 < size_mb <= 1e6:
        raise PlanFileError(f"{path}: message_sizes_mib={size_mb:g} is not above 0 and at most 1e6")
    try:
        law = SwitchLaw(k, rate * 1e9, change_ms / 1e3, latency_ms / 1e3)
    except ParameterError as error:
        raise PlanFileError(f"{path}: {error}") from None
    collective, algorithm = ALGORITHMS[name]
    return SwitchCase(collective, algorithm.format(p=p), p, round(size_mb * 1e6), law)


def solved(case: SwitchCase, *, time_limit_s: float = 2.0) -> Overlapped:
    """The steps of a case divided among its switches.

    Args:
        case: of a matrix.
        time_limit_s: of the exact programme, where there are few steps [s].
    Raises: UnsupportedError: the algorithm does not run on that number of nodes.
    """
    schedule = generate(case.algorithm, case.collective, fabric("ocs", nodes=case.nodes))
    settings, chunks = settings_of(schedule)
    each = case.size_bytes / schedule.collective.num_chunks
    return overlap(settings, [each * amount for amount in chunks], case.law, time_limit_s=time_limit_s)
