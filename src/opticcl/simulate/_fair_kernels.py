"""Kernels of fair shares: the max-min fair rates of flows that share links, from nothing or after a change.

An active flow has a slot, and each of its hops a node: node `(slot << shift) + h` is its h-th hop. The nodes on each link are
kept side by side, in `nodes[link_at[link]:][:num_on[link]]`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from opticcl.ir import IntArray
from opticcl.kernels import kept_with, njit
from opticcl.simulate import _heap_kernels
from opticcl.simulate._heap_kernels import at, drop_least, lower_least, push

__all__ = [
    "ActiveFlows",
    "Shares",
    "active_flows",
    "add_flow",
    "fair_rates",
    "fill",
    "reach",
    "remove_flow",
    "shares_of",
]

SAME_SHARE = 1e-11  # relative; bottlenecks closer than that are one level
FEW_LINKS, MOST_PARTS = 16, 12  # links that are queued at once, and parts in which more of them are [count]
PART = 1 / 8  # of the way from the least share to the mean one: up to there links are queued


class ActiveFlows(NamedTuple):
    """Flows in flight and the links that they cross.

    Args:
        capacity: of each link [byte/s].
        load: weight of the flows on each link, int64 (links,).
        link_at, num_on: where the nodes of each link begin, int64 (links + 1,), and their number, int32 (links,).
        nodes: nodes, link by link, int32.
        num_hops: of each slot, int64 (slots,).
        rate: of each slot, float64 (slots,) [byte/s].
        node_link, node_weight, place_on: link of each node, how often the rate counts on it, and its place on the link, int32.
        shift: nodes of a slot, as a power of two.
        weighted: whether some weight is not one.
    """

    capacity: np.ndarray
    load: IntArray
    link_at: IntArray
    num_on: IntArray
    nodes: IntArray
    num_hops: IntArray
    rate: np.ndarray
    node_link: IntArray
    node_weight: IntArray
    place_on: IntArray
    shift: int
    weighted: bool


class Shares(NamedTuple):
    """What is known of links while rates rise, and lists of what a change can reach.

    Args:
        left, open: capacity and weight of the flows that still rise on each link, before those of `frozen` stopped.
        frozen: weight of the flows that stopped at the last level, int64 (links,).
        touched: links on which some stopped at that level, int64 (links + 1,).
        value: share of each link that waits, float64 (links,) [byte/s].
        heap, num_queued, share: links by the share that they have for each flow, int64 (links,) and (1,), and that share by
            place in the heap, float64 (links,) [byte/s].
        links, slots: that can be reached.
        seen_link, seen_slot: change that reached them last.
        changing, keeping: slots on a link whose rates may change, int32, and what each of the others takes of it, float64
            [byte/s].
    """

    left: np.ndarray
    open: IntArray
    frozen: IntArray
    touched: IntArray
    value: np.ndarray
    heap: IntArray
    num_queued: IntArray
    share: np.ndarray
    links: IntArray
    slots: IntArray
    seen_link: IntArray
    seen_slot: IntArray
    changing: IntArray
    keeping: np.ndarray


@njit(cache=False)
def active_flows(path_at, path_n, hops, weight, capacity, num_slots):  # type: ignore[no-untyped-def]
    """No flows in flight yet, with room for all that there will be.

    Args:
        path_at, path_n, hops: hops of flow f are hops[path_at[f]:path_at[f] + path_n[f]].
        weight: of each hop.
        capacity: of each link [byte/s].
        num_slots: flows in flight at most [count].
    """
    shift, num_links = 0, len(capacity)
    while len(path_n) and 1 << shift < path_n.max():
        shift += 1
    most = num_slots << shift
    link_at = np.zeros(num_links + 1, np.int64)
    for f in range(len(path_at)):
        for h in range(path_at[f], path_at[f] + path_n[f]):
            link_at[hops[h] + 1] += 1
    for link in range(num_links):
        link_at[link + 1] = link_at[link] + min(link_at[link + 1], most)
    return ActiveFlows(
        capacity,
        np.zeros(num_links, np.int64),
        link_at,
        np.zeros(num_links, np.int32),
        np.empty(link_at[-1], np.int32),
        np.zeros(num_slots, np.int64),
        np.zeros(num_slots),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        shift,
        bool((weight != 1).any()),
    )


@njit(cache=False)
def shares_of(num_links, num_slots, most_on_link):  # type: ignore[no-untyped-def]
    """Space for the shares of links and slots.

    Args:
        num_links, num_slots: of all [count].
        most_on_link: nodes of a link [count].
    """
    return Shares(
        np.zeros(num_links),
        np.zeros(num_links, np.int64),
        np.zeros(num_links, np.int64),
        np.zeros(num_links + 1, np.int64),
        np.zeros(num_links),
        np.zeros(num_links, np.int64),
        np.zeros(1, np.int64),
        np.zeros(num_links),
        np.zeros(num_links, np.int64),
        np.zeros(num_slots, np.int64),
        np.full(num_links, -1, np.int32),
        np.full(num_slots, -1, np.int32),
        np.zeros(most_on_link + 1, np.int32),
        np.zeros(most_on_link + 1),
    )


@njit(cache=False, inline="always")
def add_flow(active, slot, path_at, path_n, hops, weight):  # type: ignore[no-untyped-def]
    """Put a flow on its links, without a rate.

    Args:
        active: changed.
        slot: of the flow.
        path_at, path_n: where its hops begin, and their number.
        hops, weight: as of `active_flows`.
    """
    active.num_hops[slot], active.rate[slot] = path_n, 0.0
    for h in range(path_n):
        node, link = (slot << active.shift) + h, hops[path_at + h]
        active.node_link[node], active.node_weight[node] = link, weight[path_at + h]
        active.load[link] += active.node_weight[node]
        active.place_on[node], active.nodes[active.link_at[link] + active.num_on[link]] = active.num_on[link], node
        active.num_on[link] += 1


@njit(cache=False, inline="always")
def remove_flow(active, slot):  # type: ignore[no-untyped-def]
    """Take a flow off its links."""
    for node in range(slot << active.shift, (slot << active.shift) + active.num_hops[slot]):
        link = active.node_link[node]
        active.load[link] -= active.node_weight[node]
        active.num_on[link] -= 1
        last = active.nodes[active.link_at[link] + active.num_on[link]]
        active.place_on[last], active.nodes[active.link_at[link] + active.place_on[node]] = active.place_on[node], last


@njit(cache=False, _nrt=False)
def _queue_least(shares, waiting, level, all_of_them):  # type: ignore[no-untyped-def]
    """Queue the links that wait with the least shares; returns how many still wait, and the largest share that is queued.

    Shares only grow, so those of the links that wait are evaluated again once all with less are done. By then no flow rises on
    many of them.

    Args:
        shares: changed; those that wait are the first of `links`.
        waiting: links [count].
        level: at which flows stopped last [byte/s].
        all_of_them: whether none is to wait any longer.
    """
    links, value = shares.links, shares.value
    kept, least, total = 0, np.inf, 0.0
    for i in range(waiting):
        link = at(links[at(i)])
        still = shares.open[link] - shares.frozen[link]
        if still:
            share = (shares.left[link] - level * shares.frozen[link]) / still
            links[at(kept)], value[at(kept)] = link, share
            least, total, kept = min(least, share), total + share, kept + 1
    up_to = np.inf if all_of_them or kept <= FEW_LINKS else least + PART * (total / kept - least)
    waiting = 0
    for i in range(kept):
        if value[at(i)] <= up_to:
            push(shares.heap, shares.share, shares.num_queued, links[at(i)], value[at(i)])
        else:
            links[at(waiting)] = links[at(i)]
            waiting += 1
    return waiting, up_to


@njit(cache=False, _nrt=False)
def fill(active, shares, num_links, num_slots, rate):  # type: ignore[no-untyped-def]
    """Progressive filling of one component: `rate` of its slots. All rates rise together; where a link is full, its flows stop.

    The caller gives `left` and `open` of the links without the flows whose rates stay. One subtraction a link and level,
    however many flows stop there, keeps rounding small.

    Args:
        active: flows.
        shares: the links of the component, on each of which some of its flows rise, and its slots; changed.
        num_links, num_slots: of the component [count].
        rate: changed.
    """
    left, open_, frozen, touched = shares.left, shares.open, shares.frozen, shares.touched
    heap, share, size = shares.heap, shares.share, shares.num_queued
    size[0] = 0
    for i in range(num_links):
        frozen[at(shares.links[at(i)])] = 0
    for i in range(num_slots):
        rate[at(shares.slots[at(i)])] = -1.0
    rising, level, num_touched = num_slots, 0.0, 0
    waiting, up_to, parts = num_links, 0.0, 0
    while rising:
        if waiting and (size[0] == 0 or share[0] > up_to):
            parts += 1
            waiting, up_to = _queue_least(shares, waiting, level, parts == MOST_PARTS)
            continue
        link = at(heap[0])
        still = open_[link] - frozen[link]
        if still == 0:
            drop_least(heap, share, size)
            continue
        current = (left[link] - level * frozen[link]) / still
        if current > share[0] * (1 + SAME_SHARE):  # others stopped meanwhile and left their part
            lower_least(heap, share, size, current)
            continue
        if current > level * (1 + SAME_SHARE):
            for i in range(num_touched):
                other = at(touched[at(i)])
                left[other] -= level * frozen[other]
                open_[other] -= frozen[other]
                frozen[other] = 0
            level, num_touched = current, 0
        for i in range(active.link_at[link], active.link_at[link] + active.num_on[link]):
            slot = at(active.nodes[at(i)] >> active.shift)
            if rate[slot] < 0:
                rate[slot] = level
                rising -= 1
                first = np.int64(slot) << active.shift
                for node in range(first, first + active.num_hops[slot]):
                    other = at(active.node_link[at(node)])
                    touched[at(num_touched)] = other
                    num_touched += int(frozen[other] == 0)  # without a branch, which cannot be predicted
                    frozen[other] += active.node_weight[at(node)] if active.weighted else 1


@njit(cache=False, inline="always")
def _split_by_rate(active, shares, link, slowest, epoch):  # type: ignore[no-untyped-def]
    """List the slots on a link that are new and whose rates may change; returns their number.

    Also returns what those that keep their rates take of the link, and weigh.

    Args:
        active, slowest, epoch: as of `reach`.
        shares: changed.
        link: number.
    """
    changing, keeping = shares.changing, shares.keeping
    num_changing = num_keeping = weight = 0
    for i in range(active.link_at[link], active.link_at[link] + active.num_on[link]):
        node = active.nodes[at(i)]
        slot = at(node >> active.shift)
        rate = active.rate[slot]
        keeps = int((rate > 0) & (rate < slowest))  # without a branch, which cannot be predicted
        found = int(shares.seen_slot[slot] != epoch)
        changing[at(num_changing)], keeping[at(num_keeping)] = slot, rate
        if active.weighted:
            keeping[at(num_keeping)] *= active.node_weight[at(node)]
            weight += keeps * active.node_weight[at(node)]
        num_changing += found & (1 - keeps)
        num_keeping += keeps
    taken, lost = 0.0, 0.0  # lost: to rounding (Knuth)
    for k in range(num_keeping):
        part = keeping[at(k)]
        total = taken + part
        added = total - taken
        lost += (taken - (total - added)) + (part - added)
        taken = total
    return num_changing, taken + lost, weight if active.weighted else num_keeping


@njit(cache=False, inline="always")
def reach(active, shares, start, epoch, slowest):  # type: ignore[no-untyped-def]
    """List all links and slots that a change on a link can reach; returns the number of each.

    Flows slower than `slowest` keep their rates: they are not followed, and `left` and `open` are without them.

    Args:
        active: flows.
        shares: changed.
        start: link that changes.
        epoch: number of the change.
        slowest: lowest rate that may change [byte/s].
    """
    links, reached, visited, num_slots = shares.links, 1, 0, 0
    links[0], shares.seen_link[start] = start, epoch
    while visited < reached:
        here = at(links[at(visited)])
        visited += 1
        changing, taken, weight = _split_by_rate(active, shares, here, slowest, epoch)
        shares.left[here], shares.open[here] = active.capacity[here] - taken, active.load[here] - weight
        for k in range(changing):
            slot = at(shares.changing[at(k)])
            if shares.seen_slot[slot] != epoch:
                shares.seen_slot[slot] = epoch
                shares.slots[at(num_slots)] = slot
                num_slots += 1
                first = np.int64(slot) << active.shift
                for node in range(first, first + active.num_hops[slot]):
                    link = at(active.node_link[at(node)])
                    if shares.seen_link[link] != epoch:
                        shares.seen_link[link] = epoch
                        links[at(reached)] = link
                        reached += 1
    return reached, num_slots


@kept_with(_heap_kernels)
@njit
def fair_rates(path_at, path_n, hops, weight, capacity):  # type: ignore[no-untyped-def]
    """Max-min fair rates of flows that are all active, float64 (flows,); arguments as of `active_flows`.

    Args:
        path_at, path_n, hops: paths.
        weight: of each hop.
        capacity: of each link [byte/s].
    """
    n, num_links = len(path_at), len(capacity)
    active, shares = active_flows(path_at, path_n, hops, weight, capacity, n), shares_of(num_links, n, 0)
    for flow in range(n):
        add_flow(active, flow, path_at[flow], path_n[flow], hops, weight)
        shares.slots[flow] = flow
    shares.left[:], shares.open[:] = capacity, active.load
    used = np.flatnonzero(active.load)
    shares.links[: len(used)] = used
    fill(active, shares, len(used), n, active.rate)
    return active.rate
