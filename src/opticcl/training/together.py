"""The messages of an iteration planned together: the circuits that one leaves are those with which the next begins.

Alone, every message sets its first circuits itself. Together

- what stands is not set again, if the message before had the same nodes (`initial` of the assumptions);
- what has to be set is set while the data of the message is still computed (`prepare=early`), from the end of the message
  before on; where an exchange of control messages precedes it, which waits for the data, it is not;
- a slower plan may carry a message if it leaves or finds circuits that stand: which graph to hold is chosen for all messages at
  once (`opticcl.training.in_turn`).

The start is cold. What a plan leaves are the circuits of its last round. The time of an iteration is that of its simulation
with the chosen plans; where these are not faster, the plans of each message alone stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from opticcl.assumptions import assumptions as assumptions_of
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import Circuits
from opticcl.ir.device_settings import DeviceSettings
from opticcl.ir.task_graph import Matrix, ProcessGroup, TaskGraph
from opticcl.plans.candidate import Candidate
from opticcl.plans.plan import Plan
from opticcl.plans.search import Search
from opticcl.simulate import Profile
from opticcl.simulate.standing import Standing
from opticcl.training.communication import CommunicationTimes, PlanUse
from opticcl.training.in_turn import START, Turn, fastest_in_turn, ready_times
from opticcl.training.iteration import COMPUTE, Iteration, Runtime, refuse_below_rate, simulate_iteration
from opticcl.training.runtime import TimesInTurn, num_streams
from opticcl.units import format_seconds

__all__ = ["MOST_OPTIONS", "HandedOver", "Together", "plan_together", "why_not"]

MOST_OPTIONS = 8
"""Plans that a message may have in a sequence [count]."""

ROUNDS = 3
"""Sequences of messages that are planned, where faster messages are fused otherwise [count]."""


class HandedOver(NamedTuple):
    """A message in a sequence.

    Args:
        collective: canonical name.
        size_bytes: message of a rank [bytes].
        plan: that carries it.
        stands: whether its first circuits stand at the end of the message before.
        hidden_s: time for its first circuits that passes while its data is computed [s].
        waits_s: time for them that it waits for [s].
        total_s: from ready data and an idle network to its arrival [s].
    """

    collective: str
    size_bytes: int
    plan: Plan
    stands: bool
    hidden_s: float
    waits_s: float
    total_s: float

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {**self._asdict(), "plan": self.plan.algorithm}


@dataclass(frozen=True, slots=True)
class Together:
    """An iteration whose messages are planned together.

    Args:
        iteration: simulated with the chosen plans.
        alone_s: time of the iteration with each message planned and set up alone [s].
        handed_over_s: with the same plans, each of which begins with what the one before left [s].
        messages: in the order in which they begin; none where each alone is as fast.
        plans: that carry them, verified.
        proven: whether no other sequence of the plans that were tried is faster, with the messages in this order.
    """

    iteration: Iteration
    alone_s: float
    handed_over_s: float
    messages: tuple[HandedOver, ...]
    plans: tuple[PlanUse, ...]
    proven: bool

    @property
    def saved_s(self) -> float:
        """Time saved over planning each alone [s]."""
        return max(0.0, self.alone_s - self.iteration.total_s)

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl train --together --json` prints them."""
        return {
            "iteration_s": self.iteration.total_s,
            "alone_s": self.alone_s,
            "handed_over_s": self.handed_over_s,
            "saved_s": self.saved_s,
            "exposed_s": self.iteration.exposed_s,
            "standing": sum(one.stands for one in self.messages),
            "hidden_s": sum(one.hidden_s for one in self.messages),
            "waits_s": sum(one.waits_s for one in self.messages),
            "proven": self.proven,
            "verified": all(use.verdict.ok for use in self.plans),
            "plans": [use.record() for use in self.plans],
            "messages": [one.record() for one in self.messages],
        }

    def __str__(self) -> str:
        """What was gained, in a sentence."""
        took, alone = format_seconds(self.iteration.total_s), format_seconds(self.alone_s)
        if not self.messages:
            return f"planned together {took}, as each message alone"
        stand, count = sum(one.stands for one in self.messages), len(self.messages)
        hidden = format_seconds(sum(one.hidden_s for one in self.messages))
        waits = format_seconds(sum(one.waits_s for one in self.messages))
        return (
            f"planned together {took}, each message alone {alone} ({self.saved_s / self.alone_s:.1%} less); the same plans "
            f"handed over {format_seconds(self.handed_over_s)}; the circuits of {stand} of {count} messages stand, changes of "
            f"{hidden} pass during computation and {waits} are waited for"
        )


