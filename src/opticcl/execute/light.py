"""Ranks whose data move only as light: what a photodiode receives is what its rank gets.

Every transmitter sends the bytes of its signal, light is followed through the elements of the machine as they are set, and
the receiver takes the bytes of the signal that arrived: zeros from darkness, the exclusive-or of all that met. Rounds of a step
send what was there before it. Share k of n of a transfer of L elements is elements floor(L k / n) to floor(L (k + 1) / n).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.execute.lockstep import execute_by_ranks
from opticcl.execute.loop import Exchange
from opticcl.ir import CircuitPlan, IntArray, ProgressCallback, Transfers, Violation, no_progress, numbered
from opticcl.optics.emulator import COLLIDED
from opticcl.optics.plan_light import PlanLight
from opticcl.optics.rounds import RoundLight

__all__ = ["LightUse", "execute_by_light"]


@dataclass(slots=True)
class LightUse:
    """Light that carried the data of an execution.

    Args:
        rounds: of circuits [count].
        signals: that photodiodes had to receive [count].
        violations: what was wrong with the light, those of each round.
    """

    rounds: int = 0
    signals: int = 0
    violations: list[Violation] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether every photodiode received its signal alone, and nothing else received data."""
        return not self.violations


def execute_by_light(
    plan: CircuitPlan,
    arrays: Sequence[npt.ArrayLike | None] | np.ndarray,
    *,
    changes: Sequence[str] = (),
    progress: ProgressCallback = no_progress,
) -> tuple[list[np.ndarray | None], LightUse]:
    """Run a verified plan, its data as light.

    Args:
        plan: the plan.
        arrays: one a rank, as for `execute`.
        changes: devices that are set in another way than the plan needs, such as "tx_gate:17=0".
        progress: called after every step.
    Returns: one array for each rank, None where the collective gives it nothing; and the light that was used.
    Raises: UnsupportedError, ParameterError: no light, too many elements, an unknown device, or arrays that do not fit.
    """
    light, use = PlanLight(plan, changes), LightUse()

    def carry(exchanges: list[Exchange]) -> None:
        step = exchanges[0].step
        _carry(light, use, step, plan.schedule.step(step), exchanges)
        progress("run the steps by light", step + 1, plan.schedule.num_steps)

    return execute_by_ranks(plan.schedule, arrays, carry), use


def _carry(light: PlanLight, use: LightUse, step: int, transfers: Transfers, exchanges: list[Exchange]) -> None:
    """Carry the messages of a step.

    Args:
        use: of the execution; updated.
    """
    messages = {(rank, peer): rows for rank, exchange in enumerate(exchanges) for peer, rows in exchange.sends}
    if not messages:
        return
    pairs = sorted(messages)
    sent = np.concatenate([messages[pair].ravel() for pair in pairs])
    received = np.zeros_like(sent)
    width = messages[pairs[0]].shape[1]  # of a chunk
    begin, size = _places(transfers, pairs, [messages[pair].size for pair in pairs], width, step)
    for one in light.rounds(step, transfers):
        use.rounds += 1
        use.signals += len(one.light.lanes)
        use.violations += one.violations
        _receive(one.light, one.circuits.transfer, begin, size, sent, received)
    ends = dict(zip(pairs, np.cumsum([messages[pair].size for pair in pairs]).tolist(), strict=True))
    for rank, exchange in enumerate(exchanges):
        for peer, rows in exchange.recvs:
            end = ends[peer, rank]
            rows[...] = received[end - rows.size : end].reshape(rows.shape)


def _places(
    transfers: Transfers, pairs: list[tuple[int, int]], sizes: list[int], width: int, step: int
) -> tuple[IntArray, IntArray]:
    """First element and number of elements of each transfer among all messages of a step, int64 (n,) each.

    Args:
        pairs: (sender, receiver) of each message, in order.
        width: elements of a chunk [count].
    Raises: ParameterError: messages that the transfers do not make up.
    """
    size = transfers.size_chunks() * width
    order = np.lexsort((transfers.dst, transfers.src))  # stable: transfers of one pair stay in their order
    key = np.stack([transfers.src[order], transfers.dst[order]], axis=1)
    made = np.zeros(len(pairs), np.int64)
    which = {pair: i for i, pair in enumerate(pairs)}
    unique, first = np.unique(key, axis=0, return_index=True)
    totals = np.add.reduceat(size[order], first) if len(first) else np.zeros(0, np.int64)
    for pair, total in zip(map(tuple, unique.tolist()), totals.tolist(), strict=True):
        if pair in which:
            made[which[pair]] = total
    if len(unique) != len(pairs) or made.tolist() != sizes:
        raise ParameterError(f"execute: the messages of step {step} are not its transfers; verify the plan first")
    begin = np.empty(len(order), np.int64)
    begin[order] = np.cumsum(size[order]) - size[order]
    return begin, size


def _receive(
    light: RoundLight, carried: IntArray, begin: IntArray, size: IntArray, sent: np.ndarray, received: np.ndarray
) -> None:
    """Write what the photodiodes of a round receive.

    Args:
        begin, size: of each transfer among the messages [elements].
        received: the same as they arrive; changed.
    """
    lanes = light.lanes
    transfer = carried[lanes.circuit].astype(np.int64)
    length, shares = size[transfer], np.maximum(lanes.shares, 1)
    first = begin[transfer] + length * lanes.share // shares
    last = begin[transfer] + length * lanes.behind // shares
    signals, source = np.unique(lanes.signal, return_index=True)
    got = light.report.received
    at = np.minimum(np.searchsorted(signals, got), len(signals) - 1)
    known = (transfer >= 0) & (signals[at] == got) & (transfer[source[at]] >= 0)
    rows = np.flatnonzero(known)
    sender = source[at[rows]]
    count = np.minimum(last[rows] - first[rows], last[sender] - first[sender])
    row, nth = numbered(count)
    received[first[rows][row] + nth] = sent[first[sender][row] + nth]
    for lane in np.flatnonzero((transfer >= 0) & (got == COLLIDED)).tolist():
        met = light.report.rows.signal[light.report.rows.photodiode == lanes.photodiode[lane]]
        ways = np.isin(signals, met) & (transfer[source] >= 0)
        bits = np.zeros((last[lane] - first[lane]) * sent.itemsize, np.uint8)
        for one in np.repeat(source[ways], [int((met == signal).sum()) for signal in signals[ways]]).tolist():
            piece = sent[first[one] : last[one]].view(np.uint8)[: len(bits)]
            bits[: len(piece)] ^= piece
        received[first[lane] : last[lane]] = bits.view(sent.dtype)
