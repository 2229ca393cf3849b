"""SiPAC: the wavelengths of every transfer follow from its two ends.

Sender and receiver differ in the digit of one level; the port is that of the level, and the wavelengths are the whole
group that the switch drops there, interleaved with the other groups. Two pairs never share a wavelength of a port, so
whatever the schedule, a round takes one transfer of every pair; what asks for the same channel again goes to the next.

Source: SiPAC section III-B.
"""

from __future__ import annotations

import numpy as np

from opticcl.circuits import Rounds, register_rule
from opticcl.ir import Circuits, Fabric, IntArray, Schedule, Transfers


@register_rule("sipac")
def sipac(fabric: Fabric, schedule: Schedule) -> Rounds:
    """The whole channel of its pair for each transfer, in closed form."""
    radix, levels = fabric.parameters["radix"], fabric.parameters["levels"]
    published = fabric.parameters["channels"] == "published"
    groups, unused = (radix, 0) if published else (max(1, radix - 1), 1)
    strides = np.array([radix**level for level in range(levels)], np.int64)

    def rounds(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        distance = transfers.dst.astype(np.int64) - transfers.src  # (j - i) r^l
        level = np.searchsorted(strides, np.abs(distance), side="right") - 1
        group = (distance // strides[level] - unused) % radix
        circuits = Circuits.of(
            np.arange(len(transfers)),
            transfers.src,
            transfers.dst,
            port=level,
            wavelength_lo=group,
            wavelength_n=(fabric.num_wavelengths - 1 - group) // groups + 1,
            path=level[:, None],
            wavelength_step=groups,
        )
        number = _occurrence(transfers.src * np.int64(fabric.num_nodes) + transfers.dst)
        last = int(number.max(initial=0))
        return tuple(circuits.take(number == n) for n in range(last + 1)) if last else (circuits,)

    return rounds


def _occurrence(key: IntArray) -> IntArray:
    """How many equal keys stand before each, int64 (n,).

    >>> _occurrence(np.array([5, 7, 5, 5])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(key, kind="stable")
    place = np.arange(len(key))
    starts = np.diff(key[order], prepend=-1) != 0
    before = np.empty(len(key), np.int64)
    before[order] = place - np.maximum.accumulate(np.where(starts, place, 0))
    return before