class _Message(NamedTuple):
    """A message: what is called, by which ranks, of how many bytes; of an uneven all_to_all with the parts of each pair."""

    collective: str
    group: ProcessGroup
    size_bytes: int
    matrix_bytes: Matrix = ()

    @property
    def key(self) -> tuple[object, ...]:
        """What is equal for messages that take the same time."""
        return self.collective, self.group.ranks, self.size_bytes, self.matrix_bytes


class _Option(NamedTuple):
    """A plan that may carry a message; `number` counts those of all messages."""

    number: int
    candidate: Candidate


class _Change(NamedTuple):
    """A plan behind another.

    Args:
        times: from the circuits that stand.
        setting_s: of its first circuits, as far as they may be set before the data is ready [s].
        waits_s: time for its first circuits that the data waits for in any case [s].
    """

    times: Profile
    setting_s: float
    waits_s: float


class _Turns:
    """Plans of messages, and what each takes behind another; all results are kept.

    Args:
        times: of messages alone, on a machine.
    """

    def __init__(self, times: CommunicationTimes) -> None:
        self._times = times
        self._options: dict[tuple[tuple[int, ...], str, int], tuple[_Option, ...]] = {}
        self._known: dict[int, _Option] = {}
        self._change: dict[tuple[int, int], _Change] = {}
        self._took: dict[tuple[int, int, int], Turn] = {}
        self._left: dict[int, DeviceSettings | None] = {}

    def options(self, message: _Message) -> tuple[_Option, ...]:
        """Plans of a message, that of the message alone first."""
        key = tuple(message.group.ranks), message.collective, message.size_bytes
        if key not in self._options:
            choice, sent = self._times.choice_of(*message[:3])
            self._options[key] = tuple(
                self._known.setdefault(id(one), _Option(len(self._known), one)) for one in _near(choice, sent)
            )
        return self._options[key]

    def after(self, before: tuple[ProcessGroup, _Option] | None, group: ProcessGroup, option: _Option) -> _Change:
        """A plan behind another, or at the start.

        Args:
            before: group and plan of the message before; None: the start.
        """
        handed = before is not None and (self._times.groups == "machine" or before[0].ranks == group.ranks)
        key = before[1].number if before is not None and handed else START, option.number
        if key not in self._change:
            self._change[key] = self._changed(before[1] if before is not None and handed else None, option)
        return self._change[key]

    def turn(self, change: _Change, message: _Message) -> Turn:
        """What a message takes."""
        _, sent = self._times.choice_of(*message[:3])
        times, chunks = change.times, change.times.plan.schedule.collective.num_chunks
        if message.matrix_bytes:
            total_s = self._times.uneven_timeline(times, message.matrix_bytes).total_s
        else:
            total_s = sum(one.total_s(times.plan.fabric, times.assumed, sent / chunks) for one in times.costs)
        return Turn(change.setting_s, total_s - change.setting_s)

    def _changed(self, before: _Option | None, option: _Option) -> _Change:
        candidate = option.candidate
        assumed = candidate.assumed
        times = candidate.profile
        if before is not None:
            left = self._left_by(before)
            first = _first_round(candidate)
            if left is not None and first is not None and self._differs(left, candidate, first):
                times = candidate.profile_under(assumptions_of(assumed, initial=left))
        warm = candidate.profile_under(assumptions_of(assumed, initial="warm"))
        setting_s, control_s = (
            sum(getattr(one, part) for one in times.costs) - sum(getattr(one, part) for one in warm.costs)
            for part in ("reconfiguration_s", "control_s")
        )
        early = assumed.prepare == "early" and control_s <= 0
        whole_s = max(0.0, setting_s) + max(0.0, control_s)
        return _Change(times, max(0.0, setting_s) if early else 0.0, 0.0 if early else whole_s)

    def _differs(self, left: DeviceSettings, candidate: Candidate, first: Circuits) -> bool:
        """Whether a plan may take less time than cold from what another left."""
        fabric = candidate.fabric
        try:
            changes = Standing(fabric, left).changes(first)
        except ParameterError:  # another machine
            return False
        return not changes or fabric.links_set(first) is not None

    def _left_by(self, option: _Option) -> DeviceSettings | None:
        """The circuits that a plan leaves, None if it has none or the fabric names no devices."""
        if option.number not in self._left:
            try:
                self._left[option.number] = DeviceSettings.of_plan(option.candidate.profile.plan)
            except (ParameterError, UnsupportedError):
                self._left[option.number] = None
        return self._left[option.number]


