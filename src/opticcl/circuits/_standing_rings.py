"""Light of schedules for a ring whose circuits stand: a place among the wavelengths for every pair, known in closed form.

    circulant_rings   stride s, node p, k wavelengths: p mod s of the s k of its level; on a direct level the lap of an exchange
                      of b nodes, repeated round the ring, and lanes of circuits that meet end to end for the opposite nodes
    hub_chains        the wavelengths of its level: chains of a level do not meet; so for spaced_hubs
    rails             as these: k wavelengths for the short rings, k floor(m / 2) on each level for each rail, k for its ring
    standing_tree     the number of members between, among the k floor(m / 2) of its level; the exchange as in WRHT

Levels share the wavelengths, or one after the other has all of them. A circuit without a transfer in a step is idle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Circuits, Fabric, IntArray, Schedule, Transfers, concatenate_circuits
from opticcl.schedule.circulant_rings import Levels
from opticcl.schedule.hub_chains import chains
from opticcl.schedule.rails import rails_of
from opticcl.schedule.spaced_hubs import hub_links
from opticcl.schedule.standing_tree import BLOCKS, groups_of, shared_among, tree_of
from opticcl.schedule.wavelength_exchange import CLOCKWISE, COUNTER_CLOCKWISE, exchange_wavelengths, lap_of

__all__ = ["CLOSED_FORMS", "Family", "all_of"]


class Family(NamedTuple):
    """Circuits of one width.

    Args:
        src, dst: nodes, int64 (circuits,).
        direction: clockwise or counter-clockwise, int64 (circuits,).
        colour: first wavelength, int64 (circuits,).
        width: wavelengths of each [count].
    """

    src: IntArray
    dst: IntArray
    direction: IntArray
    colour: IntArray
    width: int

    def on(self, fabric: Fabric, first: IntArray) -> Family:
        """The same between the nodes of every group of a job, whose ranks the ends are.

        Args:
            fabric: with the job.
            first: first wavelength of each group, int (groups,).
        """
        many = len(first)
        rank = np.arange(many)[:, None] * (fabric.num_nodes // many)
        src, dst = (fabric.machine_nodes((rank + end).ravel()) for end in (self.src, self.dst))
        colour = (first[:, None] + self.colour).ravel()
        return Family(src, dst, np.tile(self.direction, many), colour, self.width)


def circulant(fabric: Fabric, schedule: Schedule) -> list[list[Family]]:
    """Sets of circuits that stand at once: all levels, or one level.

    Args:
        fabric: a TeraRack.
        schedule: of `circulant_rings`.
    """
    n, asked = fabric.num_nodes, schedule.parameters
    levels, node = Levels(asked["radices"] or (n,), asked["direct"]), np.arange(n)
    moves, stands = schedule.collective.name == "all_to_all", asked["stands"]
    widths = levels.widths(fabric.lasers_per_port, stands, moves)
    sets: list[list[Family]] = []
    base = 0
    for number, (stride, width) in enumerate(zip(levels.strides, widths, strict=True)):
        if number < levels.direct:
            families = _direct(levels, number, width, base)
        else:
            families = [
                Family(node, (node + way * stride) % n, np.full(n, direction), base + node % stride * width, width)
                for way, direction in ((1, CLOCKWISE), (-1, COUNTER_CLOCKWISE))
            ]
        if stands and sets:
            sets[0] += families
        else:
            sets.append(families)
        base += levels.wavelengths[number] * width if stands else 0
    return sets


def _direct(levels: Levels, number: int, width: int, base: int) -> list[Family]:
    """Circuits of a direct level: every node to all others up to half of its ring away.

    Args:
        levels: of the rings.
        number: of the level.
        width: wavelengths of a circuit [count].
        base: first wavelength of the level.
    """
    n, b, stride = levels.num_nodes, levels.radices[number], levels.strides[number]
    node, member, families, laps = np.arange(n), np.arange(b), list[Family](), levels.laps(number)
    place = node // stride % b
    for way, going in ((1, CLOCKWISE), (-1, COUNTER_CLOCKWISE)):
        nearer = way * np.arange(1, (b + 1) // 2)[:, None]
        _, lap = lap_of(b, member, (member + nearer) % b)
        nth = np.unique(lap, return_inverse=True)[1].reshape(lap.shape)  # without the laps of opposite nodes
        for away, lap_of_member in zip(nearer, nth, strict=True):
            colour = base + (node % stride * laps + lap_of_member[place]) * width
            families.append(Family(node, (node + away * stride) % n, np.full(n, going), colour, width))
    if lanes := levels.lanes(number):
        lane, far = node % lanes, b // 2 * stride
        opposite = np.where(lane % 2, node - far, node + far) % n
        sides = np.where(lane % 2, COUNTER_CLOCKWISE, CLOCKWISE)
        families.append(Family(node, opposite, sides, base + (stride * laps + lane // 2) * width, width))
    return families


def chained(fabric: Fabric, schedule: Schedule) -> list[list[Family]]:
    """One set: the links of all chains.

    Args:
        fabric: a TeraRack.
        schedule: of `hub_chains` or `spaced_hubs`.
    """
    n, asked, root = fabric.num_nodes, schedule.parameters, schedule.collective.root
    if schedule.name == "spaced_hubs":
        levels = asked["levels"]
        child, parent, _, _, level, direction = hub_links(n, levels, root, asked["halves"])
    else:
        radices = asked["radices"] or (n,)
        levels = len(radices)
        child, parent, tree, _, level = chains(radices, root, asked["halves"])
        ahead = (child - parent) % n
        direction = tree if asked["halves"] else (2 * ahead > n).astype(np.int64)
    width, rest = divmod(fabric.lasers_per_port, levels)
    if schedule.collective.name == "reduce":
        child, parent, direction = parent, child, 1 - direction
    families, base = [], 0
    for number in range(levels):
        wide, mine = width + (number < rest), level == number
        families.append(Family(parent[mine], child[mine], direction[mine], np.full(int(mine.sum()), base), wide))
        base += wide
    return [families]


def treed(fabric: Fabric, schedule: Schedule) -> list[list[Family]]:
    """One set: the circuits of all levels, both ways, and of the exchange.

    Args:
        fabric: a TeraRack.
        schedule: of `standing_tree`.
    """
    asked = schedule.collective
    cut, rooted = schedule.parameters["cut"] or asked.name in BLOCKS, asked.name in ("broadcast", "reduce")
    wanted = Request(asked.name, asked.root)
    tree = tree_of(fabric.num_nodes, groups_of(fabric, schedule.parameters["groups"], wanted))
    widths, base, families = shared_among(tree, fabric.lasers_per_port, cut), 0, list[Family]()
    for level in range(tree.levels):
        src, dst = tree.collect(level)
        between = np.abs(np.searchsorted(tree.members[level], src) - np.searchsorted(tree.members[level], dst)) - 1
        colour = base + between * widths[level]
        ahead = np.where(src < dst, CLOCKWISE, COUNTER_CLOCKWISE)
        child, parent = tree.turned((src, dst), asked.root) if rooted else (src, dst)
        if asked.name != "broadcast":
            families.append(Family(child, parent, ahead, colour, widths[level]))
        if asked.name != "reduce":
            families.append(Family(parent, child, 1 - ahead, colour, widths[level]))
        base += tree.loads[level] * widths[level]
    if tree.top > 1:
        sender, receiver = tree.exchange()
        direction, wavelength = lap_of(tree.top, sender, receiver)
        assert wavelength.max() < exchange_wavelengths(tree.top)
        ends = tree.members[-1][sender], tree.members[-1][receiver]
        families.append(Family(*ends, direction, base + wavelength * widths[-1], widths[-1]))
    return [families]


def railed(fabric: Fabric, schedule: Schedule) -> list[list[Family]]:
    """One set: short rings, and of each rail the levels of its tree and the ring of its middle nodes.

    Args:
        fabric: a TeraRack.
        schedule: of `rails`.
    """
    n, asked = fabric.num_nodes, schedule.parameters
    made = rails_of(n, fabric.lasers_per_port, asked["radix"], asked["groups"])
    assert not isinstance(made, str)
    tree, rail, node, families = made.tree, np.arange(made.radix)[:, None], np.arange(n), list[Family]()
    ways = ((1, CLOCKWISE), (-1, COUNTER_CLOCKWISE))
    for way, direction in ways:
        families.append(Family(node, (node + way) % n, np.full(n, direction), np.zeros(n, np.int64), made.widths[0]))
    base = made.widths[0]
    for level in range(tree.levels):
        src, dst = tree.collect(level)
        width, load = made.widths[1 + level], tree.loads[level]
        between = np.abs(np.searchsorted(tree.members[level], src) - np.searchsorted(tree.members[level], dst)) - 1
        colour = (base + (rail * load + between) * width).ravel()
        ahead = np.broadcast_to(np.where(src < dst, CLOCKWISE, COUNTER_CLOCKWISE), (made.radix, len(src))).ravel()
        child, parent = (src * made.radix + rail).ravel(), (dst * made.radix + rail).ravel()
        families += [Family(child, parent, ahead, colour, width), Family(parent, child, 1 - ahead, colour, width)]
        base += made.radix * load * width
    middle = tree.members[-1] * made.radix + rail
    colour = np.broadcast_to(base + rail * made.widths[-1], middle.shape).ravel()
    for way, direction in ways:
        ends = middle.ravel(), np.roll(middle, -way, axis=1).ravel()
        families.append(Family(*ends, np.full(middle.size, direction), colour, made.widths[-1]))
    return [families]


CLOSED_FORMS: dict[str, Callable[[Fabric, Schedule], list[list[Family]]]] = {
    "circulant_rings": circulant,
    "hub_chains": chained,
    "rails": railed,
    "spaced_hubs": chained,
    "standing_tree": treed,
}
"""Sets of circuits that stand at once, of the schedules of which they are known."""


def all_of(families: list[Family], make: Callable[[Transfers, Family], Circuits]) -> Circuits:
    """Circuits of several families.

    Args:
        families: of one set.
        make: pairs as transfers, and their family -> circuits.
    """
    return concatenate_circuits(make(Transfers.of(one.src, one.dst, 0, 1, 0), one) for one in families)
