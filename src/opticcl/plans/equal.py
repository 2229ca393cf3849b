"""Machines on equal ground: of equal node rate, price or power; transmitters are scaled until a node meets it.

The bill is the geometric mean of its range. A rate above the one that a system is built for is extrapolated; a row of
such a system says by which factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose, sqrt
from typing import Any, Literal, NamedTuple

from opticcl.errors import FabricError, OpticclError, ParameterError
from opticcl.estimate.cost import bill_of
from opticcl.ir import Fabric
from opticcl.plans.hardware import middle
from opticcl.plans.machines import ExcludedFabric
from opticcl.units import format_rate, quantity

__all__ = ["EQUAL_RATE", "Contender", "Equal", "equal_fabrics", "on_ground", "parse_equal"]

SLOWEST, FASTEST = 1e6, 1e16  # node rates that are tried [bit/s]


@dataclass(frozen=True, slots=True)
class Equal:
    """What is equal.

    Args:
        kind: rate of a node, price of a node or power of a node.
        value: of it [bit/s, USD or W].
        of: name of the fabric that has it and keeps it; "" for none.
    """

    kind: Literal["rate", "cost", "power"]
    value: float
    of: str = ""

    def __str__(self) -> str:
        if self.kind == "rate":
            return f"{format_rate(self.value)} a node" + (f", the rate of {self.of}" if self.of else "")
        return f"{self.value:,.6g} {self._unit} a node"

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {"kind": self.kind, "value": self.value, **({"of": self.of} if self.of else {})}

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
                f"{fabric.name}: a node takes at least {float(f'{least:.3g}'):,g} {self._unit}, above the {self.value:,g} given"
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


EQUAL_RATE = Equal("rate", 800e9)
"""What fabrics that are ranked have in common unless a call says otherwise: ours, the rate of a NIC of today."""


class Contender(NamedTuple):
    """A fabric that is ranked beside others.

    Args:
        text: that names it.
        fabric: on equal ground.
        built: as its paper or its text has it.
    """

    text: str
    fabric: Fabric
    built: Fabric


def parse_equal(text: str) -> Equal:
    """What is equal, from "rate=800Gb/s", "cost=9000" or "power=100".

    >>> parse_equal("rate=800Gb/s")
    Equal(kind='rate', value=800000000000.0, of='')

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


def equal_fabrics(given: Sequence[tuple[str, Fabric]], equal: Equal) -> tuple[list[Contender], list[ExcludedFabric]]:
    """Fabrics with equal nodes; those that cannot be made so are excluded, and fixed ones stay as they are.

    Args:
        given: text and fabric of each, as built.
        equal: what they have in common.
    Returns: the fabrics; the others with reasons.
    """
    kept: list[Contender] = []
    excluded: list[ExcludedFabric] = []
    for name, fabric in given:
        try:
            kept.append(Contender(name, fabric if fabric.machine.is_fixed else equal.on(fabric), fabric))
        except OpticclError as error:
            excluded.append(ExcludedFabric(name, str(error)))
    return kept, excluded


def on_ground(
    built: Sequence[tuple[str, Fabric]], equal: str | None, as_built: bool
) -> tuple[Equal | None, list[Contender], list[ExcludedFabric]]:
    """Fabrics on the ground of a call: equal unless it says otherwise.

    Args:
        built: text and fabric of each.
        equal: what they have in common, as `parse_equal` reads it; None: `EQUAL_RATE`.
        as_built: whether they are ranked as they are.
    Without a value fixed fabrics give theirs: the rate of the first of them.

    Returns: what they have in common, None for nothing; the fabrics; those that cannot be made so, with reasons.
    Raises: ParameterError, UnitError: both are given, or no such text; FabricError: no fabric is left.
    """
    if as_built:
        if equal is not None:
            raise ParameterError("--as-built: --equal is given too; fabrics are as built or equal, give one of them")
        return None, [Contender(name, fabric, fabric) for name, fabric in built], []
    fixed = next((fabric for _, fabric in built if fabric.machine.is_fixed), None)
    own = EQUAL_RATE if fixed is None else Equal("rate", fixed.node_rate_bits_per_s, fixed.name)
    ground = own if equal is None else parse_equal(equal)
    kept, excluded = equal_fabrics(built, ground)
    if excluded and not kept:
        raise FabricError(excluded[0].reason)
    return ground, kept, excluded
