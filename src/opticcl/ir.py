"""The plain data that rooms hand to each other. Imports NumPy alone.

A `Schedule` says who sends which piece to whom in which step, a `CircuitPlan` which light carries it. Rows are
columns: a step of two million transfers is five arrays. Everything big is lazy: a step, and the circuits of a step,
are pure functions of the step's index, made when somebody asks and forgotten afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from opticcl.physics.light import LightPath

__all__ = [
    "CircuitPlan",
    "Circuits",
    "Collective",
    "Fabric",
    "Fault",
    "IntArray",
    "Op",
    "Part",
    "Resource",
    "Schedule",
    "Timeline",
    "Transfers",
    "Usage",
    "Verdict",
    "Violation",
    "concatenate_circuits",
    "concatenate_transfers",
]

IntArray = npt.NDArray[Any]
"""Array of integers; columns are int32 where two million rows make it matter."""

_NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({})


class Op(IntEnum):
    """What becomes of a piece: the receiver stores it, adds it to its own, or puts it beside its own and the sender gives
    it away (only where contributions are kept apart, as in all_to_all)."""

    COPY = 0
    REDUCE = 1
    MOVE = 2


# --- what must be true ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Collective:
    """What must be true before and after, chunk by chunk.

    The message is cut into `num_chunks` equal chunks. `before(rank, chunk)` tells who holds a contribution to a chunk at
    the start, `after(rank, chunk)` who must hold the result at the end; the result is made of all contributions, each
    exactly once: their sum, or, where `keeps_apart`, all of them side by side (a chunk of an all_to_all is what all ranks
    send to one; each contribution is as large as a chunk). Where nothing is added or kept apart, all who hold a chunk at the
    start hold the same, and the result is that. Both take arrays and broadcast, so 65,536 ranks cost nothing.

    Args:
        num_ranks: ranks that take part [count].
        num_chunks: equal pieces of the message [count].
        reduces: whether contributions are added (all_reduce) or only moved (all_gather).
        before: predicate over (rank, chunk) arrays.
        after: predicate over (rank, chunk) arrays.
        root: the rank that a rooted collective starts or ends at.
        keeps_apart: whether contributions to one chunk stay side by side.
        owner: rank that each chunk is for or from, int32 (num_chunks,); a rank's chunks lie in its block of the user's
            buffer in ascending order. None where no chunk belongs to anybody.
        shift: how far a send_recv reaches [ranks].
    """

    name: str
    num_ranks: int
    num_chunks: int
    reduces: bool
    before: Callable[[IntArray, IntArray], npt.NDArray[np.bool_]]
    after: Callable[[IntArray, IntArray], npt.NDArray[np.bool_]]
    root: int = 0
    keeps_apart: bool = False
    owner: IntArray | None = None
    shift: int = 1


# --- who sends what ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Transfers:
    """Transfers that may start together, as columns of equal length.

    Args:
        src: sending rank, int32 (n,).
        dst: receiving rank, int32 (n,).
        chunk_lo: first chunk carried, int32 (n,).
        chunk_n: number of consecutive chunks carried, int32 (n,).
        op: `Op` as uint8 (n,).
        parts: contributions carried of each chunk, int32 (n,), where the collective keeps them apart; else None, one.
    """

    src: IntArray
    dst: IntArray
    chunk_lo: IntArray
    chunk_n: IntArray
    op: npt.NDArray[np.uint8]
    parts: IntArray | None = None

    @classmethod
    def of(cls, src: Any, dst: Any, chunk_lo: Any, chunk_n: Any, op: Any, parts: Any = None) -> Transfers:
        """Columns from anything that broadcasts, without the rows that stay where they are (src == dst).

        Args: src, dst, chunk_lo, chunk_n, op, parts: array-likes of a common shape after broadcasting.
        """
        given = [np.asarray(c) for c in (src, dst, chunk_lo, chunk_n, op, *(() if parts is None else (parts,)))]
        shapes = {c.shape for c in given if c.ndim}
        shape = shapes.pop() if len(shapes) == 1 else np.broadcast(*given).shape  # the usual case needs no broadcasting
        differ = given[0] != given[1]
        moves = np.ravel(differ if differ.shape == shape else np.broadcast_to(differ, shape))
        all_move = bool(moves.all())
        n = len(moves) if all_move else int(np.count_nonzero(moves))

        def column(values: IntArray, kind: type = np.int32) -> IntArray:
            if not values.ndim:
                return np.full(n, values, kind)
            flat = np.ravel(values if values.shape == shape else np.broadcast_to(values, shape))
            return np.ascontiguousarray(flat if all_move else flat[moves], dtype=kind)

        ints = [column(c) for c in given[:4]]
        apart = None if parts is None else column(given[5])
        return cls(ints[0], ints[1], ints[2], ints[3], column(given[4], np.uint8), apart)

    def __len__(self) -> int:
        return len(self.src)

    def size_chunks(self) -> IntArray:
        """How much each transfer carries, in chunks, int64 (n,)."""
        return self.chunk_n.astype(np.int64) * (1 if self.parts is None else self.parts)

    def take(self, rows: Any) -> Transfers:
        """The given rows (indices, slice or mask)."""
        kept = {name: getattr(self, name)[rows] for name in ("src", "dst", "chunk_lo", "chunk_n", "op")}
        return Transfers(**kept, parts=None if self.parts is None else self.parts[rows])


def concatenate_transfers(parts: Iterable[Transfers]) -> Transfers:
    """Several lists of transfers as one, in order."""
    lists = list(parts)
    columns = {f: np.concatenate([getattr(p, f) for p in lists]) for f in ("src", "dst", "chunk_lo", "chunk_n", "op")}
    apart = [p.parts for p in lists if p.parts is not None]
    return Transfers(**columns, parts=np.concatenate(apart) if apart else None)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Who sends which piece to whom in which step.

    Args:
        name: algorithm that made it.
        collective: what it claims to do.
        num_steps: number of steps [count].
        step: pure function of the step's index.
        classes: the steps in order, cut into runs. Steps of a run are alike: same senders, receivers, number of chunks
            and operation, only the chunk numbers differ. So a ring of 65,536 ranks has 131,070 steps and two classes.
            By default every step is a run of its own.
        parameters: the algorithm's parameters, as it was called with.
    """

    name: str
    collective: Collective
    num_steps: int
    step: Callable[[int], Transfers]
    classes: tuple[range, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=lambda: _NO_PARAMETERS)

    def step_classes(self) -> tuple[range, ...]:
        """The steps in order, cut into runs of equal steps."""
        return self.classes or tuple(range(i, i + 1) for i in range(self.num_steps))


