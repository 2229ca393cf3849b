"""Direct exchanges on a RAMP in two steps, without a scheduler: racks are skewed against each other.

A node is (group g, rack j, place l), with x groups, J racks a group and L places a rack. If node (g, j, l) sends to
(g + j + a, j + b, l + c) for x labels (a, b, c) that differ in a alone, a pair of groups meets one rack for each label, since J
is at most x, and a wavelength meets one place. So every label has a plane of its own, and all x transceivers of all nodes
send at once. With blocks of p racks, p a divisor of J, two families of peers reach every node exactly once:

    A    all groups, the racks of the own block, the same place          x p peers    p rounds
    B    (g + l' - l, j + p b, l') for every place l' and block b        L J / p      (J / p) (L / x) rounds

Or with q classes of places, h the class of a place: C meets all nodes of the own class, D one of each other class, which has
all x transceivers for itself. Peers of D are (u(h') - u(h)) j groups apart, so that racks do not meet: u(h) = h, modulo x for
two classes, else in the field of order x. Data moves 2 - 1 / q times instead of twice.

    C    (g + j + a, j + b, place + c of the own class)                  N / q        N / q x rounds
    D    (g + (u(h') - u(h)) j, j, the same place of class h')           q            q - 1 rounds

Or what a node has for another is cut into parts: some go directly, in the same step as A, the others over A and B. A block that
fills its last slot badly then needs one slot less, and the rest moves twice, in larger pieces.

    reduce_scatter      A adding, B adding                     2 steps
    all_gather          B, A                                   2
    all_to_all          A, B, or C, D, or every node at once    2, or 1
                        A and every node at once, B            2
    all_reduce          everything over A, over B              2
                        A into x p chunks, B exchanged, A      3
                        A, B, B, A                             4
    broadcast           from the root to every node: plane t lights the wavelengths t, t + x, ... in turn     1

Nodes that B joins agree in g - l and in j modulo p, so their chunks are next to each other. A step of too many transfers to
list is defined by those of node 0 and the symmetries (`opticcl.ir.representatives`): on 65,536 nodes all at once are 4.3e9.

Source: RAMP sections 3.1 and 4.1 for the hardware. Direct exchanges in turn are known from Sirius (Ballani et al. 2020) and
RotorNet (Mellette et al. 2017), the exchange in two phases from Bruck et al. 1997; the skew by the rack is our own, as is D.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isqrt, prod
from typing import NamedTuple

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.ramp import Ramp
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.ir.limits import MOST_LISTED, limit
from opticcl.ir.phases import Space
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit
from opticcl.schedule._walk import Visit, walk
from opticcl.schedule.galois_field import Arithmetic, galois_field, integers_modulo, is_field_order

__all__ = ["SkewedExchange", "class_arithmetic", "exchange_of", "group_turns", "skewed_exchange"]

_STEPS = {
    "all_reduce": (4, 3, 2),
    "reduce_scatter": (2,),
    "all_gather": (2,),
    "all_to_all": (2, 1),
    "barrier": (2,),
    "broadcast": (1,),
}
"""Numbers of steps that each collective can take, the usual one first."""

_PHASES = {
    ("all_reduce", 4): "ABBA",
    ("all_reduce", 3): "ABA",
    ("all_reduce", 2): "AB",
    ("reduce_scatter", 2): "AB",
    ("all_gather", 2): "BA",
    ("all_to_all", 2): "AB",
    ("all_to_all", 1): "N",
    ("barrier", 2): "AB",
    ("broadcast", 1): "R",
}
"""Peers in every step: those of A or B, all nodes, or all nodes from the root."""

_SEARCHED_CLASSES = (2, 4, 8)
"""Classes of places that a search tries: on 65,536 nodes they gain up to 28, 12 and 5 %, more classes 3 % at most."""

MOST_CHUNKS = limit("skewed_exchange.MOST_CHUNKS")


class SkewedExchange(NamedTuple):
    """An exchange with all its parameters.

    Args:
        phases: which peers each step has: A, B, C, D, N (all nodes), M (those of A, and all nodes) or R (all nodes, from the
            root).
        block: racks of a block [count].
        classes: of places, for C and D [count]; 0: there are none.
        parts: of what a node has for another [count].
        direct: of these that N or M takes there at once [count].
    """

    phases: str
    block: int
    classes: int = 0
    parts: int = 1
    direct: int = 0

    def steps_on(self, fabric: Fabric) -> str:
        """Phases of the steps that there are: without those in which every node would meet itself alone.

        Args:
            fabric: a RAMP.
        """
        machine = fabric.machine_as(Ramp)
        met = {
            "A": machine.groups * self.block,
            "B": machine.racks // self.block * machine.wavelengths,
            "C": fabric.num_nodes // max(1, self.classes),
            "D": self.classes,
        }
        return "".join(phase for phase in self.phases if met.get(phase, fabric.num_nodes) > 1)


def exchange_of(
    collective: Request,
    fabric: Fabric,
    block: int | None = None,
    steps: int | None = None,
    classes: int | None = None,
    parts: int | None = None,
    direct: int | None = None,
) -> SkewedExchange:
    """What the parameters mean, those left out too.

    Args:
        collective: requested.
        fabric: a RAMP.
        block: racks of a block [count]; None: the divisor of all for which x p and L J / p differ least.
        steps: of the schedule [count]; None: the usual number.
        classes: of places [count]; None: none.
        parts, direct: of each block of an all_to_all [count]; None: it goes in one way.
    """
    phases = _PHASES[collective.name, _STEPS[collective.name][0] if steps is None else steps]
    if block is None:
        machine = fabric.machine_as(Ramp)
        ideal = max(1, isqrt(machine.wavelengths * machine.racks // machine.groups))
        block = min(_divisors(machine.racks), key=lambda p: (abs(p - ideal), p))
    if parts is not None and direct is not None:
        return SkewedExchange("MB", block, parts=parts, direct=direct)
    if classes is not None:
        return SkewedExchange("CD", block, classes)
    return SkewedExchange(phases, block, direct=int(phases == "N"))


def accepts(
    collective: Request,
    fabric: Fabric,
    block: int | None = None,
    steps: int | None = None,
    classes: int | None = None,
    parts: int | None = None,
    direct: int | None = None,
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        block: racks of a block [count].
        steps: of the schedule [count].
        classes: of places [count].
        parts: of each block of an all_to_all [count].
        direct: of these parts [count].
    """
    if collective.name not in _STEPS:
        return "it does " + ", ".join(_STEPS)
    known = _STEPS[collective.name]
    if steps is not None and steps not in known:
        return f"steps={steps}: {collective.name} takes {' or '.join(map(str, known))}"
    racks = fabric.machine_as(Ramp).racks
    if block is not None and (block < 1 or racks % block):
        return f"block={block} does not divide racks={racks}; try one of {', '.join(map(str, _divisors(racks)))}"
    if (parts, direct) != (None, None) and (reason := _no_parts(collective, fabric, steps, classes, parts, direct)):
        return reason
    if classes is not None and (reason := _no_classes(collective, fabric, block, steps, classes)):
        return reason
    rows = _rows(collective, fabric, exchange_of(collective, fabric, block, steps, classes, parts, direct))
    if rows <= MOST_TRANSFERS or _has_symmetric_light(fabric):
        return None
    return SizeLimit(f"{rows:,} transfers a step are more than {MOST_TRANSFERS:,}")


