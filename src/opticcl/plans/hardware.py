"""What a node of a machine costs, in dollars and watts."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import Any

from opticcl.errors import UnsupportedError
from opticcl.estimate.cost import Range, bill_of
from opticcl.ir import Fabric

__all__ = ["bill_per_node", "bill_record", "middle"]


def middle(of: Range) -> float:
    """Geometric mean of a range."""
    return sqrt(of[0] * of[1])


@lru_cache(maxsize=64)
def bill_per_node(fabric: Fabric, prices: str = "default") -> tuple[float | None, float | None]:
    """Price and power of a node: the geometric mean of the range of the bill.

    Args:
        fabric: the machine.
        prices: list of datasheets.
    Returns: [USD], [W]; None and None where the parts are unknown.
    """
    try:
        bill = bill_of(fabric, prices)
    except UnsupportedError:
        return None, None
    return middle(bill.usd) / fabric.num_machine_nodes, middle(bill.w) / fabric.num_machine_nodes


def bill_record(fabric: Fabric, prices: str = "default") -> dict[str, Any]:
    """`bill_per_node` as plain values."""
    usd, w = bill_per_node(fabric, prices)
    return {"usd_per_node": usd, "w_per_node": w}
