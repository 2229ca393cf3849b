"""What a control unit has to do: a plan as seen by each node, exchange by exchange.

A round of circuits is one exchange: the light stands while it lasts, and every node of the round sends to some nodes and
receives from some. A node that has no part in a round has an empty exchange there and passes it at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir import CircuitPlan, IntArray

__all__ = ["Exchange", "Numbering", "Script", "exchanges_of", "scripts"]

Numbering = Literal["step", "parity", "none"]


class Exchange(NamedTuple):
    """One round as one node sees it.

    Args:
        sends: nodes that a payload goes to.
        receives: nodes that a payload comes from.
    """

    sends: tuple[int, ...] = ()
    receives: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """All that a control unit is told before the job starts.

    Args:
        address: its node.
        exchanges: what it does, in order.
        numbering: what a message tells besides its 13 bits: the number of the exchange, its parity among the exchanges of
            these two nodes, or nothing. Only step is safe on every network; see `opticcl.control.protocol`.
        follows: whether something ran before, so that the first partners must tell that they are done with it.
        patience: timer ticks in a row without progress after which it gives up; 0: never.
        peers: every node that it ever meets, ascending.
        place: node -> its place in `peers`.
        meets: places of the peers of each exchange.
        incoming: places of the peers that send in each exchange, as bits.
        shared: exchanges with each peer, ascending.
    """

    address: int
    exchanges: tuple[Exchange, ...]
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
    """The script of each node of the plan, by rank; see `Script` for the arguments."""
    n, fabric = plan.schedule.collective.num_ranks, plan.fabric
    of_node: list[list[Exchange]] = [[] for _ in range(n)]
    for src, dst in exchanges_of(plan):
        for rank, exchange in enumerate(_one_round(src, dst, n)):
            of_node[rank].append(exchange)
    names = fabric.machine_nodes(np.arange(n)).tolist()
    if fabric.nodes is None:
        return tuple(Script(i, tuple(of_node[i]), numbering, follows, patience) for i in range(n))
    renamed = ([Exchange(*(tuple(names[k] for k in side) for side in e)) for e in mine] for mine in of_node)
    return tuple(Script(names[i], tuple(e), numbering, follows, patience) for i, e in enumerate(renamed))


def exchanges_of(plan: CircuitPlan) -> list[tuple[IntArray, IntArray]]:
    """Sending and receiving ranks of every round of every step, in order; a pair of nodes once a round."""
    n = plan.schedule.collective.num_ranks
    rounds: list[tuple[IntArray, IntArray]] = []
    for i in range(plan.schedule.num_steps):
        transfers = plan.schedule.step(i)
        for circuits in plan.rounds(i):
            rows = circuits.transfer
            pairs = np.unique(transfers.src[rows].astype(np.int64) * n + transfers.dst[rows])
            rounds.append((pairs // n, pairs % n))
    return rounds


def _one_round(src: IntArray, dst: IntArray, num_ranks: int) -> list[Exchange]:
    """What each rank does in a round."""
    sends, receives = _by_rank(src, dst, num_ranks), _by_rank(dst, src, num_ranks)
    return list(map(Exchange, sends, receives))


def _by_rank(key: IntArray, value: IntArray, num_ranks: int) -> list[tuple[int, ...]]:
    """The values of each rank, ascending."""
    values = tuple(value[np.lexsort((value, key))].tolist())
    ends = np.cumsum(np.bincount(key, minlength=num_ranks)).tolist()
    return [values[lo:hi] for lo, hi in zip([0, *ends], ends, strict=False)]