def _no_parts(
    collective: Request,
    fabric: Fabric,
    steps: int | None,
    classes: int | None,
    parts: int | None,
    direct: int | None,
) -> str | None:
    """Why blocks cannot be cut into parts, or None.

    Args:
        collective, fabric, steps, classes, parts, direct: as of `accepts`.
    """
    if parts is None or direct is None:
        return "parts and direct are given together, such as parts=8,direct=7"
    if collective.name != "all_to_all" or steps == 1 or classes is not None:
        return f"parts={parts}: for an all_to_all of two steps, without classes; omit parts and direct"
    most = MOST_CHUNKS // fabric.num_nodes
    if not 2 <= parts <= most:
        return f"parts={parts} is not 2 to {most}, {MOST_CHUNKS:,} chunks among {fabric.num_nodes:,} nodes"
    if not 1 <= direct < parts:
        return f"direct={direct} is not 1 to {parts - 1}, since parts={parts}"
    return None


def _no_classes(collective: Request, fabric: Fabric, block: int | None, steps: int | None, classes: int) -> str | None:
    """Why places cannot be divided into classes, or None.

    Args:
        collective, fabric, block, steps, classes: as of `accepts`.
    """
    if collective.name != "all_to_all" or steps == 1 or block is not None:
        return f"classes={classes}: for an all_to_all of two steps, without block; omit it"
    known = _classes_that_fit(fabric)
    if classes not in known:
        fit = f"try one of {', '.join(map(str, known))}" if known else "this machine has none"
        return f"classes={classes}: they divide the places, and more than 2 need a field of as many groups; {fit}"
    return None


