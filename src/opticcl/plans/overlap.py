"""Steps on k switches, each of which changes while others send: which switches carry which share of which step, and when.

A step needs one setting and follows the step before. A switch that carries a share of it has the setting, waits for the end of
the step before, and takes a latency and the bytes of its share over its rate; another setting takes the time of a change,
during which the switch carries nothing. So with few bytes a step, switches alternate, and one changes while the others send.

    any number of steps    list schedule: of each step the switches that are ready first, as many as a beam search finds best
    12 steps or fewer      exact, by a mixed-integer programme

No schedule is faster than all switches sending without changes, nor than all work on k switches, a change and a latency a step.

Source: the problem is SWOT's (arXiv 2510.19322), which charges a change where the step before had another setting; here a
switch keeps its setting however many steps it sits out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np

from opticcl.circuits.ocs import MOST_HOPS
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics.ocs import SHARES, Ocs
from opticcl.ir import CircuitPlan, Circuits, Schedule, Transfers
from opticcl.ir.circuit_plan import StoredRounds
from opticcl.ir.limits import limit
from opticcl.ir.phases import StoredSteps
from opticcl.units import Seconds

__all__ = ["Overlapped", "SwitchLaw", "SwitchUse", "overlap", "plan_on_switches", "settings_of"]

EXACT_STEPS = 12
"""Steps up to which the exact programme is solved [count]."""

FEW, MANY = 64, 8
"""States that the beam search keeps with up to `EXACT_STEPS` steps, and with more [count]."""

MOST_STEPS = limit("overlap.MOST_STEPS")

PIECES = 64
"""Parts that each chunk is cut into, so that shares of a step are whole [count]."""


@dataclass(frozen=True, slots=True)
class SwitchLaw:
    """What switches take.

    Args:
        switches: number k [count].
        bytes_per_s: of a node through one switch [byte/s].
        change_s: of a switch from one setting to another [s].
        latency_s: of each use of a switch [s].
        first_free: whether the first setting of each switch is not charged.
    Raises: ParameterError: no switches, no rate, or a time that is negative or infinite.
    """

    switches: int
    bytes_per_s: float
    change_s: Seconds
    latency_s: Seconds
    first_free: bool = False

    def __post_init__(self) -> None:
        if self.switches < 1 or not self.bytes_per_s > 0:
            raise ParameterError(
                f"overlap: switches={self.switches}, bytes_per_s={self.bytes_per_s:g}; give at least one switch and a rate"
            )
        if not (0 <= self.change_s < inf and 0 <= self.latency_s < inf):
            raise ParameterError(
                f"overlap: change_s={self.change_s:g}, latency_s={self.latency_s:g}; give times of 0 or more that end"
            )


class SwitchUse(NamedTuple):
    """A share of a step on a switch.

    Args:
        step, switch: which.
        start_s, end_s: when it is sent [s].
        size_bytes: of each node [bytes].
    """

    step: int
    switch: int
    start_s: float
    end_s: float
    size_bytes: float


@dataclass(frozen=True, slots=True)
class Overlapped:
    """A schedule of steps on switches.

    Args:
        seconds: end of the last step [s].
        bound_s: no schedule ends earlier [s].
        uses: in the order of the steps.
        proven: whether no schedule is faster.
    """

    seconds: Seconds
    bound_s: Seconds
    uses: tuple[SwitchUse, ...]
    proven: bool


class _State(NamedTuple):
    """A partial schedule: a guess of its end, its end so far, when each switch is free and its setting, and its uses."""

    guess_s: float
    end_s: float
    free_s: tuple[float, ...]
    setting: tuple[int, ...]
    before: Any
    uses: tuple[SwitchUse, ...]


def overlap(
    settings: Sequence[int],
    sizes_bytes: Sequence[float],
    law: SwitchLaw,
    *,
    exact: bool = True,
    time_limit_s: float = 10.0,
) -> Overlapped:
    """Shares of steps on switches and their times.

    Args:
        settings: number of the setting that each step needs.
        sizes_bytes: what a node sends in each step [bytes].
        law: of the switches.
        exact: whether the exact programme is solved, where there are `EXACT_STEPS` steps or fewer.
        time_limit_s: of the exact programme [s].
    Raises: ParameterError: lists of different lengths, too many steps, or a size that is negative or infinite.
    """
    if len(settings) != len(sizes_bytes) or len(settings) > MOST_STEPS:
        raise ParameterError(
            f"overlap: {len(settings):,} settings and {len(sizes_bytes):,} sizes; give one of each for at most "
            f"{MOST_STEPS:,} steps"
        )
    for step, size in enumerate(sizes_bytes):
        if not 0 <= size < inf:
            raise ParameterError(f"overlap: size {size:g} of step {step} is not 0 bytes or more")
    if not settings:
        return Overlapped(0.0, 0.0, (), True)
    listed = _list_schedule(settings, sizes_bytes, law)
    bound = _bound_s(settings, sizes_bytes, law)
    proven = listed.end_s <= bound * (1 + 1e-9)
    if proven or not exact or len(settings) > EXACT_STEPS:
        return Overlapped(listed.end_s, min(bound, listed.end_s), listed.uses, proven)
    return _exact(settings, sizes_bytes, law, listed, bound, time_limit_s)


def _bound_s(settings: Sequence[int], sizes_bytes: Sequence[float], law: SwitchLaw) -> float:
    """The larger of: all switches send every step without changes; all uses, one of each step, on k switches."""
    sending = sum(sizes_bytes) / law.bytes_per_s
    distinct = len(set(settings))
    charged = max(0, distinct - law.switches) if law.first_free else distinct
    first = 0.0 if law.first_free else law.change_s
    steps = len(settings) * law.latency_s
    return max((charged * law.change_s + steps + sending) / law.switches, first + steps + sending / law.switches)


def _list_schedule(settings: Sequence[int], sizes_bytes: Sequence[float], law: SwitchLaw) -> _State:
    """The best schedule that a beam search over the number of switches of each step finds."""
    k, change, late = law.switches, law.change_s, law.latency_s
    sending = np.array(sizes_bytes, np.float64) / law.bytes_per_s
    rest_sending = np.concatenate([np.cumsum(sending[::-1])[::-1], [0.0]])
    kept = FEW if len(settings) <= EXACT_STEPS else MANY
    states = [_State(0.0, 0.0, (0.0,) * k, (-1,) * k, None, ())]
    for step, setting in enumerate(settings):
        rest, work = len(settings) - step - 1, float(rest_sending[step + 1])
        different = sum(a != b for a, b in zip(settings[step + 1 :], settings[step:], strict=False))
        best_of: dict[tuple[float, ...], _State] = {}
        for one in states:
            ready = []
            for switch in range(k):
                has = one.setting[switch]
                stands = has == setting or (has < 0 and law.first_free)
                ready.append((max(one.end_s, one.free_s[switch] + change * (not stands)), not stands, switch))
            ready.sort()
            begun = 0.0
            for number, (at, _, _) in enumerate(ready, 1):
                begun += at + late
                end = (float(sending[step]) + begun) / number
                if number > 1 and end < at + late:  # the last of them would carry nothing
                    break
                used = {switch: start for start, _, switch in ready[:number]}
                free = tuple(end if j in used else one.free_s[j] for j in range(k))
                now = tuple(setting if j in used else one.setting[j] for j in range(k))
                guess = max(end + rest * late + work / k, (sum(free) + different * change + rest * late + work) / k)
                key = (round(end, 15), *sorted(free), *sorted(now))
                if key not in best_of or guess < best_of[key].guess_s:
                    best_of[key] = _State(guess, end, free, now, (one, used), ())
        states = sorted(best_of.values(), key=lambda one: one.guess_s)[:kept]
    best = min(states, key=lambda one: one.end_s)
    uses: list[SwitchUse] = []
    state = best
    for step in reversed(range(len(settings))):
        before, used = state.before
        sends = ((j, start, state.end_s - start - late) for j, start in used.items())
        uses += [SwitchUse(step, j, start, state.end_s, max(0.0, s) * law.bytes_per_s) for j, start, s in sends]
        state = before
    return best._replace(uses=tuple(reversed(uses)))


def _exact(
    settings: Sequence[int],
    sizes_bytes: Sequence[float],
    law: SwitchLaw,
    known: _State,
    bound_s: float,
    time_limit_s: float,
) -> Overlapped:
    """The mixed-integer programme, bounded above by a known schedule.

    For step i and switch j: u whether it is used, s its start, d its time of sending; e the end of the step. Two uses of a
    switch with different settings are a change apart.

    Args:
        settings, sizes_bytes, law: as of `overlap`.
        known: a schedule.
        bound_s: no schedule ends earlier [s].
        time_limit_s: of the solver [s].
    """
    import highspy

    steps, k = len(settings), law.switches
    unit = known.end_s or 1.0  # times in units of the known schedule
    change, late, most = law.change_s / unit, law.latency_s / unit, 1.0
    sending = [size / law.bytes_per_s / unit for size in sizes_bytes]
    model = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("random_seed", 0),
        ("time_limit", float(time_limit_s)),
    ):
        model.setOptionValue(option, value)
    model.setOptionValue("mip_rel_gap", 1e-7)
    columns = 0

    def variable(upper: float, *, whole: bool = False, cost: float = 0.0) -> int:
        nonlocal columns
        model.addCol(cost, 0.0, upper, 0, np.zeros(0, np.int32), np.zeros(0))
        if whole:
            model.changeColIntegrality(columns, highspy.HighsVarType.kInteger)
        columns += 1
        return columns - 1

    def row(lower: float, upper: float, **terms: float) -> None:
        index = np.array([int(name[1:]) for name in terms], np.int32)
        model.addRow(lower, upper, len(index), index, np.array(list(terms.values()), np.float64))

    u = [[variable(1.0, whole=True) for _ in range(k)] for _ in range(steps)]
    s = [[variable(most) for _ in range(k)] for _ in range(steps)]
    d = [[variable(sending[i]) for _ in range(k)] for i in range(steps)]
    e = [variable(most, cost=float(i == steps - 1)) for i in range(steps)]
    for i in range(steps):
        row(sending[i], sending[i], **{f"x{d[i][j]}": 1.0 for j in range(k)})
        row(1.0, inf, **{f"x{u[i][j]}": 1.0 for j in range(k)})
        for j in range(k):
            row(-inf, 0.0, **{f"x{d[i][j]}": 1.0, f"x{u[i][j]}": -sending[i]})
            row(0.0, inf, **{f"x{e[i]}": 1.0, f"x{s[i][j]}": -1.0, f"x{d[i][j]}": -1.0, f"x{u[i][j]}": -late})
            if i:
                row(0.0, inf, **{f"x{s[i][j]}": 1.0, f"x{e[i - 1]}": -1.0})
            if not law.first_free:
                row(0.0, inf, **{f"x{s[i][j]}": 1.0, f"x{u[i][j]}": -change})
            for b in range(i):
                if settings[b] != settings[i]:
                    far = most + late + change
                    row(
                        change - 2 * far,
                        inf,
                        **{
                            f"x{s[i][j]}": 1.0,
                            f"x{s[b][j]}": -1.0,
                            f"x{d[b][j]}": -1.0,
                            f"x{u[b][j]}": -late - far,
                            f"x{u[i][j]}": -far,
                        },
                    )
    model.run()
    info = model.getInfo()
    values = np.asarray(model.getSolution().col_value)
    lower = max(bound_s, float(info.mip_dual_bound) * unit) if np.isfinite(info.mip_dual_bound) else bound_s
    solved = info.primal_solution_status == 2 and len(values) == columns
    if not solved or float(values[e[-1]]) >= 1.0 - 1e-9:
        proven = model.getModelStatus() in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)
        return Overlapped(known.end_s, known.end_s if proven else min(lower, known.end_s), known.uses, proven)
    uses = []
    for i in range(steps):
        for j in range(k):
            if values[u[i][j]] > 0.5 and values[d[i][j]] >= 1e-6 * sending[i]:
                start, length = float(values[s[i][j]]) * unit, float(values[d[i][j]]) * unit
                end = start + length + law.latency_s
                uses.append(SwitchUse(i, j, start, end, length * law.bytes_per_s))
    if {use.step for use in uses} != set(range(steps)):  # shares below the tolerance of the solver
        return Overlapped(known.end_s, min(lower, known.end_s), known.uses, False)
    seconds = max(use.end_s for use in uses)
    proven = model.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return Overlapped(seconds, seconds if proven else min(lower, seconds), tuple(uses), proven)


def settings_of(schedule: Schedule) -> tuple[list[int], list[int]]:
    """Setting that each step needs, numbered as they occur, and chunks that a node sends in it.

    Raises: UnsupportedError: a node sends to two others in a step, or the nodes send different amounts.
    """
    known: dict[bytes, int] = {}
    settings, amounts = [], []
    for i in range(schedule.num_steps):
        transfers = schedule.step(i)
        n = schedule.collective.num_ranks
        pairs = np.unique(transfers.src.astype(np.int64) * n + transfers.dst)
        ends = (pairs // n, pairs % n)
        if any(len(np.unique(end)) < len(end) for end in ends):
            raise UnsupportedError(
                f"overlap: {schedule.name} has nodes with several partners in step {i}; try halving_doubling or digit_shifts"
            )
        sent = np.bincount(transfers.src, transfers.size_chunks(), minlength=n)[ends[0]]
        amounts.append(int(sent.max(initial=0)))
        settings.append(known.setdefault(pairs.tobytes(), len(known)))
    return settings, amounts


def plan_on_switches(fabric: Ocs, schedule: Schedule, found: Overlapped) -> CircuitPlan:
    """The plan of a schedule whose steps are divided among the switches as found: each transfer is cut, a circuit a part.

    Args:
        fabric: with as many planes as there are switches.
        schedule: whose steps `found` divides.
        found: shares of its steps.
    Raises: UnsupportedError: too many chunks, or a switch that the fabric does not have.
    """
    c = schedule.collective
    rows = sum(len(schedule.step(i)) for i in range(schedule.num_steps))
    if c.num_chunks * PIECES > MOST_HOPS or rows * fabric.planes > MOST_HOPS:
        raise UnsupportedError(f"overlap: {rows:,} transfers and {c.num_chunks:,} chunks are too many to divide")
    if any(use.switch >= fabric.planes for use in found.uses):
        raise UnsupportedError(
            f"overlap: the schedule is for more switches than the {fabric.planes} planes of this ocs"
        )
    steps, rounds = [], []
    for i in range(schedule.num_steps):
        shares = [(use.switch, use.size_bytes) for use in found.uses if use.step == i]
        part, plane = _cut(schedule.step(i), shares)
        src, dst = part.src.astype(np.int64), part.dst
        steps.append(part)
        path = (plane * fabric.nodes + src)[:, None]
        load = np.zeros(fabric.planes * fabric.nodes)
        np.add.at(load, path[:, 0], part.size_chunks())
        share = np.maximum(1, np.floor(SHARES * part.size_chunks() / load[path[:, 0]])).astype(np.int64)
        rounds.append((Circuits.of(np.arange(len(part)), src, dst, plane, 0, share, path),))
    owner = None if c.owner is None else np.repeat(c.owner, PIECES)
    from opticcl.collective import collective

    finer = collective(c.name, c.num_ranks, c.num_chunks * PIECES, root=c.root, owner=owner, shift=c.shift)
    made = Schedule(f"{schedule.name}_on_switches", finer, schedule.num_steps, StoredSteps(tuple(steps)))
    return CircuitPlan(fabric, made, StoredRounds(tuple(rounds)))


def _cut(transfers: Transfers, shares: list[tuple[int, float]]) -> tuple[Transfers, np.ndarray]:
    """Each transfer in parts of neighbouring pieces in proportion to the shares, and the switch of each part."""
    whole = sum(size for _, size in shares) or 1.0
    ends = np.cumsum([size / whole for _, size in shares])
    pieces = transfers.chunk_n.astype(np.int64) * PIECES
    cut = (
        np.round(ends[:-1, None] * pieces).astype(np.int64) if len(shares) > 1 else np.zeros((0, len(pieces)), np.int64)
    )
    bounds = np.concatenate([np.zeros((1, len(pieces)), np.int64), cut, pieces[None]])
    lo, count = transfers.chunk_lo.astype(np.int64) * PIECES + bounds[:-1], np.diff(bounds, axis=0)
    kept = count.ravel() > 0
    rows = np.tile(np.arange(len(transfers)), len(shares))[kept]
    switch = np.repeat([j for j, _ in shares], len(transfers))[kept]
    parts = None if transfers.parts is None else transfers.parts[rows]
    columns = (transfers.src[rows], transfers.dst[rows], lo.ravel()[kept], count.ravel()[kept], transfers.op[rows])
    return Transfers.of(*columns, parts), switch
