"""The least time of the segments of families of steps; a module of its own, since compilers are slow to load."""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

__all__ = ["first_fastest"]


@njit(cache=False)
def _held_until(moved, sums, links, alpha_s, delta_s, s_per_message, change_s, first_free, stands):  # type: ignore[no-untyped-def]
    """Time at which the last step ends on the best links for each segment, inf where nothing is ever set [s].

    Args:
        moved: what a node sends in each step, in messages, float64 (steps,).
        sums: time of adding in each step, float64 (steps,).
        links: of each step on each shift, 0 where they do not serve it, int32 (steps, shifts).
        alpha_s: of a step [s].
        delta_s: of each link that a circuit passes [s].
        s_per_message: of a link, for a whole message [s].
        change_s: of a change of links [s].
        first_free: whether the first links stand from the start.
        stands: place among the shifts of the one that stands from the start; -1: none.
    """
    running = np.full(links.shape[1], np.inf)
    until = 0.0
    for i in range(len(moved)):
        a_link = delta_s + s_per_message * moved[i]
        start = until + (0.0 if i == 0 and first_free else change_s)
        best = start + ((alpha_s + sums[i]) + a_link)
        for j in range(len(running)):
            if start < running[j]:
                running[j] = start
            if i == 0 and j == stands:
                running[j] = 0.0
            if links[i, j] == 0:
                running[j] = np.inf
            else:
                running[j] += (alpha_s + sums[i]) + a_link * links[i, j]
            best = min(best, running[j])
        until = best
    return until


@njit
def first_fastest(  # type: ignore[no-untyped-def]
    order, least, moved, sums, links, first_step, first_link,
    alpha_s, delta_s, s_per_message, change_s, first_free, stands, best, best_s,
):  # fmt: skip
    """The fastest of some families, up to the first whose bound is not below the best time.

    Args:
        order: numbers of the families to try, by their bounds, int64 (tried,).
        least: bound of each family [s].
        moved, sums: as of `_held_until`, of the steps of all families.
        links: the same, int32 (entries,).
        first_step, first_link: of each family, and the end, int64 (families + 1,).
        alpha_s, delta_s, s_per_message, change_s, first_free: as of `_held_until`.
        stands: the same of each family, int64 (families,).
        best: number of the best family so far.
        best_s: its time [s].
    Returns: number of the fastest family, of those before too, and its time [s].
    """
    for number in order:
        if least[number] >= best_s:
            break
        start, end = first_step[number], first_step[number + 1]
        of_family = links[first_link[number] : first_link[number + 1]]
        table = of_family.reshape((end - start, len(of_family) // max(end - start, 1)))
        seconds = _held_until(
            moved[start:end], sums[start:end], table,
            alpha_s, delta_s, s_per_message, change_s, first_free, stands[number],
        )  # fmt: skip
        if seconds < best_s:
            best, best_s = number, seconds
    return best, best_s