def _near(search: Search, size_bytes: int) -> tuple[Candidate, ...]:
    """Plans for which another may make way in a sequence of messages, the fastest first, `MOST_OPTIONS` at most.

    A plan that holds the circuits of its neighbours saves a change before it and one behind it at most, so those are kept
    that take no more than two first changes longer than the fastest.

    Args:
        search: of the message.
        size_bytes: message of every rank [bytes].
    Raises: UnsupportedError: the fabric can carry no algorithm.
    """
    _, first = search.timed(size_bytes)
    cold_s = first.lower_bound_s([size_bytes])
    warm = first.profile_under(assumptions_of(first.assumed, initial="warm"))
    change_s = cold_s - warm.timeline(size_bytes, bounded=False).total_s
    near = search.near(size_bytes, cold_s + 2 * change_s, MOST_OPTIONS) if change_s > 0 else []
    return (first, *(one for one in near[: MOST_OPTIONS - 1] if one is not first))


def _first_round(candidate: Candidate) -> Circuits | None:
    plan = candidate.profile.plan
    rounds = (one for step in range(plan.schedule.num_steps) for one in plan.rounds(step))
    return next(rounds, None)


class _Sequence(TimesInTurn):
    """Messages as they come, with the plans that were chosen for them; an unexpected one takes what ends first.

    Args:
        turns: plans and their times.
        chosen: key and plan of each message.
    """

    def __init__(self, turns: _Turns, chosen: list[tuple[tuple[object, ...], _Option]]) -> None:
        self._turns, self._chosen = turns, chosen
        self._before: tuple[ProcessGroup, _Option] | None = None
        self._free_s = 0.0
        self.found: list[tuple[HandedOver, ProcessGroup, _Option]] = []
        self.as_planned = True

    def at(
        self, now_s: float, collective: str, group: ProcessGroup, size_bytes: int, matrix_bytes: Matrix = ()
    ) -> float:
        """See `TimesInTurn`."""
        if len(group.ranks) < 2:
            return 0.0
        sent = _Message(collective, group, size_bytes, matrix_bytes)
        options = self._turns.options(sent)
        number = len(self.found)
        if number < len(self._chosen) and self._chosen[number][0] == sent.key:
            options = (self._chosen[number][1],)
        else:
            self.as_planned = False
        changes = [self._turns.after(self._before, group, one) for one in options]
        turns = [self._turns.turn(one, sent) for one in changes]
        ends = [one.end_s(now_s, self._free_s) for one in turns]
        end_s = min(ends)
        at = ends.index(end_s)
        option, change, turn = options[at], changes[at], turns[at]
        hidden_s = min(turn.setting_s, max(0.0, now_s - self._free_s))
        stands = self._before is not None and not turn.setting_s and not change.waits_s
        message = HandedOver(
            collective, size_bytes, Plan(option.candidate.profile.plan, size_bytes), stands, hidden_s,
            turn.setting_s - hidden_s + change.waits_s, end_s - now_s,
        )  # fmt: skip
        self.found.append((message, group, option))
        took_s = end_s - now_s
        self._free_s, self._before = now_s + took_s, (group, option)
        return took_s


def why_not(job: TaskGraph, runtime: Runtime) -> str:
    """Why the messages of a job cannot be planned together; "" if they can."""
    if job.num_devices > 1:
        return "not planned together: the job has traces of several devices, whose messages have no one order"
    if (streams := num_streams(job, runtime)) > 1:
        return f"not planned together: {streams} streams have no one order of messages; give --streams 1"
    return ""


