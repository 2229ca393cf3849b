"""What a light budget limits: the largest size that closes, the hops that light may pass."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from math import floor

import numpy as np

from opticcl.ir.light import LARGEST_COUNT, LightPath
from opticcl.optics.chain import ROUNDING_DB, Chain

__all__ = ["largest_that_closes", "reach", "reach_in_parts"]


def largest_that_closes(candidates: Sequence[int], closes: Callable[[int], bool]) -> int | None:
    """The largest candidate that closes, of ascending ones that close up to some point; None if none does."""
    first = bisect_left(candidates, True, key=lambda candidate: not closes(candidate))
    return candidates[first - 1] if first else None


def reach(chain: Chain, path: LightPath, each: Mapping[str, float]) -> int | None:
    """Hops that a passive path may have; None if not even a path without hops closes.

    Args:
        chain: values of the path's elements.
        path: elements.
        each: elements of one hop: kind -> count.
    """
    start = np.array([1.0 if element.kind == "modulator" else 0.0 for element in path.elements])
    hop = np.array([each.get(element.kind, 0.0) for element in path.elements])
    margin, loss = float(chain.margin_db(start)[0]), float(hop @ chain.loss_db)
    if margin < -ROUNDING_DB:
        return None
    return floor(min((margin + ROUNDING_DB) / loss, LARGEST_COUNT)) if loss else LARGEST_COUNT


def reach_in_parts(
    chain: Chain, path: LightPath, each: Mapping[str, float], part: int, inside: str, between: str
) -> int | None:
    """Hops that a passive path may have through parts of equal length, from the first place of one of them.

    Args:
        chain: values of the path's elements.
        path: elements.
        each: elements of every hop: kind -> count.
        part: places of a part; every `part`-th hop leads to the next one [count].
        inside, between: kinds of the one element more that a hop passes within a part, or to the next one.
    Returns: None if not even a path without hops closes.
    """

    def closes(hops: int) -> bool:
        crossed = hops // part
        passed = {kind: count * hops for kind, count in each.items()} | {inside: hops - crossed, between: crossed}
        counts = [1.0 if element.kind == "modulator" else passed.get(element.kind, 0.0) for element in path.elements]
        return bool(chain.closes(np.array(counts))[0])

    return largest_that_closes(range(LARGEST_COUNT + 1), closes)
