"""Plan a collective in pieces that nodes forward while further ones arrive, timed by the device engine.

With barriers a step waits for the last bit of the step before, so that more pieces cost more latencies. Without them a piece
goes on once it has arrived: k pieces of a message M over h hops of rate B take about h alpha + (M + (h - 1) M / k) / B. On a
RAMP with x planes and as many pieces as slots, a broadcast takes 2 alpha + ceil(M / (x P)) + 1 slots of P bytes.

Tried are the registered algorithms that cut a message into a number of pieces: that number is doubled until two in turn are no
faster, then halved in steps; on fabrics with slots also a piece a slot, and on large ones that alone. The fastest with barriers
is tried too.

Source: pipelined trees; the closed form of RAMP's broadcast is ours, its tree RAMP's (section 6.1.5).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import ceil, inf, sqrt

from opticcl.assumptions import DEFAULT_SET, Assumptions
from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.ir import Fabric, ProgressCallback, Timeline, no_progress
from opticcl.ir.limits import limit
from opticcl.plans.plan import Plan
from opticcl.plans.planner import Planned, PlanTask
from opticcl.plans.search import Search
from opticcl.registry import parse_call, write_call
from opticcl.schedule import all_variants, generate
from opticcl.simulate import simulate
from opticcl.simulate.bounds import lower_bound
from opticcl.simulate.device.engine import timeline_of_long_run
from opticcl.simulate.device.long_runs import FOLLOWED, has_long_run
from opticcl.units import format_seconds

__all__ = ["PIECES", "plan_streamed"]

PIECES = ("pipeline", "stages")
"""Parameters of algorithms that count the pieces of a message."""

MOST_PIECES = limit("streams.MOST_PIECES")

LEAST_BYTES = 64
"""Of a piece [bytes]."""

MOST_ROWS = limit("streams.MOST_ROWS")

MOST_TIMED = limit("streams.MOST_TIMED")

SETTINGS = limit("streams.SETTINGS")

LARGE_NODES = limit("streams.LARGE_NODES")

MOST_DEVICES = limit("streams.MOST_DEVICES")


def plan_streamed(
    fabric: Fabric | str,
    collective: str,
    size: str | float,
    *,
    root: int = 0,
    assumptions: str | Assumptions = DEFAULT_SET,
    time_limit_s: float = inf,
    progress: ProgressCallback = no_progress,
) -> Planned:
    """Plan a collective whose pieces are forwarded while further ones arrive.

    Args:
        fabric: with circuits, or "name:key=value,...".
        collective: such as "broadcast".
        size: message of every rank: "100 MB" or bytes.
        root: rank that a rooted collective starts or ends at.
        assumptions: named set of time assumptions, or a custom set.
        time_limit_s: after which no further number of pieces is tried [s].
        progress: called with a line of text before each algorithm.
    Raises: UnsupportedError: packets, too many devices, or no algorithm that cuts the message. ParameterError: a limit below 0.
    """
    asked = PlanTask.of(fabric, collective, size, root=root, assumptions=assumptions, time_limit_s=time_limit_s)
    where, wanted, size_bytes, assumed = asked.fabric, asked.wanted, asked.size_bytes, asked.assumed
    if where.is_packet_switched:
        raise UnsupportedError(f"plan: {where.name} has packets, no circuits; use simulate --engine packet")
    families = _families(wanted, where)
    if not families:
        raise UnsupportedError(f"plan: no algorithm cuts {wanted.name} on {where.name} into a number of pieces")
    search = Search(where, wanted, assumed)
    with_barriers, fastest = search.timed(size_bytes)
    search.release()
    whole = Plan(fastest.plan(), size_bytes, search.not_tried)
    barriers_s = with_barriers.total_s
    each = sum(device.count * device.pool for device in where.devices) <= MOST_DEVICES

    large = where.num_nodes > LARGE_NODES
    timed = 0 if large else _num_transfers(whole, MOST_TIMED)
    finished, not_timed = True, list[str]()

    def started(plan: Plan, algorithm: str, most: int) -> Timeline | None:
        """Times from device to device, unless more settings than `most` transfers stand for had to be followed."""
        nonlocal timed
        if not each:
            return timeline_of_long_run(plan.circuits, plan.size_bytes, assumed)
        work = 0 if large else _settings(plan, most * SETTINGS) // SETTINGS
        if work > most:
            not_timed.append(algorithm)
            return None
        timed += work
        return _started(plan, assumed)

    first = started(whole, whole.algorithm, MOST_TIMED)
    best = first or with_barriers, whole
    for name, given, key in sorted(families, key=lambda family: family[0] != whole.schedule.name):
        progress(f"pieces of {name} on {where.name}")

        def time_s(pieces: int, name: str = name, given: dict[str, str] = given, key: str = key) -> float:
            nonlocal best, finished, timed
            if asked.late:
                finished = False
                return inf
            algorithm = write_call(name, {**given, key: pieces})
            try:
                plan = Plan(lower(where, generate(algorithm, wanted, where)), size_bytes)
            except UnsupportedError:
                return inf
            if (plan.schedule.name, plan.schedule.parameters) == (whole.schedule.name, whole.schedule.parameters):
                return first.total_s if first else inf
            if not large:
                transfers = 0 if timed > MOST_TIMED else _num_transfers(plan, MOST_TIMED)
                if timed + transfers > MOST_TIMED:
                    not_timed.append(algorithm)
                    return inf
                timed += transfers
            timeline = None
            if pieces * where.num_nodes <= MOST_ROWS or has_long_run(plan.circuits):
                timeline = started(plan, algorithm, MOST_TIMED - timed)
            if timeline is None:
                return inf
            if timeline.total_s < best[0].total_s:
                best = timeline, plan
            return timeline.total_s

        limit, slots = max(1, min(MOST_PIECES, size_bytes // LEAST_BYTES)), _slots(where, size_bytes)
        most = min(limit, max(1, MOST_ROWS // where.num_nodes))
        if slots > most or large:
            time_s(ceil(slots / ceil(slots / limit)) if slots else 1)
        if not large:
            _search(time_s, most, slots)
    timeline, plan = best
    bound = lower_bound(plan.schedule.collective, where, size_bytes, assumed, starts="devices")
    notes = [
        f"pieces are forwarded while further ones arrive, timed by the device engine; the fastest with barriers takes "
        f"{format_seconds(barriers_s)}"
    ]
    if not_timed:
        notes.append(
            f"plans of {MOST_TIMED:,} transfers together are timed, {SETTINGS} settings of devices for one; not {not_timed[0]}"
            + (f" and {len(not_timed) - 1} more" if len(not_timed) > 1 else "")
            + ", which may be faster, by no more than the gap"
        )
    if followed := timeline.assumptions.get(FOLLOWED):
        notes.append(f"followed are {followed}; all others have equal times, later by one period a step")
    return asked.answer(plan, timeline, (bound.seconds, bound.name), notes, finished)


def _families(wanted: Request, fabric: Fabric) -> list[tuple[str, dict[str, str], str]]:
    """Algorithms that cut a message: name, further parameters and the parameter that counts the pieces.

    Args:
        wanted: collective and root.
        fabric: that runs it.
    """
    families: dict[str, tuple[str, dict[str, str], str]] = {}
    for variant in all_variants(wanted, fabric):
        name, given = parse_call(variant)
        keys = [key for key in PIECES if re.fullmatch("[0-9]+", given.get(key, ""))]
        if keys:
            given.pop(keys[0])
            families[write_call(name, given)] = name, given, keys[0]

    def chunks(name: str, given: dict[str, str], key: str, pieces: int) -> int:
        try:
            return generate(write_call(name, {**given, key: pieces}), wanted, fabric).collective.num_chunks
        except UnsupportedError:
            return 0

    return [one for one in families.values() if chunks(*one, 4) > chunks(*one, 2)]


def _num_transfers(plan: Plan, most: int) -> int:
    """Transfers of all steps [count].

    Args:
        plan: with its schedule.
        most: above which no further step is counted [count].
    """
    steps, transfers = plan.schedule.steps, 0
    for run in plan.schedule.step_classes():
        transfers += len(run) * steps.num_transfers(run.start)
        if transfers > most:
            break
    return transfers


def _settings(plan: Plan, most: int) -> int:
    """Settings of devices of all steps [count].

    Args:
        plan: with its circuits.
        most: above which no further step is counted [count].
    """
    settings = 0
    for run in plan.schedule.step_classes():
        for circuits in plan.circuits.rounds(run.start):
            settings += len(run) * sum(len(use.index) for use in plan.fabric.settings(circuits))
        if settings >= most + SETTINGS:
            break
    return settings


def _slots(fabric: Fabric, size_bytes: int) -> int:
    """Slots of a message on all ports of a node, 0 on fabrics without slots [count]."""
    return ceil(size_bytes / (fabric.slot_payload_bytes * fabric.ports_per_node)) if fabric.slot_s else 0


def _search(time_s: Callable[[int], float], most: int, slots: int) -> None:
    """Evaluate numbers of pieces.

    Args:
        time_s: number of pieces -> time, infinite where there is no plan [s].
        most: pieces [count].
        slots: of the message; 0: none [count].
    """
    known: dict[int, float] = {}

    def evaluate(pieces: int) -> None:
        if pieces not in known:
            known[pieces] = time_s(pieces)

    if slots:
        evaluate(ceil(slots / ceil(slots / most)))
    pieces, worse = 1, 0
    while pieces <= most and worse < 2:
        evaluate(pieces)
        worse = worse + 1 if known[pieces] > min(known.values()) else 0
        pieces *= 2
    for _ in range(3):
        best = min(known, key=lambda one: known[one])
        below = max((one for one in known if one < best), default=best)
        above = min((one for one in known if one > best), default=best)
        evaluate(round(sqrt(below * best)))
        evaluate(round(sqrt(best * above)))


def _started(plan: Plan, assumed: Assumptions) -> Timeline | None:
    """Times by the device engine, or None where it cannot follow the plan."""
    try:
        return simulate(plan.circuits, plan.size_bytes, assumed, engine="device").timeline
    except UnsupportedError:
        return None