# --- which light carries it -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Circuits:
    """Circuits that stand at the same time: the programme of the light, as columns of equal length.

    A transfer may use several circuits; each takes its share of the bytes in proportion to its wavelengths. A circuit
    uses the wavelengths lo, lo + step, ..., n of them.

    Args:
        transfer: row of the step's `Transfers` that this circuit carries, int32 (n,).
        src: sending node, int32 (n,).
        dst: receiving node, int32 (n,).
        port: port of the sender and of the receiver (a fabric says what its ports are), int32 (n,).
        wavelength_lo: first wavelength index, int32 (n,).
        wavelength_n: number of wavelengths, int32 (n,).
        hops: all paths end to end, int32; a fabric says what a hop is (a fibre segment, a gate, ...).
        hop_offsets: path of circuit i is hops[hop_offsets[i]:hop_offsets[i + 1]], int64 (n + 1,).
        wavelength_step: distance between the wavelengths of a circuit [count].
    """

    transfer: IntArray
    src: IntArray
    dst: IntArray
    port: IntArray
    wavelength_lo: IntArray
    wavelength_n: IntArray
    hops: IntArray
    hop_offsets: IntArray
    wavelength_step: int = 1

    @classmethod
    def of(
        cls,
        transfer: Any,
        src: Any,
        dst: Any,
        port: Any = 0,
        wavelength_lo: Any = 0,
        wavelength_n: Any = 1,
        path: Any = None,
        wavelength_step: int = 1,
    ) -> Circuits:
        """Columns from anything that broadcasts to the shape of `src`.

        Args:
            path: array (n, k) of k hops a circuit, or a pair (hops, hop_offsets), or None for no hops.
        """
        n = len(src)

        def column(value: Any) -> IntArray:
            array = np.asarray(value, dtype=np.int32)
            return np.ascontiguousarray(array) if array.shape == (n,) else np.full(n, array)

        if path is None:
            path = np.zeros((n, 0), np.int32)
        if isinstance(path, tuple):
            hops, offsets = path
        else:
            hops, offsets = np.ravel(path), np.arange(n + 1, dtype=np.int64) * np.shape(path)[1]
        return cls(
            column(transfer),
            column(src),
            column(dst),
            column(port),
            column(wavelength_lo),
            column(wavelength_n),
            np.ascontiguousarray(hops, dtype=np.int32),
            np.ascontiguousarray(offsets, dtype=np.int64),
            wavelength_step,
        )

    def __len__(self) -> int:
        return len(self.src)

    def path(self, i: int) -> IntArray:
        """Hops of circuit `i`, int32 (k,)."""
        return self.hops[self.hop_offsets[i] : self.hop_offsets[i + 1]]

    def num_hops(self) -> IntArray:
        """Hops of every circuit, int64 (n,)."""
        return np.diff(self.hop_offsets)

    def hop_owner(self) -> IntArray:
        """Circuit that each entry of `hops` belongs to, int64 (len(hops),)."""
        return np.repeat(np.arange(len(self)), self.num_hops())

    def take(self, rows: Any) -> Circuits:
        """The given rows (indices or mask), paths included."""
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        counts = self.num_hops()[rows]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        return Circuits(
            self.transfer[rows],
            self.src[rows],
            self.dst[rows],
            self.port[rows],
            self.wavelength_lo[rows],
            self.wavelength_n[rows],
            self.hops[np.repeat(self.hop_offsets[rows], counts) + within],
            offsets,
            self.wavelength_step,
        )


