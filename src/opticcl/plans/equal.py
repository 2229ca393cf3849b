"""Machines of equal node rate, price or power: transmitters are scaled until the bill of a node meets the budget.

The bill is the geometric mean of its range. A rate above the one that a system is built for is extrapolated; above
`MOST_EXTRAPOLATED` times that rate the system is not ranked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose, sqrt
from typing import Literal

from opticcl.errors import OpticclError, ParameterError
from opticcl.estimate.cost import bill_of
from opticcl.ir import Fabric
from opticcl.plans.hardware import middle
from opticcl.plans.machines import ExcludedFabric
from opticcl.units import format_rate, quantity

__all__ = ["MOST_EXTRAPOLATED", "Equal", "equal_fabrics", "parse_equal"]

MOST_EXTRAPOLATED = 4.0
"""Node rate over the built one, above which a system is not ranked."""

SLOWEST, FASTEST = 1e6, 1e16  # node rates that are tried [bit/s]


@dataclass(frozen=True, slots=True)
class Equal:
    """What is equal.

    Args:
        kind: rate of a node, price of a node or power of a node.
        value: of it [bit/s, USD or W].
    """

    kind: Literal["rate", "cost", "power"]
    value: float

    def on(self, fabric: Fabric) -> Fabric:
        """The fabric with the node rate that meets the value.

        Raises: UnsupportedError: its parts are unknown. ParameterError: its fixed parts alone exceed the budget.
        """
        if self.kind == "rate":
            return fabric.with_node_rate(self.value)
        low, high = SLOWEST, FASTEST
        least = self._a_node(fabric.with_node_rate(low))
        if least > self.value:
            raise ParameterError(
                f"{fabric.name}: a node costs {least:,.3g} {self._unit} however slow it is, more than {self.value:,.4g}"
            )
        while not isclose(low, high, rel_tol=1e-9):
            middle_rate = sqrt(low * high)
            if self._a_node(fabric.with_node_rate(middle_rate)) > self.value:
                high = middle_rate
            else:
                low = middle_rate
        return fabric.with_node_rate(low)

    def _a_node(self, fabric: Fabric) -> float:
        """Price or power of a node [USD or W]."""
        bill = bill_of(fabric)
        return middle(bill.usd if self.kind == "cost" else bill.w) / fabric.num_machine_nodes

    @property
    def _unit(self) -> str:
        return "USD" if self.kind == "cost" else "W"


def parse_equal(text: str) -> Equal:
    """What is equal, from "rate=800Gb/s", "cost=9000" or "power=100".

    >>> parse_equal("rate=800Gb/s")
    Equal(kind='rate', value=800000000000.0)

    Args: text: of the user.
    Raises: ParameterError, UnitError: neither form, or a value that is not positive.
    """
    kind, equals, value = (part.strip() for part in text.partition("="))
    if not equals or kind not in ("rate", "cost", "power"):
        raise ParameterError(f"--equal: {text!r} is not rate=..., cost=... or power=...; write --equal rate=800Gb/s")
    if kind == "rate":
        number = quantity(value, "bit/s", "--equal", bare=False)
    else:
        bare = value.removesuffix("USD" if kind == "cost" else "W").strip()
        try:
            number = float(bare)
        except ValueError:
            raise ParameterError(f"--equal: {value!r} is not a number; write --equal {kind}=9000") from None
    if not 0 < number < float("inf"):
        raise ParameterError(
            f"--equal: {text!r} is not positive; write --equal {kind}={'800Gb/s' if kind == 'rate' else 9000}"
        )
    return Equal(kind, number)  # type: ignore[arg-type]


def equal_fabrics(
    given: Sequence[tuple[str, Fabric]], equal: Equal
) -> tuple[list[tuple[str, Fabric]], list[ExcludedFabric], list[str]]:
    """Fabrics with equal nodes; those that cannot be made so are excluded.

    Args:
        given: text and fabric of each, as built.
        equal: what they have in common.
    Returns: text and fabric of each; the others with reasons; remarks on those that are extrapolated.
    """
    kept: list[tuple[str, Fabric]] = []
    excluded: list[ExcludedFabric] = []
    notes: list[str] = []
    for name, fabric in given:
        try:
            scaled = equal.on(fabric)
        except OpticclError as error:
            excluded.append(ExcludedFabric(name, str(error)))
            continue
        factor = scaled.node_rate_bits_per_s / fabric.node_rate_bits_per_s
        built = f"{factor:.3g} times the {format_rate(fabric.node_rate_bits_per_s)} a node that it is built for"
        if factor > MOST_EXTRAPOLATED:
            excluded.append(
                ExcludedFabric(name, f"{name}: needs {built}; above {MOST_EXTRAPOLATED:g} it is not ranked")
            )
            continue
        if factor > 1 + 1e-9:
            notes.append(f"extrapolated: {name}: {built}")
        kept.append((name, scaled))
    return kept, excluded, notes
