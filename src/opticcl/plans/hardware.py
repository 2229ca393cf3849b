"""What the machine of a time needs: whether its light closes, and what a node of it costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.estimate.budget import budget
from opticcl.estimate.cost import Range, bill_of
from opticcl.ir import Fabric
from opticcl.ir.light import LITERAL
from opticcl.optics.values import light_path_of, optics

__all__ = ["BEST", "Hardware", "bill_per_node", "hardware_of", "middle"]

TYPICAL = "typical"
BEST = "best"


@dataclass(frozen=True, slots=True)
class Hardware:
    """Light budget and price of a machine.

    Args:
        margin_db: of the worst path [dB]; None: no light from end to end, or no values.
        optics: preset of the values: literal, or typical where the paper lacks some.
        usd_per_node, w_per_node: geometric mean of the range of the bill [USD, W]; None: parts unknown.
    """

    margin_db: float | None
    optics: str
    usd_per_node: float | None
    w_per_node: float | None

    @property
    def closes(self) -> bool | None:
        """Whether the light budget closes; None if there is none."""
        return None if self.margin_db is None else self.margin_db >= -1e-9

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "light_closes": self.closes,
            "light_margin_db": self.margin_db,
            "light_optics": self.optics,
            "usd_per_node": self.usd_per_node,
            "w_per_node": self.w_per_node,
        }


def middle(of: Range) -> float:
    """Geometric mean of a range."""
    return sqrt(of[0] * of[1])


@lru_cache(maxsize=64)
def hardware_of(fabric: Fabric, prices: str = "default", preset: str = BEST) -> Hardware:
    """Light budget of the worst path, and the bill of the whole machine.

    Args:
        fabric: the machine.
        prices: list of datasheets.
        preset: values of the light budget; best: those of the paper where they suffice, else the typical ones.
    """
    margin, preset = _margin_db(fabric, (LITERAL, TYPICAL) if preset == BEST else (preset,))
    return Hardware(margin, preset, *bill_per_node(fabric, prices))


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


def _margin_db(fabric: Fabric, presets: tuple[str, ...]) -> tuple[float | None, str]:
    """Margin of the worst path and the preset of its values, the first that suffices; (None, "") if it has none."""
    try:
        table = light_path_of(fabric).table
    except UnsupportedError:
        return None, ""
    for preset in presets:
        if preset == LITERAL or preset in table.presets:
            try:
                return budget(fabric, optics(table, preset), "worst").margin_db, preset
            except ParameterError:
                continue  # a value is missing: the next preset
    return None, ""
