"""Messages one after the other, each by one of several plans: the plans with which the last computation ends first.

Message i, by plan p behind plan q, takes light from the circuits that q left. What has to be set for it may be set from the end
e of message i - 1 on, while the message is not ready yet:

    e_i = max(ready_i, e_(i-1) + setting(q, p)) + rest(q, p)

    ready_i = max(a_i, e_j + a_ij for some j < i)        a: computation before it, and between message j and it

A label is a choice of plans of the first messages, with the ends that later messages depend on. Of two labels with the same
last plan, one of which has no end later than the other, the other is dropped: all times only grow with each end. So the result
is the best of all sequences of plans.

Source: label-correcting search in max-plus algebra (Baccelli et al. 1992); the recurrence over plans is that of PCCL (arXiv
2509.15450) and Harvest (arXiv 2602.09188) over steps, with messages in place of steps and computation between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from opticcl.training.iteration import COMPUTE, Iteration

__all__ = ["START", "Chosen", "Ready", "Turn", "fastest_in_turn", "ready_times"]

START = -1
"""In place of the plan before the first message."""

MOST_LABELS = 32
"""Kept for each plan of a message; the earliest ends, if there are more [count]."""


class Turn(NamedTuple):
    """What a message takes behind another.

    Args:
        setting_s: of its first circuits, which may pass while it is not ready yet [s].
        rest_s: once it is ready and they stand [s].
    """

    setting_s: float
    rest_s: float

    def end_s(self, ready_s: float, free_s: float) -> float:
        """When it has arrived [s].

        Args:
            ready_s: when its data is ready [s].
            free_s: when the message before it had arrived [s].
        """
        return max(ready_s, free_s + self.setting_s) + self.rest_s


class Ready(NamedTuple):
    """When something is ready.

    Args:
        from_s: no sooner than that [s].
        after: earlier messages, and the time behind the end of each [s].
    """

    from_s: float
    after: tuple[tuple[int, float], ...] = ()


class Chosen(NamedTuple):
    """Plans of all messages.

    Args:
        plans: of each message, numbers of its options.
        total_s: when everything has ended [s].
        proven: whether no other sequence ends sooner.
    """

    plans: tuple[int, ...]
    total_s: float
    proven: bool


class _Label(NamedTuple):
    """Ends of the messages that later ones depend on, the last message's first, and the plans so far."""

    ends: tuple[float, ...]
    plans: tuple[object, int] | None


def fastest_in_turn(
    options: Sequence[int],
    turn: Callable[[int, int, int], Turn],
    ready: Sequence[Ready],
    *,
    most_labels: int = MOST_LABELS,
) -> Chosen:
    """The plans with which everything ends first.

    Args:
        options: plans of each message [count].
        turn: (message, plan of the message before or `START`, its plan) -> its duration.
        ready: when each message is ready; one more than messages, the last of which is when everything has ended.
        most_labels: kept for each plan of a message.
    """
    last_use = list(range(len(options)))
    for i, when in enumerate(ready):
        for j, _ in when.after:
            last_use[j] = i
    states: dict[int, list[_Label]] = {START: [_Label((0.0,), None)]}
    live: list[int] = [-1]
    proven = True
    for i, count in enumerate(options):
        following = [i, *(j for j in live if j >= 0 and last_use[j] > i)]
        kept = [live.index(j) for j in following[1:]]
        made: dict[int, list[_Label]] = {p: [] for p in range(count)}
        for q, labels in states.items():
            turns = [turn(i, q, p) for p in range(count)]
            for label in labels:
                ready_s = _time_of(ready[i], live, label.ends)
                for p, one in enumerate(turns):
                    end_s = one.end_s(ready_s, label.ends[0])
                    made[p].append(_Label((end_s, *(label.ends[at] for at in kept)), (label.plans, p)))
        for p, labels in made.items():
            best = _undominated(labels)
            proven = proven and len(best) <= most_labels
            made[p] = best[:most_labels]
        states, live = made, following
    total_s, plans = min(
        ((_time_of(ready[-1], live, label.ends), label.plans) for labels in states.values() for label in labels),
        key=lambda one: one[0],
    )
    backwards: list[int] = []
    while plans is not None:
        plans, p = plans  # type: ignore[assignment]
        backwards.append(p)
    return Chosen(tuple(reversed(backwards)), total_s, proven)


def _time_of(ready: Ready, live: list[int], ends: tuple[float, ...]) -> float:
    return max([ready.from_s, *(ends[live.index(j)] + seconds for j, seconds in ready.after)])


def _undominated(labels: list[_Label]) -> list[_Label]:
    """Labels none of which has all its ends at or behind those of another, earliest first."""
    kept: list[_Label] = []
    for label in sorted(labels, key=lambda one: one.ends):
        if not any(all(a <= b for a, b in zip(one.ends, label.ends, strict=True)) for one in kept):
            kept.append(label)
    return kept


def ready_times(iteration: Iteration, *, overlap: bool) -> tuple[tuple[int, ...], tuple[Ready, ...]]:
    """When the messages of an iteration are ready and when it ends, if its tasks keep their order.

    Args:
        iteration: of one device whose messages follow each other.
        overlap: whether messages and computation overlap.
    Returns: rows of the messages among the spans, and `Ready` of each and of the end.
    """
    rows: list[int] = []
    ready: list[Ready] = []
    row_of_task = {task: row for row, span in enumerate(iteration.spans) for task in span.tasks}
    forms: list[dict[int, float]] = []  # end of each span: message -> time behind its end; START: since the start
    computed: dict[int, float] = {START: 0.0}  # end of the computation so far
    for span in iteration.spans:
        before = {row_of_task[j] for i in span.tasks for j in iteration.job.tasks[i].after}
        computes = span.queue == COMPUTE
        parts = [forms[row] for row in before if row < len(forms)]
        if computes or not overlap:
            parts.append(computed)
        form = _latest(parts, ready)
        if computes:
            form = {j: seconds + span.end_s - span.start_s for j, seconds in form.items()}
        else:
            form.setdefault(START, 0.0)
            ready.append(_ready(form))
            form = {len(rows): 0.0}
            rows.append(len(forms))
        if computes or not overlap:
            computed = form
        forms.append(form)
    last = [computed, *([{len(rows) - 1: 0.0}] if rows else [])]
    ready.append(_ready(_latest(last, ready)))
    return tuple(rows), tuple(ready)


def _ready(form: dict[int, float]) -> Ready:
    return Ready(form.get(START, 0.0), tuple(sorted((j, seconds) for j, seconds in form.items() if j != START)))


def _latest(forms: Sequence[dict[int, float]], ready: Sequence[Ready]) -> dict[int, float]:
    """The latest of several times, without messages that a later one makes superfluous."""
    latest: dict[int, float] = {}
    for form in forms:
        for j, seconds in form.items():
            latest[j] = max(seconds, latest.get(j, seconds))
    kept = dict(latest)
    for j in sorted(latest):
        for later in latest:
            if later > j >= 0 and latest[j] <= latest[later] + max(0.0, dict(ready[later].after).get(j, 0.0)):
                del kept[j]
                break
    return kept
