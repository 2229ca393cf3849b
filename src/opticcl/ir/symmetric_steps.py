"""Steps that are too large to list: the transfers of one rank define those of all ranks, as images under symmetries.

    moves       permutations of ranks, with permutations of chunks, that commute; each rank is the image of rank 0 under
                exactly one product of their powers
    step        the transfers of rank 0, and their images under all products of powers
    rounds      the circuits of some senders, and their images under moves of the machine: of its nodes, ports, wavelengths
                and hops

It is a definition, as that of a `Run`, not a claim: a direct exchange among 65,536 nodes is 65,535 rows in place of 4.3e9. The
verifier checks that the moves are what they must be, and that the fabric is what it was after a move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir._common import IntArray
from opticcl.ir.circuits import Circuits
from opticcl.ir.schedule import Schedule, Transfers
from opticcl.ir.symmetry import Bundles, Symmetry

__all__ = [
    "MOST_LISTED",
    "LightMove",
    "Moves",
    "SymmetricRounds",
    "SymmetricStep",
    "SymmetricSteps",
    "first_of_orbit",
    "symmetric_step",
    "symmetric_steps",
]

MOST_LISTED = 1 << 21
"""Transfers of a step that are listed row by row, where symmetries could define them: about 40 MB [count]."""


class Moves:
    """Permutations of ranks and chunks that commute, under which each rank is one image of rank 0.

    Chunks that every permutation moves in `Bundles` go together: images are those of bundles, however many chunks these have.

    Args:
        symmetries: the permutations.
        num_ranks: of the collective [count].
        num_chunks: of the collective [count].
    """

    def __init__(self, symmetries: Sequence[Symmetry], num_ranks: int, num_chunks: int) -> None:
        self.symmetries, self.num_ranks, self.num_chunks = tuple(symmetries), num_ranks, num_chunks

    @cached_property
    def ranks(self) -> tuple[IntArray, ...]:
        """Images of all ranks under each of them, int64 (num_ranks,)."""
        return tuple(one.ranks.images(self.num_ranks) for one in self.symmetries)

    @cached_property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """Bundles in order, as of `Bundles`; chunks alone where some permutation moves them alone.

        Raises: ParameterError: bundles of another number of chunks.
        """
        found = {one.chunks.runs if isinstance(one.chunks, Bundles) else () for one in self.symmetries}
        turned = any(isinstance(one.chunks, Bundles) and one.chunks.turn for one in self.symmetries)
        if len(found) != 1 or found == {()} or turned:
            return ((self.num_chunks, 1),)
        runs = found.pop()
        if sum(many * wide for many, wide in runs) != self.num_chunks:
            raise ParameterError(f"symmetry: bundles {runs} do not hold {self.num_chunks} chunks")
        return runs

    @cached_property
    def first_chunk(self) -> IntArray:
        """First chunk of each bundle and, at the end, the number of chunks, int64 (bundles + 1,)."""
        return np.cumsum(np.r_[0, np.repeat([wide for _, wide in self.runs], [many for many, _ in self.runs])])

    @cached_property
    def bundles(self) -> tuple[IntArray, ...]:
        """Images of all bundles under each permutation, int64 (bundles,)."""
        count, alone = len(self.first_chunk) - 1, self.runs == ((self.num_chunks, 1),)
        moves = (
            one.chunks.inner if isinstance(one.chunks, Bundles) and not alone else one.chunks for one in self.symmetries
        )
        return tuple(move.images(count) for move in moves)

    def bundle_of(self, chunks: IntArray) -> IntArray:
        """Bundle of each chunk, int64 (n,)."""
        if self.runs == ((self.num_chunks, 1),):
            return chunks
        found, chunk, bundle = np.zeros(len(chunks), np.int64), 0, 0
        for many, wide in self.runs:
            inside = chunks >= chunk
            found[inside] = bundle + (chunks[inside] - chunk) // wide
            chunk, bundle = chunk + many * wide, bundle + many
        return found

    @cached_property
    def orders(self) -> tuple[int, ...]:
        """Powers of each until rank 0 is at its place again [count]."""
        found = []
        for images in self.ranks:
            at, turns = int(images[0]), 1
            while at:
                at, turns = int(images[at]), turns + 1
            found.append(turns)
        return tuple(found)

    @cached_property
    def reached(self) -> IntArray:
        """Image of rank 0 under each product of powers, int64 (products,); the power of the first permutation varies fastest.

        Raises: ParameterError: they are not as many products as ranks.
        """
        if prod(self.orders) != self.num_ranks:
            raise ParameterError(
                f"symmetry: {prod(self.orders)} products of powers of orders {self.orders} for {self.num_ranks} ranks"
            )
        return self._walked(np.zeros(1, np.int64), self.ranks)

    def _walked(self, start: IntArray, images: Sequence[IntArray]) -> IntArray:
        """Image of one element under each product of powers, in the order of `reached`."""
        found = start
        for image, order in zip(images, self.orders, strict=True):
            turned = [found]
            for _ in range(order - 1):
                turned.append(image[turned[-1]])
            found = np.concatenate(turned)
        return found

    @cached_property
    def _powers(self) -> IntArray:
        """Power of each permutation that takes rank 0 to each rank, int32 (permutations, num_ranks)."""
        powers = np.empty((len(self.orders), self.num_ranks), np.int32)
        product = np.arange(self.num_ranks)
        for row, order in zip(powers, self.orders, strict=True):
            row[self.reached] = product % order
            product = product // order
        return powers

    def rank_images(self, of: IntArray, ranks: IntArray) -> IntArray:
        """Images of ranks under the products that take rank 0 to the ranks `of`, int64 (n,)."""
        place = np.zeros(len(of), np.int32)
        # in place, one permutation at a time: there may be millions of ranks
        for row, order in zip(self._powers[::-1], self.orders[::-1], strict=True):
            power = row[of]
            power += row[ranks]
            power %= order
            place *= order
            place += power
        return self.reached[place]

    def back(self, ranks: IntArray) -> IntArray:
        """Ranks whose products take these ranks to rank 0, int64 (n,)."""
        place = np.zeros(len(ranks), np.int64)
        for row, order in zip(self._powers[::-1], self.orders[::-1], strict=True):
            place = place * order + -row[ranks] % order
        return self.reached[place]

    @cached_property
    def _bundle_tables(self) -> tuple[IntArray, ...]:
        """Images of all bundles under each power, int32 (order, bundles)."""
        tables = []
        for image, order in zip(self.bundles, self.orders, strict=True):
            table = np.empty((order, len(image)), np.int32)
            table[0] = np.arange(len(image))
            for power in range(1, order):
                table[power] = image[table[power - 1]]
            tables.append(table)
        return tuple(tables)

    def bundle_images(self, of: IntArray, bundles: IntArray) -> IntArray:
        """Images of bundles under the products that take rank 0 to the ranks `of`, int32 (n,)."""
        for table, power in zip(self._bundle_tables, self._powers, strict=True):
            bundles = table[power[of], bundles]
        return bundles

    def before(self, chunk: int) -> IntArray:
        """The chunk whose image is this one under the product that takes rank 0 to each rank, int64 (num_ranks,)."""
        inverse = []
        for image in self.bundles:
            back = np.empty_like(image)
            back[image] = np.arange(len(image))
            inverse.append(back)
        bundle = self.bundle_of(np.full(1, chunk))
        found = np.empty(self.num_ranks, np.int64)
        found[self.reached] = self.first_chunk[self._walked(bundle, inverse)]
        return found + (chunk - self.first_chunk[bundle])


@dataclass(frozen=True, slots=True, eq=False)
class SymmetricStep:
    """A step: the transfers of rank 0 and their images.

    Args:
        first: transfers that rank 0 sends.
        moves: what the images are taken under.
    """

    first: Transfers
    moves: Moves

    def __len__(self) -> int:
        return self.moves.num_ranks * len(self.first)

    def __repr__(self) -> str:
        return f"<SymmetricStep of {len(self):,} transfers>"

    def sent_by(self, senders: IntArray) -> Transfers:
        """Transfers of some senders, one sender after the other, in the order of those of rank 0.

        Raises: ParameterError: the image of a range of chunks is no range.
        """
        row = np.tile(np.arange(len(self.first)), len(senders))
        return self._images(np.repeat(senders, len(self.first)), row)

    def received_by_first(self) -> Transfers:
        """Transfers that rank 0 receives."""
        return self._images(self.moves.back(self.first.dst), np.arange(len(self.first)))

    def carrying(self, chunk: int) -> Transfers:
        """Transfers of the step that carry a chunk, with this chunk alone."""
        t = self.first
        origin = self.moves.before(chunk)
        order = np.argsort(origin, kind="stable").astype(np.int32)
        lo = t.chunk_lo.astype(np.int64)
        step = np.ones(len(t), np.int64) if t.chunk_step is None else t.chunk_step.astype(np.int64)
        ends = [np.searchsorted(origin[order], edge) for edge in (lo, lo + (t.chunk_n - 1) * step + 1)]
        many = ends[1] - ends[0]
        row = np.repeat(np.arange(len(t), dtype=np.int32), many)
        rank = order[np.arange(len(row)) - np.repeat(np.cumsum(many) - many - ends[0], many)]
        if t.chunk_step is not None:
            kept = (origin[rank] - lo[row]) % step[row] == 0
            rank, row = rank[kept], row[kept]
        parts = None if t.parts is None else t.parts[row]
        dst = self.moves.rank_images(rank, t.dst[row])
        return Transfers.of(rank, dst, chunk, 1, t.op[row], parts)

    def _images(self, of: IntArray, row: IntArray) -> Transfers:
        """Images of rows under the products that take rank 0 to the ranks `of`.

        Raises: ParameterError: the image of a range of chunks is no range.
        """
        t = self.first
        if t.chunk_step is not None:
            raise ParameterError("symmetry: transfers of every k-th chunk have no images as ranges; list neighbours")
        moves = self.moves
        first, last = moves.bundle_of(t.chunk_lo), moves.bundle_of(t.chunk_lo + t.chunk_n - 1)
        many, first = (last - first + 1)[row], first[row]
        low = moves.bundle_images(of, first)
        high = low.copy()
        wide = np.flatnonzero(many > 1)
        for nth in range(1, int(many.max(initial=0))):
            wide = wide[many[wide] > nth]
            image = moves.bundle_images(of[wide], first[wide] + nth)
            low[wide], high[wide] = np.minimum(low[wide], image), np.maximum(high[wide], image)
        if ((high - low + 1) != many).any():
            raise ParameterError("symmetry: the image of a range of chunks is no range; list chunk by chunk")
        parts = None if t.parts is None else t.parts[row]
        dst = moves.rank_images(of, t.dst[row])
        return Transfers.of(of, dst, moves.first_chunk[low], t.chunk_n[row], t.op[row], parts)


class SymmetricSteps:
    """The step function of a schedule some of whose steps are too large to list.

    Args:
        moves: under which all steps are what they were.
        first: step index -> transfers of rank 0; pure.
        listed: step index -> all transfers; pure, for steps that are small enough.
        most_listed: transfers of a step that is listed [count].
    """

    def __init__(
        self,
        moves: Moves,
        first: Callable[[int], Transfers],
        listed: Callable[[int], Transfers],
        most_listed: int = MOST_LISTED,
    ) -> None:
        self.moves, self.first, self.listed, self.most_listed = moves, first, listed, most_listed

    def of(self, i: int) -> SymmetricStep:
        """Step i by the transfers of rank 0."""
        return SymmetricStep(self.first(i), self.moves)

    def is_listed(self, i: int) -> bool:
        """Whether step i is small enough to list."""
        return len(self.of(i)) <= self.most_listed

    def __call__(self, i: int) -> Transfers:
        """Step i, row by row.

        Raises: UnsupportedError: there are too many rows.
        """
        if not self.is_listed(i):
            raise UnsupportedError(
                f"step {i}: {len(self.of(i)):,} transfers, which symmetries define, are not listed; at most "
                f"{self.most_listed:,} are; try fewer nodes, or an algorithm of more steps"
            )
        return self.listed(i)


def symmetric_steps(schedule: Schedule) -> SymmetricSteps | None:
    """The definition of a schedule with a step that is too large to list; None where all are listed."""
    inner = getattr(schedule.step, "function", schedule.step)
    if isinstance(inner, SymmetricSteps) and not all(map(inner.is_listed, range(schedule.num_steps))):
        return inner
    return None


def symmetric_step(schedule: Schedule, i: int) -> SymmetricStep | None:
    """Step i by the transfers of rank 0, where it is too large to list; else None."""
    inner = getattr(schedule.step, "function", schedule.step)
    return inner.of(i) if isinstance(inner, SymmetricSteps) and not inner.is_listed(i) else None


@dataclass(frozen=True, slots=True, eq=False)
class LightMove:
    """A permutation of what circuits are made of.

    Args:
        nodes: image of each node, int64 (nodes,).
        ports: of each port, int64 (ports_per_node,).
        wavelengths: of each wavelength, int64 (num_wavelengths,).
        hops: of each number that a path may have, int64 (hops,).
    """

    nodes: IntArray
    ports: IntArray
    wavelengths: IntArray
    hops: IntArray

    @property
    def columns(self) -> tuple[IntArray, ...]:
        """All four."""
        return self.nodes, self.ports, self.wavelengths, self.hops

    def of(self, circuits: Circuits) -> Circuits:
        """The image of circuits of one wavelength each."""
        return Circuits.of(
            circuits.transfer,
            self.nodes[circuits.src],
            self.nodes[circuits.dst],
            self.ports[circuits.port],
            self.wavelengths[circuits.wavelength_lo],
            circuits.wavelength_n,
            (self.hops[circuits.hops], circuits.hop_offsets),
        )


@dataclass(frozen=True, slots=True, eq=False)
class SymmetricRounds:
    """Rounds of circuits of a `SymmetricStep`: those of some senders, and their images under all products of the moves.

    Args:
        senders: one rank of each set of ranks that the moves join, int64 (senders,).
        rounds: circuits of each round; they carry rows of `SymmetricStep.sent_by(senders)`.
        moves: they commute.
    """

    senders: IntArray
    rounds: tuple[Circuits, ...]
    moves: tuple[LightMove, ...]


def first_of_orbit(images: Sequence[IntArray], count: int) -> IntArray:
    """Least element that permutations which commute take each element to, int64 (count,).

    Args:
        images: of all elements, (count,) each.
        count: of elements.

    >>> first_of_orbit([np.array([1, 0, 3, 2])], 4).tolist()
    [0, 0, 2, 2]
    """
    least = np.arange(count)
    for image in images:
        power = image
        while True:  # the least of 2 k powers from that of k
            lower = np.minimum(least, least[power])
            if np.array_equal(lower, least):
                break
            least, power = lower, power[power]
    return least
