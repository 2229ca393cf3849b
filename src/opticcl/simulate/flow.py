"""Flow level: packets share links fairly, circuits have their light to themselves; every start and end at its exact
    time.

    packets    a flow waits for its path's latency, then gets its max-min fair share of every link on the way; shares
               change when a flow starts or ends, and only then
    circuits   a transfer has wavelengths x rate from the moment its circuits stand

Two modes say when a transfer may start:

    barrier         when the whole step before has ended, as in the closed form
    asynchronous    when the chunks that it sends have arrived (and been added up) and the ports are free: on packet
                    fabrics a rank has one step's sends under way at a time; on circuits everything that light occupies
                    is handed on in the order of the plan, and a circuit that stands already is not set again

Asynchronously, what arrives early has room to wait: a receiver never keeps a sender waiting.

Shares are those of SimGrid's exact model (no correction factors, no cross traffic, no window) as long as latencies are
equal: SimGrid weighs a flow by one over its latency, here all weigh the same. Steps of a class are played once with a
barrier; in a large step flows that are alike (same bytes and latency, on links that are alike all the way) are found by
colour refinement and played as one, which is exact because max-min fairness cannot tell them apart.

Source: Bertsekas and Gallager 1992, section 6.5.2 (max-min by progressive filling); Velho et al. 2013 (SimGrid's flow
    model).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from hashlib import blake2b
from typing import Any, Literal

import numpy as np

from opticcl.errors import BoundError, ParameterError
from opticcl.ir import CircuitPlan, Circuits, IntArray, Timeline, Transfers
from opticcl.simulate import _flow_kernels as kernels
from opticcl.simulate._alike import kind_of_flow
from opticcl.simulate._alike import quotient as _quotient
from opticcl.simulate.assumptions import Assumptions
from opticcl.simulate.barriers import RoundEnd, play_with_barriers, round_of_light
from opticcl.simulate.dependencies import Ended, Flows, Waits, play_asynchronously
from opticcl.simulate.limits import Limit, Progress
from opticcl.simulate.links import Links as _Links
from opticcl.simulate.links import shared_amounts
from opticcl.simulate.parts import latencies as _latencies
from opticcl.simulate.traffic import Played, Recorder

__all__ = ["MAX_EVENTS", "Mode", "flow", "max_min_rates", "play_flow"]

Mode = Literal["barrier", "asynchronous"]

MAX_EVENTS = 20_000_000
LOOK_S = 0.2  # between two looks at the keyboard
QUOTIENT_FLOWS = 4096  # steps with fewer flows are played one by one
_ROUNDING = 1e-9  # relative; sums of many steps may end that far below the bound
_NO_EDGES = np.zeros(0, np.int64)


def flow(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    *,
    mode: Mode = "barrier",
    max_events: int = MAX_EVENTS,
    progress: Progress = lambda what, done, total: None,
) -> Timeline:
    """Time of a plan for a message of `size_bytes`, at flow level.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: what the time rests on.
        mode: barrier or asynchronous; see the module.
        max_events: starts, ends and changes of rate that may be played [count].
        progress: told (what, done, total) after every class of steps.
    Returns: rows are the classes of steps. Asynchronously a row tells what its steps put on the critical path, the
        chain of transfers that ends last; the rows add up to the whole.
    Raises: ParameterError: unknown mode, or more events than allowed; UnsupportedError: asynchronously, a transfer on
        several routes; BoundError: the time is below the lower bound.
    """
    return play_flow(plan, size_bytes, assumed, mode=mode, max_events=max_events, progress=progress).timeline


def play_flow(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    *,
    mode: Mode = "barrier",
    max_events: int = MAX_EVENTS,
    progress: Progress = lambda what, done, total: None,
    record: bool = False,
    engine: str = "flow",
) -> Played:
    """The same with the traffic of the links, if it is to be recorded; see `flow`.

    Args:
        record: whether to record what links carry and when transfers run.
        engine: name for messages.
    """
    check_mode(engine, mode)
    shares = plan.fabric.is_packet_switched and size_bytes > 0
    limit = Limit(engine, max_events, least_a_transfer=3 if shares else 2)  # a start, an end and a rate
    recorder = Recorder(plan.fabric) if record else None
    if not plan.fabric.is_packet_switched:
        if mode == "barrier":
            timeline = play_with_barriers(plan, size_bytes, assumed, round_of_light(plan, record), progress, recorder)
        else:
            play = _Asynchronous(np.zeros(0), limit, progress, None).play
            timeline = play_asynchronously(plan, size_bytes, assumed, play, None, limit, progress, recorder)
    else:
        links = _Links(plan.fabric)
        if mode == "barrier":
            rounds = _Rounds(links, limit, progress, recorder)
            timeline = play_with_barriers(plan, size_bytes, assumed, rounds.play, progress, recorder)
        else:
            play = _Asynchronous(links.capacity, limit, progress, recorder).play
            timeline = play_asynchronously(plan, size_bytes, assumed, play, links.paths, limit, progress, recorder)
    refuse_below_bound(plan, timeline, f"by the {engine} engine")
    return Played(timeline, recorder.traffic() if recorder else None)


def check_mode(engine: str, mode: str) -> None:
    """Refuse a mode that does not exist.

    Raises: ParameterError.
    """
    if mode not in ("barrier", "asynchronous"):
        raise ParameterError(f"{engine}: mode={mode!r} is neither barrier nor asynchronous")


def refuse_below_bound(plan: CircuitPlan, timeline: Timeline, how: str) -> None:
    """A time below the lower bound is an error of the engine.

    Raises: BoundError.
    """
    if timeline.total_s < timeline.lower_bound_s * (1 - _ROUNDING):
        raise BoundError(
            f"{plan.schedule.name} on {plan.fabric.name}: {timeline.total_s:.6g} s {how} is below the lower "
            f"bound of {timeline.lower_bound_s:.6g} s; please report this with the command that you ran"
        )


def max_min_rates(hops: IntArray, hop_offsets: IntArray, capacity: np.ndarray) -> np.ndarray:
    """Max-min fair rates of flows that share links, float64 (flows,), in the unit of `capacity`.

    Args:
        hops, hop_offsets: links of flow i are hops[hop_offsets[i]:hop_offsets[i + 1]], one or more.
        capacity: of each link, float64 (links,).

    >>> max_min_rates(np.array([0, 0, 1, 1]), np.array([0, 1, 3, 4]), np.array([2.0, 10.0]))
    array([1., 1., 9.])
    """
    at, n = hop_offsets[:-1].astype(np.int64), np.diff(hop_offsets).astype(np.int64)
    rates: np.ndarray = kernels.fair_rates(at, n, hops.astype(np.int64), np.ones(len(hops), np.int64), capacity)
    return rates


# --- a barrier after every step ---------------------------------------------------------------------------------------


class _Rounds:
    """Plays rounds of packets, each distinct one once."""

    def __init__(self, links: _Links, limit: Limit, progress: Progress, recorder: Recorder | None) -> None:
        self._links, self._limit, self._progress, self._recorder = links, limit, progress, recorder
        self._known: dict[bytes, RoundEnd] = {}

    def play(self, transfers: Transfers, circuits: Circuits, chunk_bytes: float, repeats: int) -> RoundEnd:
        """How a round ends."""
        if not len(circuits):
            return RoundEnd(0.0, 0.0)
        capacity, record = self._links.capacity, self._recorder is not None
        amount = shared_amounts(transfers.size_chunks() * chunk_bytes, circuits)
        hops, offsets = self._links.paths(circuits)
        delay = _latencies(self._links.fabric, circuits)
        if self._recorder is not None:
            self._recorder.carry(hops, offsets, amount, repeats)
        if np.bincount(hops).max() == 1:  # nobody shares
            seconds = amount / np.minimum.reduceat(capacity[hops], offsets[:-1])
            last = int((delay + seconds).argmax())
            return RoundEnd(float(delay[last]), float(seconds[last]), delay + seconds if record else None)
        seen = blake2b(hops.tobytes())
        for column in (offsets, amount, delay):
            seen.update(column.tobytes())
        key = seen.digest()
        if key not in self._known:
            self._known[key] = _play_at_once(
                hops, offsets, amount, delay, capacity, self._limit, self._progress, record
            )
        return self._known[key]


def _play_at_once(
    hops: IntArray,
    offsets: IntArray,
    amount: np.ndarray,
    delay: np.ndarray,
    capacity: np.ndarray,
    limit: Limit,
    progress: Progress,
    record: bool,
) -> RoundEnd:
    """Play flows that are all released at once."""
    weight = np.ones(len(hops), np.int64)
    kind = None
    if len(amount) >= QUOTIENT_FLOWS:
        quotient = _quotient(hops, offsets, amount, delay, capacity)
        if quotient is not None:
            kind = kind_of_flow(hops, offsets, amount, delay, capacity) if record else None
            hops, offsets, weight, amount, delay, capacity = quotient
    n = len(amount)
    limit.expect(2 * n + int((amount > 0).sum()))
    finished, _, _ = _play(
        limit, progress, amount, delay, np.zeros(n), offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int32),
        hops.astype(np.int32), weight, capacity, np.array([0, n]), np.zeros(1, np.int64), np.array([0, 1]),
        np.zeros(n, np.int64), np.full(1, -1), np.zeros(n + 1, np.int64), _NO_EDGES, np.zeros(n + 1, np.int64),
        _NO_EDGES, n,
    )  # fmt: skip
    last = int(finished.argmax())
    end_s = (finished if kind is None else finished[kind]) if record else None
    return RoundEnd(float(delay[last]), float(finished[last] - delay[last]), end_s)


def _play(limit: Limit, progress: Progress, *columns: Any) -> Ended:
    """Play flows in another thread, and meanwhile tell how many have ended; what stops this thread stops the other."""
    told = np.zeros(2, np.int64)
    kernel: Any = kernels.play
    with ThreadPoolExecutor(1) as other:
        playing = other.submit(lambda: kernel(*columns, limit.left, told))
        try:
            while not wait([playing], LOOK_S).done:
                progress("play flows", int(told[0]), len(columns[0]))
        finally:
            told[1] = True
    _, events, finished, released, caused_by = playing.result()
    limit.spend(events)
    return Ended(finished, released, caused_by)


# --- as soon as possible ----------------------------------------------------------------------------------------------


class _Asynchronous:
    """Plays all flows of a plan, each as soon as it can start."""

    def __init__(self, capacity: np.ndarray, limit: Limit, progress: Progress, recorder: Recorder | None) -> None:
        self._capacity, self._limit, self._progress, self._recorder = capacity, limit, progress, recorder

    def play(self, flows: Flows, waits: Waits) -> Ended:
        """When they are released and finished."""
        delay = flows["setting"] + flows["latency"] + flows["control"]
        ended = _play(
            self._limit, self._progress, flows["amount"], delay, flows["compute"], flows["path_at"], flows["path_n"],
            flows.hops, np.ones(len(flows.hops), np.int64), self._capacity, waits.group_at, waits.waits, waits.block_at,
            waits.block_of, waits.next_block, waits.feeds_at, waits.feeds, waits.frees_at, waits.frees,
            waits.most_at_once,
        )  # fmt: skip
        if self._recorder is not None:
            self._recorder.carry(*flows.paths(), flows["amount"])
        return ended
