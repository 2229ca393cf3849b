"""A fabric as it is built: groups of identical optical elements, the links between them, and what the elements are set to.

Ports are numbered group by group: input k of element e of a group is `first_in + e n_in + k`, outputs likewise. A link leads
from an output to an input. No element knows what a circuit is.

Counts are formulas, so a netlist of any size can be described; its links are arrays and are made on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from opticcl.errors import FabricError, ParameterError, UnsupportedError
from opticcl.ir._common import IntArray

__all__ = ["MOST_PORTS", "BillLine", "Bundle", "ElementGroup", "Netlist"]

MOST_PORTS = 1 << 23
"""Input ports of the largest netlist whose links are made [count]."""

_LAST = MappingProxyType({"edfa": 1, "fibre": 2})

Numbers = Callable[[IntArray], IntArray]
"""Element numbers -> one number each."""


class BillLine(NamedTuple):
    """What a group of elements is bought as.

    Args:
        kind: of part, as in `Part.kind`.
        elements: that one part has [count].
        ports: of a part, 0 if it has none [count].
        rate_bits_per_s: of a part, 0 if it has none [bit/s].
    """

    kind: str
    elements: int = 1
    ports: int = 0
    rate_bits_per_s: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ElementGroup:
    """Identical elements.

    Args:
        name: unique in its netlist.
        kind: of element; see `opticcl.optics.elements`.
        count: elements [count].
        n_in, n_out: ports of each [count].
        parameters: name -> function from element numbers to values, such as the wavelength of a fixed filter.
        control: from element numbers to devices: elements of one device have one setting; None: each its own.
        devices: number of devices where `control` is given [count].
        per_wavelength: whether a state holds for one wavelength, which is then its index.
        once_per_job: set before the job starts and never again.
        loss: element of a light path -> pieces that light passes in one of these [count].
        moved: the same for light that a ring moves to the other bus; None: as `loss`.
        bill: what the group is bought as; None: it is inside another part.
        place: an element in words.
        node_of: from device numbers to the nodes of the machine that they are part of; None: part of no node.
        device: kind of `Fabric.devices` with the time that a setting takes; "": the name of the group.
        hops: from element numbers to the hops of a circuit's path that they are; None: no hops.
        source: paper and section.
    Raises: FabricError: a negative number of elements or ports.
    """

    name: str
    kind: str
    count: int
    n_in: int = 1
    n_out: int = 1
    parameters: Mapping[str, Numbers] = field(default_factory=lambda: MappingProxyType({}))
    control: Numbers | None = None
    devices: int = 0
    per_wavelength: bool = False
    once_per_job: bool = False
    loss: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    moved: Mapping[str, float] | None = None
    bill: BillLine | None = None
    place: Callable[[int], str] = str
    node_of: Numbers | None = None
    device: str = ""
    hops: Numbers | None = None
    source: str = ""

    def __post_init__(self) -> None:
        if min(self.count, self.n_in, self.n_out) < 0:
            raise FabricError(f"netlist: {self.name}: {self.count} elements of {self.n_in} x {self.n_out} ports")

    @property
    def loss_moved(self) -> Mapping[str, float]:
        """Element of a light path -> pieces that light passes in one of these which moves it, if any does [count]."""
        return self.loss if self.moved is None else self.moved

    @property
    def num_devices(self) -> int:
        """Things that can be set apart from each other [count]."""
        return self.count if self.control is None else self.devices

    def device_of(self, element: IntArray) -> IntArray:
        """Device of each element, int64."""
        return element if self.control is None else self.control(element)

    def place_of(self, device: int) -> str:
        """A device in words; one that several elements share has its number."""
        return self.place(device) if self.control is None else f"device {device}"


class Bundle(NamedTuple):
    """Links from outputs of one group to inputs of another, one by one.

    Args:
        source, target: names of the groups.
        outputs: element n_out + output of each link, int64 (n,).
        inputs: element n_in + input of each link, int64 (n,).
    """

    source: str
    outputs: IntArray
    target: str
    inputs: IntArray


@dataclass(frozen=True, eq=False)
class Netlist:
    """Groups of elements and their links.

    Args:
        name: of the fabric.
        groups: in the order in which light passes them, as far as it has one. One group holds signals: modulators, or
            emitters where there are none; one is of photodiodes.
        num_wavelengths: on the grid [count].
        bundles: returns the links; called where they are needed.
        transmitter: name of the group that holds signals.
        unlinked: why no links are made and no light is followed; "" where they are.
    """

    name: str
    groups: tuple[ElementGroup, ...]
    num_wavelengths: int
    bundles: Callable[[], Iterable[Bundle]]
    transmitter: str
    unlinked: str = ""

    def __repr__(self) -> str:
        from opticcl.units import counted

        return f"<Netlist {self.name}: {counted(self.num_elements, 'element')} in {counted(len(self.groups), 'group')}>"

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Group by name."""
        return {group.name: i for i, group in enumerate(self.groups)}

    @property
    def num_elements(self) -> int:
        """Elements of all groups [count]."""
        return sum(group.count for group in self.groups)

    @cached_property
    def first_in(self) -> IntArray:
        """First input of each group, and one after the last, int64 (groups + 1,)."""
        return np.cumsum([0, *(group.count * group.n_in for group in self.groups)])

    @cached_property
    def first_out(self) -> IntArray:
        """First output of each group, and one after the last, int64 (groups + 1,)."""
        return np.cumsum([0, *(group.count * group.n_out for group in self.groups)])

    @property
    def num_inputs(self) -> int:
        """Input ports of all elements [count]."""
        return sum(group.count * group.n_in for group in self.groups)

    @property
    def photodiodes(self) -> ElementGroup:
        """The group of photodiodes."""
        return next(group for group in self.groups if group.kind == "photodiode")

    def count(self, group: str) -> int:
        """Elements of a group [count]."""
        return self.groups[self.position[group]].count

    def place(self, group: str, element: int) -> str:
        """An element of a group in words."""
        return self.groups[self.position[group]].place(element)

    def links(self) -> IntArray:
        """(output, input) of every link, int64 (2, n). Raises: as `targets`."""
        target = self.targets()
        output = np.flatnonzero(target >= 0)
        return np.stack([output, target[output]])

    def targets(self) -> IntArray:
        """Input that each output leads to, -1 where it leads to none, int64 (outputs,).

        Raises: ParameterError: more than `MOST_PORTS` input ports; FabricError: a link of a port that does not exist, or two
            at one port; UnsupportedError: `unlinked`.
        """
        if self.unlinked:
            raise UnsupportedError(self.unlinked)
        if self.num_inputs > MOST_PORTS:
            raise ParameterError(
                f"{self.name}: {self.num_inputs:,} input ports of optical elements; light is followed through up to "
                f"{MOST_PORTS:,}, try fewer nodes"
            )
        target, used, count = np.full(int(self.first_out[-1]), -1), np.zeros(self.num_inputs, bool), 0
        for bundle in self.bundles():
            source, to = self.position[bundle.source], self.position[bundle.target]
            for position, ports, each in ((source, bundle.outputs, "n_out"), (to, bundle.inputs, "n_in")):
                group = self.groups[position]
                if len(ports) and not (ports.min() >= 0 and ports.max() < group.count * getattr(group, each)):
                    raise FabricError(f"netlist: {self.name}: a link of a port that {group.name} does not have")
            inputs = self.first_in[to] + bundle.inputs
            target[self.first_out[source] + bundle.outputs] = inputs
            used[inputs] = True
            count += len(inputs)
        for side, ports in (("output", target >= 0), ("input", used)):
            if np.count_nonzero(ports) < count:
                raise FabricError(f"netlist: {self.name}: two links at one {side}")
        return target

    def bill(self) -> dict[tuple[str, int, float], int]:
        """(kind of part, its ports, its rate) -> number of parts that the groups are bought as.

        They are in the order of the groups, but for amplifiers and fibres, which come last.
        """
        counts: dict[tuple[str, int, float], int] = {}
        for group in sorted(self.groups, key=lambda group: _LAST.get(group.kind, 0)):
            if group.bill is not None and group.count:
                key = group.bill.kind, group.bill.ports, group.bill.rate_bits_per_s
                counts[key] = counts.get(key, 0) + group.count // group.bill.elements
        return counts
