"""Algorithm 1 for pieces that spread, at a fixed number of rounds: is there a schedule?

    x[r, s, d, p]    rank s sends piece p to rank d in round r; s holds or wants p, d wants it
    has[r, d, p]     d has p before round r:  has[r + 1, d, p] = has[r, d, p] + sum_s x[r, s, d, p],  has[R, d, p] = 1
    y[r, s, d, i]    circuits from s to d on route i:  sum_i y = sum_p x

    x[r, s, d, p] <= has[r, s, p];   sum over d and p <= lasers of s;   sum over s and p <= photodiodes of d
    sum of y over the routes that contain e <= lasers x waveguides of e

Wavelengths are left out: where waveguides are plenty they always exist (edge colouring), otherwise `light` looks for them.
So the model is a relaxation: no solution means no schedule on these routes, without ranks that pass on what they do not want.

Source: LUMORPH algorithm 1.
Reading: as printed, (3) lets one rank in all receive a piece, (4) and (5) force every laser to be used, and (2) forgets
those who hold a piece from the start. Fixed rounds instead of R_r make (7) to (9) and the objective needless.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.synthesis.draft import Draft, Send
from opticcl.synthesis.solver import Clock, run
from opticcl.synthesis.wafer import Wafer

__all__ = ["MOST_VARIABLES", "num_variables", "on_routes", "spread_in"]

MOST_VARIABLES = 400_000  # beyond, building the model takes longer than looking for schedules otherwise

Flags = npt.NDArray[np.bool_]


def num_variables(before: Flags, after: Flags, rounds: int, direct: bool) -> int:
    """Sends among which the solver chooses [count]."""
    senders = before.sum(axis=1) if direct else (before | after).sum(axis=1) - 1
    return int(rounds * ((after & ~before).sum(axis=1) * senders).sum())


def spread_in(
    rounds: int,
    wafer: Wafer,
    before: Flags,
    after: Flags,
    clock: Clock,
    *,
    effort: float,
    seed: int,
    direct: bool = False,
    one_route: bool = False,
    hint: Draft | None = None,
) -> tuple[bool | None, Draft]:
    """A draft of that many rounds, with paths and without wavelengths.

    Args:
        rounds: [count].
        before, after: who holds which piece at the start and at the end, bool (pieces, ranks).
        effort, seed: of the solver.
        direct: only those who hold a piece at the start send it.
        one_route: only the first route of each pair.
        hint: sends that the solver tries first.
    Returns: (whether there is one, None if not known; the draft).
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    at_sender, at_receiver, of_pair = defaultdict(list), defaultdict(list), defaultdict(list)
    sends: dict[Send, tuple[int, Any]] = {}
    hinted = {(r, s.piece, s.src, s.dst) for r, some in enumerate(hint or []) for s in some}
    for piece in range(len(before)):
        holders = np.flatnonzero(before[piece]).tolist()
        wanting = np.flatnonzero(after[piece] & ~before[piece]).tolist()
        has: dict[int, Any] = dict.fromkeys(wanting, 0)
        for r in range(rounds):
            then: dict[int, Any] = {}
            for dst in wanting:
                coming = []
                for src in holders if direct or r == 0 else [*holders, *wanting]:
                    if src == dst or not wafer.routes[src, dst]:
                        continue
                    x = model.new_bool_var("")
                    coming.append(x)
                    sends[Send(piece, src, dst, wavelength=r)] = (r, x)
                    at_sender[r, src].append(x)
                    at_receiver[r, dst].append(x)
                    of_pair[r, src, dst].append(x)
                    if src in has:
                        model.add_implication(x, has[src])
                    if hint:
                        model.add_hint(x, (r, piece, src, dst) in hinted)
                then[dst] = 1 if r == rounds - 1 else model.new_bool_var("")
                model.add(then[dst] == has[dst] + sum(coming))
            has = then
    for ends, light in ((at_sender, wafer.sends), (at_receiver, wafer.hears)):
        at_once = light.sum(axis=1).tolist()
        for (_, rank), some in ends.items():
            if len(some) > at_once[rank]:
                model.add(sum(some) <= at_once[rank])
    counts = on_routes(model, wafer, of_pair, one_route)
    answer, solver = run(model, clock, effort=effort, seed=seed)
    draft: Draft = [[] for _ in range(rounds)]
    if answer:
        left = {key: [solver.value(count) for count in some] for key, some in counts.items()}
        for send, (r, x) in sends.items():
            if solver.boolean_value(x):
                route = next(i for i, count in enumerate(left[r, send.src, send.dst]) if count)
                left[r, send.src, send.dst][route] -= 1
                draft[r].append(send._replace(wavelength=-1, path=wafer.routes[send.src, send.dst][route]))
    return answer, draft


def on_routes(
    model: Any, wafer: Wafer, of_pair: dict[tuple[int, int, int], list[Any]], one_route: bool
) -> dict[tuple[int, int, int], list[Any]]:
    """Circuits of each (round, sender, receiver) on each of its routes, such that no edge overflows."""
    capacity = wafer.capacity()
    on_edge = defaultdict(list)
    counts = {}
    for (r, src, dst), some in of_pair.items():
        routes = wafer.routes[src, dst][: 1 if one_route else None]
        if len(routes) == 1:
            split = [sum(some)]
        else:
            split = [model.new_int_var(0, min(len(some), wafer.num_wavelengths), "") for _ in routes]
            model.add(sum(split) == sum(some))
        counts[r, src, dst] = split
        for path, count in zip(routes, split, strict=True):
            for edge in path:
                on_edge[r, edge].append((count, len(some)))
    for (_, edge), load in on_edge.items():
        if sum(most for _, most in load) > capacity[edge]:
            model.add(sum(count for count, _ in load) <= int(capacity[edge]))
    return counts