def concatenate_circuits(parts: Iterable[Circuits]) -> Circuits:
    """Several lists of circuits (of one wavelength step) as one, in order."""
    parts = list(parts)
    ends = np.cumsum([0] + [len(p.hops) for p in parts])
    offsets = [p.hop_offsets[:-1] + end for p, end in zip(parts, ends[:-1], strict=True)]
    names = ("transfer", "src", "dst", "port", "wavelength_lo", "wavelength_n", "hops")
    columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in names}
    return Circuits(
        **columns, hop_offsets=np.concatenate([*offsets, ends[-1:]]), wavelength_step=parts[0].wavelength_step
    )


# --- what light can do ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of thing that circuits occupy, `count` alike ones of it.

    Args:
        kind: laser, photodiode, tx_port, rx_port, waveguide, fibre, subnet, switch_port or link.
        count: how many there are [count]; large fabrics compute their resources, they do not list them.
        capacity: circuits a round that one may carry (on each wavelength if `per_wavelength`); bits a second if `shared`.
        per_wavelength: whether different wavelengths pass side by side.
        shared: packets share it (electrical links); light never does.
        once_per_job: set once for the whole job: all circuits that ever use it must agree on its setting.
        splits: passive optics that hand one signal to many: circuits of one signal (same sender, port, wavelengths and
            data, stored and not added) count once.
    """

    kind: str
    count: int
    capacity: float = 1
    per_wavelength: bool = True
    shared: bool = False
    once_per_job: bool = False
    splits: bool = False


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
    parameters: Mapping[str, Any] = field(default_factory=lambda: _NO_PARAMETERS)
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


@dataclass(frozen=True, slots=True)
class CircuitPlan:
    """A schedule and the light that carries it.

    Args:
        fabric: where it runs.
        schedule: what it carries.
        rounds: step index -> circuits of each round; the circuits of a round stand at the same time, a step that does not
            fit takes several rounds. On packet fabrics a circuit is a route.
    """

    fabric: Fabric
    schedule: Schedule
    rounds: Callable[[int], tuple[Circuits, ...]]


# --- what the judges say ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule.

    Args:
        rule: its name.
        step: step index, -1 at the end of the schedule.
        round: round within the step, -1 if it is none.
        where: node, chunk, resource and wavelength, in words.
        expected: what the rule demands.
        found: what the plan does.
        count: how often the rule is broken in the same way in that round.
    """

    rule: str
    step: int
    round: int
    where: str
    expected: str
    found: str
    count: int = 1

    def __str__(self) -> str:
        at = (
            "at the end" if self.step < 0 else f"step {self.step}" + (f" round {self.round}" if self.round >= 0 else "")
        )
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.rule}: {at}, {self.where}: expected {self.expected}, found {self.found}{times}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge found.

    Args:
        violations: empty if the plan is right.
        transfers: transfers looked at [count].
        circuits: circuits looked at [count].
        chunks: chunks followed through all steps [count].
        exhaustive: True if every chunk and every step was looked at, False if a seeded sample was.
        notes: totals and remarks, a line each.
    """

    violations: tuple[Violation, ...]
    transfers: int
    circuits: int
    chunks: int
    exhaustive: bool
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.violations

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        scope = "all chunks" if self.exhaustive else "a seeded sample of the chunks"
        looked = f"{self.transfers:,} transfers, {self.circuits:,} circuits, {self.chunks:,} chunks followed ({scope})"
        if self.ok:
            return f"verified: {looked}"
        lines = [f"refused: {len(self.violations)} violation(s) in {looked}"]
        return "\n".join(lines + [f"  {v}" for v in self.violations] + [f"  {n}" for n in self.notes])

    def raise_if_bad(self) -> Verdict:
        """Itself, if the plan is right.

        Raises: VerificationError: it is not.
        """
        if not self.ok:
            from opticcl.errors import VerificationError

            raise VerificationError(self)
        return self


_HEADS = {"reconfiguration_s": "reconf."}  # names that are wider than their column


@dataclass(frozen=True, slots=True)
class Timeline:
    """How long it takes and why: one row a run of equal steps; rows tell the times of all steps of the run together.

    Args:
        steps: the runs, in order.
        rounds: rounds in each run, int64 (rows,).
        reconfiguration_s, latency_s, transfer_s, compute_s, control_s: float64 (rows,) [s].
        lower_bound_s: no schedule of this collective on this fabric can be faster [s].
        assumptions: what was assumed, by name.
    """

    steps: tuple[range, ...]
    rounds: IntArray
    reconfiguration_s: npt.NDArray[np.float64]
    latency_s: npt.NDArray[np.float64]
    transfer_s: npt.NDArray[np.float64]
    compute_s: npt.NDArray[np.float64]
    control_s: npt.NDArray[np.float64]
    lower_bound_s: float = 0.0
    assumptions: Mapping[str, Any] = field(default_factory=dict)

    PARTS = ("reconfiguration_s", "latency_s", "transfer_s", "compute_s", "control_s")

    @property
    def num_steps(self) -> int:
        """Steps in all [count]."""
        return sum(map(len, self.steps))

    @property
    def num_rounds(self) -> int:
        """Rounds in all [count]."""
        return int(self.rounds.sum())

    @property
    def step_s(self) -> npt.NDArray[np.float64]:
        """Time of each run of steps, float64 (rows,) [s]."""
        return np.sum([getattr(self, p) for p in self.PARTS], axis=0, dtype=np.float64)

    @property
    def total_s(self) -> float:
        """Time of the whole [s]."""
        return float(self.step_s.sum())

    def totals(self) -> dict[str, float]:
        """Time of each part [s], by name."""
        return {part: float(getattr(self, part).sum()) for part in self.PARTS}

    def __iter__(self) -> Iterator[tuple[range, int, dict[str, float]]]:
        for i, steps in enumerate(self.steps):
            yield steps, int(self.rounds[i]), {p: float(getattr(self, p)[i]) for p in self.PARTS}

    def __str__(self) -> str:
        from opticcl.units import format_seconds

        def line(label: str, rounds: Any, parts: Iterable[float], total: float) -> str:
            cells = [f"{label:<16}", f"{rounds:>9}", *(f"{format_seconds(t):>12}" for t in (*parts, total))]
            return " ".join(cells)

        head = [
            f"{'steps':<16}",
            f"{'rounds':>9}",
            *(f"{_HEADS.get(p, p.removesuffix('_s')):>12}" for p in (*self.PARTS, "total")),
        ]
        rows = [
            line(
                f"{s.start}" if len(s) == 1 else f"{s.start}..{s.stop - 1}", rounds, parts.values(), sum(parts.values())
            )
            for s, rounds, parts in self
        ]
        return "\n".join([" ".join(head), *rows, line("all", self.num_rounds, self.totals().values(), self.total_s)])
