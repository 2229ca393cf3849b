r"""Folded Clos networks, which fat trees, leaf-spine networks and the InfiniBand of a SuperPod are.

::

    level 2    [spine 0]   [spine 1]           a switch of level l is (subtree s, place p): every subtree of level l has
                 |    \   /    |               W_l = w_1 ... w_l switches on top, each of which reaches all of its hosts
    level 1    [leaf 0]    [leaf 1]            up-link u of (s, p) leads to (s // m_{l+1}, p + u W_l)
                / | \       / | \
    hosts      0  1  2     3  4  5             w_1 = 1: one leaf a host

A path goes up to the lowest level whose subtree contains both hosts and down again. A routing chooses the up-links u_2,
u_3, ... alone: the links down follow from the switch at the top of the path.

Source: Oehring et al. 1995 (extended generalised fat trees); Zahavi 2010 (D-mod-k).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from opticcl.fabrics._packet import NO_HOP, LinkGroup, hash_of
from opticcl.ir import IntArray, Part

__all__ = ["Clos", "Routing"]

Routing = Literal["dmodk", "smodk", "ecmp", "dstedge", "single"]


@dataclass(frozen=True, slots=True)
class Clos:
    """Shape of a folded Clos network and the ports of its hosts.

    Args:
        children: m_1, m_2, ...: lower neighbours of a switch of each level, at most; the last level may have fewer [count].
        parents: w_1, w_2, ...: upper neighbours of a host or switch below each level; w_1 = 1 [count].
        position: leaf times m_1 plus port of the leaf, of each host, int64 (hosts,).
        first_link: number of its first link.
    """

    children: tuple[int, ...]
    parents: tuple[int, ...]
    position: IntArray
    first_link: int = 0

    def switches(self) -> tuple[int, ...]:
        """Switches of each level, lowest first [count]."""
        leaves = self._subtrees(1)
        return tuple(
            -(-leaves // prod(self.children[1 : level + 1])) * prod(self.parents[: level + 1])
            for level in range(len(self.children))
        )

    def links(
        self, first_switch: int, rates: Sequence[float], latencies: Sequence[float], router_s: float
    ) -> list[LinkGroup]:
        """Links up and down, level by level.

        Args:
            first_switch: vertex of the first leaf; the switches of the other levels follow.
            rates: of the links below each level [bit/s].
            latencies: of the links below each level [s].
            router_s: of a switch [s].
        """
        kinds = []
        base, counts = first_switch, self.switches()
        for level, (width, rate, latency) in enumerate(zip(self.parents, rates, latencies, strict=True), 1):
            below = prod(self.parents[: level - 1])
            if level == 1:
                lower = np.arange(len(self.position))
                upper = first_switch + self._subtree(self.position, 1)
            else:
                number, u = np.divmod(np.arange(counts[level - 2] * width), width)
                subtree, place = np.divmod(number, below)
                lower = base + number
                base += counts[level - 2]
                upper = base + subtree // self.children[level - 1] * (below * width) + place + u * below
            kinds += [
                LinkGroup(lower, upper, rate, latency + router_s),
                LinkGroup(upper, lower, rate, latency + (router_s if level > 1 else 0.0)),
            ]
        return kinds

    def parts(self, rates: Sequence[float], host_end: str) -> tuple[Part, ...]:
        """Switches and both ends of every link.

        Args:
            rates: of the links below each level [bit/s].
            host_end: kind of the ends of a host's link; all others are transceivers.
        Reading: a partly filled top has only the switches whose ports its links need.
        """
        below = (len(self.position), *self.switches())
        parts = []
        for level, (down, up) in enumerate(zip(self.children, (*self.parents[1:], 0), strict=True)):
            links = below[level] * self.parents[level]
            parts.append(Part("transceiver" if level else host_end, 2 * links, rate_bits_per_s=rates[level]))
            switches = below[level + 1] if up else -(-links // down)
            parts.append(Part("electrical_switch", switches, down + up, rates[level]))
        return tuple(parts)

    def columns(self, src: IntArray, dst: IntArray, routing: Routing, seed: int) -> list[IntArray]:
        """Paths between hosts as `paths_of_columns` takes them: one array a hop, NO_HOP where a path has none.

        Args:
            src, dst: hosts, (n,).
            routing: of the up-links.
            seed: of ecmp.
        """
        src, dst = (np.asarray(host, np.int32) for host in (src, dst))  # links are numbered by 32 bits
        at = [self.position.astype(np.int32)[host] for host in (src, dst)]
        up: list[IntArray] = []
        down: list[IntArray] = []
        place: IntArray = np.zeros(len(src), np.int32)  # of the switch of the level below
        base = self.first_link
        counts = (len(self.position), *self.switches())
        climbs = src != dst
        for level in range(1, len(self.children) + 1):
            width, below = self.parents[level - 1], prod(self.parents[: level - 1])
            u = self._up_link(level, src, dst, at, routing, seed)
            lower = [src, dst] if level == 1 else [self._subtree(p, level - 1) * below + place for p in at]
            up.append(np.where(climbs, base + lower[0] * width + u, NO_HOP))
            base += counts[level - 1] * width
            down.append(np.where(climbs, base + lower[1] * width + u, NO_HOP))
            base += counts[level - 1] * width
            place = place + u * below
            climbs = climbs & (self._subtree(at[0], level) != self._subtree(at[1], level))
        return up + down[::-1]

    def images(self, hosts: IntArray, routing: Routing) -> IntArray | None:
        """Image of each link, from `first_link` on, if hosts are permuted, or None where paths do not follow.

        They follow if hosts of a subtree remain in one, and hosts with the same up-link at a level have the same one after.

        Args:
            hosts: image of each host, int64 (hosts,).
            routing: of the up-links.
        """
        if routing == "ecmp":
            return None
        images: list[IntArray] = []
        lower, place, base = np.asarray(hosts), np.zeros(1, np.int64), self.first_link
        at = [self.position, self.position[hosts]]
        for level, switches in enumerate(self.switches(), 1):
            width, below = self.parents[level - 1], prod(self.parents[: level - 1])
            keys = [self._up_link(level, one, one, [one, one], routing, 0) for one in at]
            up = _image_of_keys(keys[0], keys[1], width)
            before, after = (self._subtree(one, level) for one in at)
            subtree = _image_of_keys(before, after, switches // (below * width))
            if up is None or subtree is None:
                return None
            for _ in ("up", "down"):
                images.append(base + (lower[:, None] * width + up).ravel())
                base += len(lower) * width
            place = (up[:, None] * below + place).ravel()
            lower = (subtree[:, None] * len(place) + place).ravel()
        return np.concatenate(images)

    def num_links(self) -> int:
        """Directed links [count]."""
        counts = (len(self.position), *self.switches())
        return 2 * sum(counts[level] * self.parents[level] for level in range(len(self.children)))

    def _up_link(
        self, level: int, src: IntArray, dst: IntArray, at: Sequence[IntArray], routing: Routing, seed: int
    ) -> IntArray:
        width, below = self.parents[level - 1], prod(self.parents[: level - 1])
        sender, receiver = at
        if routing == "single" or width == 1:
            return np.zeros_like(sender)
        if routing == "ecmp":
            return (hash_of(src, dst, seed, level) % width).astype(np.int32)
        key = {"dmodk": receiver, "smodk": sender, "dstedge": self._subtree(receiver, 1)}[routing]
        return key // below % width

    def _subtree(self, position: IntArray, level: int) -> IntArray:
        return position // prod(self.children[:level])

    def _subtrees(self, level: int) -> int:
        return int(self._subtree(self.position, level).max()) + 1


def _image_of_keys(before: IntArray, after: IntArray, count: int) -> IntArray | None:
    """Image of each key, those that do not occur their own, int64 (count,); None if that is no permutation.

    Args:
        before, after: key of each host, and of its image, (hosts,).
        count: keys below this number.
    """
    image = np.arange(count)
    image[before] = after
    return image if (image[before] == after).all() and len(np.unique(image)) == count else None