def plan_together(
    alone: Iteration,
    times: CommunicationTimes,
    runtime: Runtime,
    stragglers: Mapping[int, float] | None = None,
    *,
    compute_scale: float = 1.0,
) -> Together:
    """Plan the messages of an iteration together.

    Args:
        alone: the iteration with each message planned alone, of one device and one stream of messages.
        times: that it was simulated with.
        runtime: fusion, overlap and order.
        stragglers: device -> factor on its computation time.
        compute_scale: speed of the devices relative to those of the job.
    Raises: UnsupportedError, FabricError: the machine cannot carry a message.
    """
    turns, job = _Turns(times), alone.job

    def simulated(chosen: list[tuple[tuple[object, ...], _Option]]) -> tuple[Iteration, _Sequence]:
        sequence = _Sequence(turns, chosen)
        iteration = simulate_iteration(job, sequence, runtime, stragglers, compute_scale=compute_scale)
        refuse_below_rate(iteration, times)
        return iteration, sequence

    def messages_of(iteration: Iteration) -> list[_Message]:
        spans = [span for span in iteration.spans if span.queue != COMPUTE]
        tasks = [job.tasks[span.tasks[0]] for span in spans]
        return [
            _Message(task.collective, job.groups[task.group], span.size_bytes, task.matrix_bytes)
            for task, span in zip(tasks, spans, strict=True)
        ]

    def keyed(messages: list[_Message], plans: list[int]) -> list[tuple[tuple[object, ...], _Option]]:
        return [
            (message.key, turns.options(message)[plan])
            for message, plan in zip(messages, plans, strict=True)
            if len(message.group.ranks) > 1
        ]

    listed = messages_of(alone)
    handed, sequence = simulated(keyed(listed, [0] * len(listed)))
    best = (handed, sequence, False)
    at = alone
    for _ in range(ROUNDS):
        messages = messages_of(at)
        chosen, proven = _chosen(turns, at, messages, runtime)
        planned, sequence = simulated(keyed(messages, chosen))
        if planned.total_s < best[0].total_s or not best[2]:
            best = min(
                best, (planned, sequence, proven and sequence.as_planned), key=lambda one: (one[0].total_s, not one[2])
            )
        if sequence.as_planned:
            break
        at = planned
    iteration, sequence, proven = best
    if iteration.total_s >= alone.total_s:
        return Together(alone, alone.total_s, handed.total_s, (), (), proven)
    for message, group, option in sequence.found:
        _, sent = times.choice_of(message.collective, group, message.size_bytes)
        warm = option.candidate.profile_under(assumptions_of(option.candidate.assumed, initial="warm"))
        times.carry(
            message.collective, group, message.size_bytes, option.candidate, message.total_s, warm.timeline(sent)
        )
    found = tuple(message for message, _, _ in sequence.found)
    return Together(iteration, alone.total_s, handed.total_s, found, times.used(), proven)


def _chosen(turns: _Turns, iteration: Iteration, messages: list[_Message], runtime: Runtime) -> tuple[list[int], bool]:
    """The fastest plans of messages in the order of an iteration, and whether no others are faster."""
    _, ready = ready_times(iteration, overlap=runtime.overlap)
    options = [turns.options(message) if len(message.group.ranks) > 1 else () for message in messages]
    spans = [span for span in iteration.spans if span.queue != COMPUTE]
    agreed = [runtime.latency_s if iteration.job.tasks[span.tasks[0]].fusible else 0.0 for span in spans]
    known: dict[tuple[object, ...], Turn] = {}

    def turn(i: int, q: int, p: int) -> Turn:
        if not options[i]:
            return Turn(0.0, agreed[i])
        before = None if q == START or not options[i - 1] else (messages[i - 1].group, options[i - 1][q])
        change = turns.after(before, messages[i].group, options[i][p])
        key = id(change), options[i][p].number, messages[i].key
        if key not in known:
            known[key] = turns.turn(change, messages[i])
        return Turn(max(0.0, known[key].setting_s - agreed[i]), known[key].rest_s + agreed[i])

    fastest = fastest_in_turn([max(1, len(one)) for one in options], turn, ready)
    return list(fastest.plans), fastest.proven and not runtime.cycle_s
