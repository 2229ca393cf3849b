"""Script of a control unit: a plan as seen by each node, exchange by exchange.

A round of circuits is one exchange: its circuits stand while it lasts, and every node of the round sends to some nodes and
receives from some. A node without circuits in a round has an empty exchange and skips it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir import CircuitPlan, IntArray

__all__ = ["ControlExchange", "Numbering", "Script", "exchanges_of", "scripts"]

Numbering = Literal["step", "parity", "none"]


class ControlExchange(NamedTuple):
    """One round as one node sees it.

    Args:
        sends: destination nodes of its payloads.
        receives: source nodes of payloads.
    """

    sends: tuple[int, ...] = ()
    receives: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """Program of a control unit, fixed before the job starts.

    Args:
        address: node of the unit.
        exchanges: in order.
        numbering: sequence number of a message besides its 13 bits: step (number of the exchange), parity (of the exchange
            among those of the two nodes), or none. Only step is safe on every network; see
            `opticcl.operations.oddl_control.protocol`.
        follows: whether another collective ran before, so that the first partners must report its completion.
        patience: timer ticks without progress after which the unit gives up; 0: never [count].
        peers: all partners, ascending.
        place: node -> its index in `peers`.
        meets: places of the peers of each exchange.
        incoming: bit mask of the places of the peers that send in each exchange.
        shared: exchanges with each peer, ascending.
    """

    address: int
    exchanges: tuple[ControlExchange, ...]
    numbering: Numbering = "step"
    follows: bool = False
    patience: int = 0
    peers: tuple[int, ...] = field(init=False)
    place: dict[int, int] = field(init=False, compare=False, repr=False)
    meets: tuple[tuple[int, ...], ...] = field(init=False, repr=False)
    incoming: tuple[int, ...] = field(init=False, repr=False)
    shared: tuple[tuple[int, ...], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        met = [sorted({*e.sends, *e.receives}) for e in self.exchanges]
        peers = tuple(sorted(set().union(*met)))
        if self.address in peers:
            raise ParameterError(f"control: node {self.address} is its own partner; leave that exchange out")
        place = {node: i for i, node in enumerate(peers)}
        shared: list[list[int]] = [[] for _ in peers]
        for number, nodes in enumerate(met):
            for node in nodes:
                shared[place[node]].append(number)
        derived = {
            "peers": peers,
            "place": place,
            "meets": tuple(tuple(place[node] for node in nodes) for nodes in met),
            "incoming": tuple(sum(1 << place[node] for node in e.receives) for e in self.exchanges),
            "shared": tuple(map(tuple, shared)),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)


def scripts(
    plan: CircuitPlan, *, numbering: Numbering = "step", follows: bool = False, patience: int = 0
) -> tuple[Script, ...]:
    """Script of each node of a plan, by rank.

    Args:
        plan: of any collective on ODDL.
        numbering, follows, patience: as in `Script`.
    """
    n, fabric = plan.schedule.collective.num_ranks, plan.fabric
    of_node: list[list[ControlExchange]] = [[] for _ in range(n)]
    for src, dst in exchanges_of(plan):
        for rank, exchange in enumerate(_one_round(src, dst, n)):
            of_node[rank].append(exchange)
    names = fabric.machine_nodes(np.arange(n)).tolist()
    if fabric.node_of_rank is None:
        return tuple(Script(i, tuple(of_node[i]), numbering, follows, patience) for i in range(n))
    renamed = ([ControlExchange(*(tuple(names[k] for k in side) for side in e)) for e in mine] for mine in of_node)
    return tuple(Script(names[i], tuple(e), numbering, follows, patience) for i, e in enumerate(renamed))


def exchanges_of(plan: CircuitPlan) -> list[tuple[IntArray, IntArray]]:
    """Sending and receiving ranks of every round of every step, in order; each pair of nodes once per round."""
    n = plan.schedule.collective.num_ranks
    rounds: list[tuple[IntArray, IntArray]] = []
    for i in range(plan.schedule.num_steps):
        transfers = plan.schedule.step(i)
        for circuits in (c.carrying() for c in plan.rounds(i)):
            rows = circuits.transfer
            pairs = np.unique(transfers.src[rows].astype(np.int64) * n + transfers.dst[rows])
            rounds.append((pairs // n, pairs % n))
    return rounds


def _one_round(src: IntArray, dst: IntArray, num_ranks: int) -> list[ControlExchange]:
    """Exchange of each rank in a round."""
    sends, receives = _by_rank(src, dst, num_ranks), _by_rank(dst, src, num_ranks)
    return list(map(ControlExchange, sends, receives))


def _by_rank(key: IntArray, value: IntArray, num_ranks: int) -> list[tuple[int, ...]]:
    """The values of each rank, ascending."""
    values = tuple(value[np.lexsort((value, key))].tolist())
    ends = np.cumsum(np.bincount(key, minlength=num_ranks)).tolist()
    return [values[lo:hi] for lo, hi in zip([0, *ends], ends, strict=False)]