def _classes_that_fit(fabric: Fabric) -> tuple[int, ...]:
    """Numbers of classes of places whose differences, times racks, differ."""
    machine = fabric.machine_as(Ramp)
    most = machine.groups if is_field_order(machine.groups) else 2
    return tuple(q for q in _divisors(machine.wavelengths) if 2 <= q <= max(2, most))


def _has_symmetric_light(fabric: Fabric) -> bool:
    """Whether the circuits of some nodes are those of all: each label has a plane of its own, and all parts work."""
    machine = fabric.machine_as(Ramp)
    shared = machine.signals_meet or machine.transceivers_per_group > 1
    return machine.subnet == "broadcast" and not shared and not fabric.conditions


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int]]:
    """Every number of steps with every block, and some classes, unless a step has too many transfers to list, or to define by
    symmetries."""
    if collective.name not in _STEPS or collective.name == "barrier":
        return []
    if collective.name == "broadcast":
        return [{}]
    racks = fabric.machine_as(Ramp).racks
    tried = [
        {"block": block, "steps": steps}
        for steps in _STEPS[collective.name]
        for block in (_divisors(racks) if steps > 1 else (1,))
    ]
    if collective.name == "all_to_all":
        tried += [{"classes": q} for q in _classes_that_fit(fabric) if q in _SEARCHED_CLASSES]
    if _has_symmetric_light(fabric):
        return tried
    return [
        given for given in tried if _rows(collective, fabric, exchange_of(collective, fabric, **given)) <= MOST_LISTED
    ]


@register_algorithm("skewed_exchange", accepts, variants, systems=("ramp",))
def skewed_exchange(
    collective: Request,
    fabric: Fabric,
    *,
    block: int | None = None,
    steps: int | None = None,
    classes: int | None = None,
    parts: int | None = None,
    direct: int | None = None,
) -> Schedule:
    """All-to-all on a RAMP with all transceivers in two steps, or in up to four where blocks are cut.

    Args:
        collective: all_reduce, reduce_scatter, all_gather, all_to_all, barrier or broadcast.
        fabric: a RAMP.
        block: racks p of a block, a divisor of those of a group [count]; None: about as many peers in both families.
        steps: of the schedule: 2, 3 or 4 for all_reduce, 1 or 2 for all_to_all [count]; None: 4 for all_reduce, 1 for
            broadcast, else 2.
        classes: of places q, for an all_to_all over C and D [count]; None: none, it is over A and B.
        parts: of what a node has for another, in an all_to_all of which some go directly [count]; None: one.
        direct: of these parts that go directly, beside A [count]; None: none.
    """
    exchange = exchange_of(collective, fabric, block, steps, classes, parts, direct)
    n, name = fabric.num_nodes, collective.name
    if name == "broadcast":
        others = np.delete(np.arange(n), collective.root)
        first = Transfers.of(np.full(n - 1, collective.root), others, 0, 1, Op.COPY)
        return Schedule("skewed_exchange", collective.on(n, 1), int(n > 1), lambda i: first)
    space, first_digits = space_of_classes(fabric, classes) if classes else space_of_blocks(fabric, exchange.block)
    digits = range(len(space.radices))
    second_digits = [d for d in digits if d not in first_digits]
    over = {"A": second_digits, "B": first_digits, "C": second_digits, "D": first_digits, "N": digits}
    visits = {phase: _visit(space, some) for phase, some in over.items()}
    whole = name == "barrier" or (name == "all_reduce" and exchange.phases == "AB")
    depth = 0 if whole else len(visits["A"]) if exchange.phases == "ABA" else None
    orders: list[list[list[Visit]]]
    if exchange.phases == "MB":
        orders, units = [[visits["N"]], [visits["A"], visits["B"]]], [exchange.direct, exchange.parts - exchange.direct]
    else:
        halves = {"BA": "AB", "ABA": "AB", "ABBA": "AB"}.get(exchange.phases, exchange.phases)
        orders, units = [[visits[phase] for phase in halves]], [1]
    made, cut = walk(collective, space, orders, depth=depth, units=units)
    owner = made.owners if name not in ("all_reduce", "barrier") else None
    return Schedule.of("skewed_exchange", collective.on(n, made.num_chunks, owner=owner), made, cut=cut)


