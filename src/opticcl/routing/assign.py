"""First-fit assignment of colours to requests that share any resources; edge colouring for those that share two ends only.

First fit gives each request the first colours that are free on all its resources.

A request occupies several resources and needs `width` adjacent colours (wavelengths, or ports), the same ones on each of
its resources. A resource accepts each colour once. Requests without free colours go to the next round.
"""

from __future__ import annotations

import numpy as np

from opticcl.ir import IntArray
from opticcl.kernels import njit
from opticcl.routing.colouring import edge_colouring

__all__ = ["edge_colouring", "first_fit", "width_that_fits"]


def width_that_fits(resources: IntArray, num_resources: int, num_colours: int) -> int:
    """The largest number of colours per request if the load of the resources were the only limit, at least 1.

    Args:
        resources: resource indices of all requests end to end.
        num_resources: resources [count].
        num_colours: colours of each [count].
    """
    load = int(np.bincount(resources, minlength=num_resources).max(initial=1))
    return max(1, num_colours // load)


def first_fit(
    resources: IntArray, offsets: IntArray, num_resources: int, num_colours: int, width: int = 1
) -> tuple[IntArray, IntArray]:
    """First colour and round of each request, in the order given.

    Args:
        resources: resource indices of all requests end to end, int64.
        offsets: request i occupies resources[offsets[i]:offsets[i + 1]], int64 (n + 1,).
        num_resources: resources [count].
        num_colours: colours of each [count].
        width: adjacent colours that each request takes, 1 to num_colours.
    Returns: (first colour, round), int32 (n,) each.
    """
    n = len(offsets) - 1
    colour, round_of = np.empty(n, np.int32), np.empty(n, np.int32)
    waiting, number = np.arange(n), 0
    while len(waiting):
        busy = np.zeros((num_resources + 1, -(-num_colours // 64)), np.uint64)  # the last: of the path at hand
        placed = np.zeros(len(waiting), np.bool_)
        _fit(waiting, resources, offsets, busy, num_colours, width, colour, placed)
        round_of[waiting[placed]] = number
        waiting, number = waiting[~placed], number + 1
    return colour, round_of


@njit
def _fit(waiting, resources, offsets, busy, num_colours, width, colour, placed):  # type: ignore[no-untyped-def]
    """Each colour once on each resource: colours are bits, so a path is read once and not once for each colour.

    `placed` is all false and becomes true where a request has a colour; the last row of `busy` is of no resource.
    """
    words = busy.shape[1]
    blocked = busy[-1]
    one = np.uint64(1)
    all_of_one = ~np.uint64(0) >> np.uint64(64 - min(num_colours, 64))
    for w in range(len(waiting)):
        request = waiting[w]
        lo, hi = offsets[request], offsets[request + 1]
        for word in range(words):
            blocked[word] = 0
        for r in range(lo, hi):
            for word in range(words):
                blocked[word] |= busy[resources[r], word]
            if words == 1 and blocked[0] == all_of_one:  # the rest of a long path is irrelevant
                break
        free = 0  # adjacent free colours up to c
        for c in range(num_colours):
            free = 0 if (blocked[c >> 6] >> np.uint64(c & 63)) & one else free + 1
            if free == width:
                colour[request] = c - width + 1
                placed[w] = True
                break
        if placed[w]:
            for word in range(words):
                blocked[word] = 0
            for c in range(colour[request], colour[request] + width):
                blocked[c >> 6] |= one << np.uint64(c & 63)
            for r in range(lo, hi):
                for word in range(words):
                    busy[resources[r], word] |= blocked[word]
