"""What light can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import FabricError
from opticcl.ir._common import NO_PARAMETERS, IntArray
from opticcl.ir.circuits import Circuits

if TYPE_CHECKING:
    from opticcl.physics.light import LightPath

__all__ = ["RESOURCE_KINDS", "Fabric", "Fault", "Part", "Resource", "Usage"]

RESOURCE_KINDS = ("laser", "photodiode", "tx_port", "rx_port", "waveguide", "fibre", "subnet", "switch_port", "link")
"""What circuits may occupy; the judge has a rule for each, but for links, which packets share."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of thing that circuits occupy, `count` alike ones of it.

    Args:
        kind: one of `RESOURCE_KINDS`.
        count: how many there are [count]; large fabrics compute their resources, they do not list them.
        capacity: circuits a round that one may carry (on each wavelength if `per_wavelength`); bits a second if `shared`.
        per_wavelength: whether different wavelengths pass side by side.
        shared: packets share it (electrical links); light never does.
        once_per_job: set once for the whole job: all circuits that ever use it must agree on its setting.
        splits: passive optics that hand one signal to many: circuits of one signal (same sender, port, wavelengths and
            data, stored and not added) count once.
    Raises: FabricError: no such kind, or a link that is not shared.
    """

    kind: str
    count: int
    capacity: float = 1
    per_wavelength: bool = True
    shared: bool = False
    once_per_job: bool = False
    splits: bool = False

    def __post_init__(self) -> None:
        if self.kind not in RESOURCE_KINDS:
            known = ", ".join(RESOURCE_KINDS)
            raise FabricError(f"Resource: kind={self.kind!r} is none that the judge has a rule for; known: {known}")
        if self.kind == "link" and not self.shared:
            raise FabricError(
                "Resource: a link is shared by packets; write shared=True, or fibre or waveguide for light"
            )


@dataclass(frozen=True, slots=True)
class Usage:
    """Which circuits occupy which of one kind of resource.

    Args:
        resource: the kind.
        index: which one of its `count`, int64 (m,).
        circuit: row of the `Circuits`, int64 (m,), or None if row i of `index` belongs to circuit i.
        setting: what the resource is set to, int64 (m,), for `once_per_job` resources.
    """

    resource: Resource
    index: IntArray
    circuit: IntArray | None = None
    setting: IntArray | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """Circuits that the hardware cannot make, and by which rule.

    Args:
        rule: name of the rule, such as path_broken or wavelength_unheard.
        circuits: rows that break it, int64 (k,).
        expected: what the hardware demands, in words.
    """

    rule: str
    circuits: IntArray
    expected: str


@dataclass(frozen=True, slots=True)
class Part:
    """Parts of one kind that a fabric is built of, all alike; what one costs and draws stands in data/parts.toml.

    Args:
        kind: such as transceiver, electrical_switch, star_coupler or fibre.
        count: how many [count].
        ports: of each, where it has ports [count].
        rate_bits_per_s: of each, or of each of its ports, where it has a rate [bit/s].
    """

    kind: str
    count: int
    ports: int = 0
    rate_bits_per_s: float = 0.0


def _all_linked(src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
    return np.ones(np.broadcast(src, dst).shape, bool)


def _alike(mine: Any, its: Any) -> bool:
    if isinstance(mine, np.ndarray) or isinstance(its, np.ndarray):
        return mine is not None and its is not None and np.array_equal(mine, its)
    return bool(mine == its)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fabric:
    """What light can do. Saved as its name and parameters.

    `usage` and `faults` are the physics of a circuit, written from the paper's hardware section; they know nothing of any
    assigner. One law is common to all: in a round, the circuits that share an exclusive resource and a wavelength never
    exceed its capacity.

    Args:
        name: registered name.
        parameters: everything it was made from.
        num_nodes: nodes [count].
        num_wavelengths: wavelengths on the grid [count].
        ports_per_node: independent transmitters of a node [count].
        lasers_per_port: wavelengths that one transmitter can light at once [count].
        rate_bits_per_s: one wavelength of one port [bit/s].
        reconfiguration_s: time to change circuits [s].
        slot_s: time slot, 0 if the fabric has none [s].
        slot_payload_bytes: payload of one circuit in one slot [bytes].
        latency_s: from the first bit sent to the first bit received, apart from hops [s].
        hop_latency_s: hops -> what each adds to the latency of a path through it [s], or None if nothing.
        resources: the kinds of resource that `usage` speaks of.
        usage: circuits -> what they occupy, one `Usage` a kind.
        faults: circuits -> those that this hardware cannot make.
        linked: (src, dst) -> whether one circuit can join them, arrays that broadcast.
        distance: (src, dst) -> links (fibres, waveguides) on the shortest way between two ranks, where they are passed one
            by one; None where every way is short.
        route: (src, dst) -> (hops, hop_offsets) of each pair, on packet fabrics: their routing is part of the machine.
        ring_order: nodes in an order in which neighbours (last and first too) are linked, int64 (num_nodes,).
        control_s: (src, dst) -> control-plane time of a step with these transfers [s], or None.
        coordinates: node -> its name in the paper's terms, for messages.
        source: paper and sections.
        nodes: the nodes of the machine that a job has, in the order of its ranks, int64 (num_nodes,), or None for all.
            `num_nodes`, `linked`, `distance` and `ring_order` speak of the job's ranks; `usage`, `faults` and circuits of
            the machine.
        machine_size: nodes of the whole machine where a job has a part of it, else 0 [count].
        parts: what the whole machine is built of; empty where nobody can tell.
        light_path: circuits -> what the light of each passes on its way, on optical fabrics, or None.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=lambda: NO_PARAMETERS)
    num_nodes: int
    num_wavelengths: int
    ports_per_node: int
    lasers_per_port: int
    rate_bits_per_s: float
    reconfiguration_s: float = 0.0
    slot_s: float = 0.0
    slot_payload_bytes: float = 0.0
    latency_s: float = 0.0
    hop_latency_s: Callable[[IntArray], npt.NDArray[np.float64]] | None = None
    resources: tuple[Resource, ...]
    usage: Callable[[Circuits], Iterable[Usage]]
    faults: Callable[[Circuits], Iterable[Fault]]
    linked: Callable[[IntArray, IntArray], npt.NDArray[np.bool_]] = _all_linked
    distance: Callable[[IntArray, IntArray], IntArray] | None = None
    route: Callable[[IntArray, IntArray], tuple[IntArray, IntArray]] | None = None
    ring_order: Callable[[], IntArray] | None = None
    control_s: Callable[[IntArray, IntArray], float] | None = None
    coordinates: Callable[[int], str] = str
    source: str = ""
    nodes: IntArray | None = None
    machine_size: int = 0
    parts: tuple[Part, ...] = ()
    light_path: LightPath | None = None

    def __eq__(self, other: object) -> bool:
        """Alike in everything that can be compared; what a fabric does follows from its name and parameters."""
        if not isinstance(other, Fabric):
            return NotImplemented
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(Fabric))
        return all(_alike(mine, its) for mine, its in pairs if not callable(mine))

    def __hash__(self) -> int:
        return hash((self.name, self.num_nodes, self.machine_size))

    def __repr__(self) -> str:
        from opticcl.units import counted, format_rate

        size = f"{self.num_nodes:,} of {counted(self.machine_size, 'node')}" if self.machine_size else ""
        return (
            f"<Fabric {self.name}: {size or counted(self.num_nodes, 'node')}, "
            f"{format_rate(self.node_rate_bits_per_s)} a node>"
        )

    def __str__(self) -> str:
        from opticcl.units import format_quantity, in_columns

        given = {key: value for key, value in self.parameters.items() if value is not None}
        rows = [(f"  {k}", f"{v:g}" if isinstance(v, float) else format_quantity(v, "")) for k, v in given.items()]
        return "\n".join([repr(self)[len("<Fabric ") : -1], in_columns(rows)]).rstrip()

    @property
    def links_all(self) -> bool:
        """Whether one circuit can join any two nodes, so that nobody need ask `linked`."""
        return self.linked is _all_linked

    @property
    def num_machine_nodes(self) -> int:
        """Nodes of the machine, those that the job does not have included [count]."""
        return self.machine_size or self.num_nodes

    def machine_nodes(self, ranks: IntArray) -> IntArray:
        """Nodes of the machine that the ranks of the job stand for."""
        return ranks if self.nodes is None else self.nodes[ranks]

    @property
    def node_rate_bits_per_s(self) -> float:
        """What one node can send at most [bit/s]."""
        return self.ports_per_node * self.lasers_per_port * self.rate_bits_per_s

    @property
    def is_packet_switched(self) -> bool:
        """Whether its links are shared by packets rather than held by circuits."""
        return any(r.shared for r in self.resources)

    def ring(self) -> IntArray:
        """Nodes in ring order, int64 (num_nodes,)."""
        return np.arange(self.num_nodes) if self.ring_order is None else self.ring_order()