def _visit(space: Space, digits: Iterable[int]) -> list[Visit]:
    """A visit to several digits at once; none where they have one value alone."""
    some = tuple(d for d in digits if space.radices[d] > 1)
    return [Visit(some, prod(space.radices[d] for d in some))] if some else []


def space_of_blocks(fabric: Fabric, block: int) -> tuple[Space, tuple[int, ...]]:
    """Digits of the nodes, and those that B varies: the block of racks and the place; A varies g - l and the rack in its block.

    Args:
        fabric: a RAMP.
        block: racks of a block [count].
    """
    machine = fabric.machine_as(Ramp)
    x, racks, places = machine.groups, machine.racks, machine.wavelengths
    key, rack, blocks, place = np.ogrid[:x, :block, : racks // block, :places]
    order = ((key + place) % x * racks + blocks * block + rack) * places + place
    return Space((x, block, racks // block, places), order.ravel().astype(np.int32)), (2, 3)


def space_of_classes(fabric: Fabric, classes: int) -> tuple[Space, tuple[int, ...]]:
    """Digits of the nodes, and those that D varies: the class h of the place; C varies g - u(h) j, the rack and the place of
    the class.

    Args:
        fabric: a RAMP.
        classes: of places [count].
    """
    machine = fabric.machine_as(Ramp)
    x, racks, places = machine.groups, machine.racks, machine.wavelengths
    field, many = class_arithmetic(fabric, classes), places // classes
    keys = (
        (2,) * (x.bit_length() - 1) if classes != 2 and x.bit_count() == 1 else (x,)
    )  # where numbers are added bit by bit
    key, rack, place, which = (axis.ravel() for axis in np.indices((x, racks, many, classes)))
    group = field.add(key, field.mul(which % x, rack)).astype(np.int64)
    order = (group * racks + rack) * places + which * many + place
    return Space((*keys, racks, many, classes), order.astype(np.int32)), (len(keys) + 2,)


def class_arithmetic(fabric: Fabric, classes: int) -> Arithmetic:
    """Arithmetic of groups in which differences of classes, times racks, differ: modulo x for two, else the field of order x.

    Args:
        fabric: a RAMP.
        classes: of places [count].
    """
    x = fabric.machine_as(Ramp).groups
    return integers_modulo(x) if classes == 2 else galois_field(x)


def group_turns(groups: int, arithmetic: Arithmetic) -> Sequence[IntArray]:
    """Additions that reach every group from group 0 by products of their powers in one way, int64 (groups,) each.

    Args:
        groups: x [count].
        arithmetic: of groups.
    """
    every = np.arange(groups)
    one = np.array([1 % groups])
    cyclic = groups <= 2 or int(arithmetic.add(one, one)[0]) != 0
    steps = [1] * (groups > 1) if cyclic else [1 << bit for bit in range(groups.bit_length() - 1)]
    return [arithmetic.add(every, np.full(groups, step)).astype(np.int64) for step in steps]


def _divisors(number: int) -> tuple[int, ...]:
    return tuple(p for p in range(1, number + 1) if number % p == 0)


def _rows(collective: Request, fabric: Fabric, exchange: SkewedExchange) -> int:
    """Most transfers of a step, or circuits of D, those of a node to itself counted [count].

    Args:
        collective: requested.
        fabric: a RAMP.
        exchange: with its parameters.
    """
    n, groups = fabric.num_nodes, fabric.machine_as(Ramp).groups
    of_block = groups * exchange.block
    of_class = n // max(1, exchange.classes)
    peers = {"A": of_block, "B": n // of_block, "C": of_class, "D": exchange.classes * groups}
    most = max(peers.get(phase, n) for phase in exchange.phases)
    return most * (1 if collective.name == "broadcast" else n)
