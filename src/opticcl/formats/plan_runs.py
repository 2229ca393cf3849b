"""Runs of steps and claimed symmetries in the header of a plan file.

A ring of 65,536 nodes has 131,070 steps of two kinds. Its file holds the first step of each run; the header says how many there
are and how the chunks move from step to step. That is a definition, as in `opticcl.ir.symmetry.Run`. Symmetries are claims,
which the verifier checks.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import msgspec
import numpy as np

from opticcl.errors import OpticclError
from opticcl.ir import CircuitPlan, Collective, IntArray, Transfers
from opticcl.ir.circuit_plan import ClassRounds
from opticcl.ir.symmetry import Bundles, Digits, Permutation, Run, Symmetry, Table, Through, Xor

__all__ = [
    "RunHeader",
    "SymmetryHeader",
    "num_file_steps",
    "read_runs",
    "read_symmetries",
    "run_headers",
    "symmetry_headers",
    "written_runs",
]

MOST_RADICES = 64  # digits of a number of chunks; more would all be 1
MOST_SYMMETRIES = 256  # generators; 2^32 chunks need 32
MOST_BESIDE = 64  # runs side by side


class DigitsHeader(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="kind", tag="digits"):
    """One digit of a mixed-radix number moved by a constant.

    Args:
        radices: of all digits, the most significant first.
        digit: position of the digit.
        add: added to it, modulo its radix.
    """

    radices: list[int]
    digit: int
    add: int


class XorHeader(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="kind", tag="xor"):
    """Exclusive or.

    Args: mask: of all bits.
    """

    mask: int


class TableHeader(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="kind", tag="table"):
    """Every image.

    Args: values: image of each element: differences to the one before, little-endian int32, deflated, in base 64.
    """

    values: str


class ThroughHeader(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="kind", tag="through"):
    """A permutation of labels.

    Args:
        label: of each element, encoded as the values of a table.
        inner: permutation of the labels.
    """

    label: str
    inner: DigitsHeader | XorHeader


PermutationHeader = DigitsHeader | XorHeader | TableHeader | ThroughHeader


class MemberHeader(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Transfers of a step that a shift moves.

    Args:
        first_transfer: their least number in column `transfer`; the next member's is above all of them.
        shift: from step to step, permutation of the chunks; None: no chunk changes.
        parts_step: added to `parts` from step to step [count].
    """

    first_transfer: int = 0
    shift: PermutationHeader | None = None
    parts_step: int = 0


class RunHeader(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A step of the file that stands for several steps of the plan.

    Args:
        step: number in column `step`.
        count: steps that it stands for, >= 1 [count].
        members: of the run; one unless shifts differ.
    """

    step: int
    count: int
    members: list[MemberHeader]


class SymmetryHeader(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A claim.

    Args:
        ranks: permutation of the ranks.
        chunks: permutation of the chunks.
    """

    ranks: PermutationHeader
    chunks: PermutationHeader


# --- to the header ----------------------------------------------------------------------------------------------------


def written_runs(plan: CircuitPlan) -> list[tuple[int, int, Run | None]]:
    """First step, number of steps, and the run, or None for a single step, of each step that a file of the plan has.

    A run is kept where its steps have the same circuits by definition; otherwise each of its steps is written.
    """
    schedule, found = plan.schedule, []
    defined = set(plan.rounds.classes) if isinstance(plan.rounds, ClassRounds) else set()
    start, runs = 0, getattr(schedule.step, "runs", ())
    for run in runs if sum(run.count for run in runs) == schedule.num_steps else ():
        if run.count > 1 and range(start, start + run.count) in defined:
            found.append((start, run.count, run))
        else:
            found += [(i, 1, None) for i in range(start, start + run.count)]
        start += run.count
    return found or [(i, 1, None) for i in range(schedule.num_steps)]


def run_headers(written: Sequence[tuple[int, int, Run | None]]) -> list[RunHeader]:
    """Of the steps of a file that stand for several; `written` as `written_runs` returns it."""
    found = []
    for step, (_, count, run) in enumerate(written):
        if run is None:
            continue
        sizes = [len(member.base()) for member in run.members] if run.beside else [0]
        starts = np.cumsum([0, *sizes])[:-1].tolist()
        members = [
            MemberHeader(first, None if member.shift is None else _permutation_header(member.shift), member.parts_step)
            for first, member in zip(starts, run.members, strict=True)
        ]
        found.append(RunHeader(step, count, members))
    return found


def symmetry_headers(symmetries: Sequence[Symmetry]) -> list[SymmetryHeader]:
    """The claims of a schedule."""
    return [SymmetryHeader(_permutation_header(one.ranks), _permutation_header(one.chunks)) for one in symmetries]


def _permutation_header(given: Permutation) -> PermutationHeader:
    if isinstance(given, Digits):
        return DigitsHeader(list(map(int, given.radices)), int(given.digit), int(given.add))
    if isinstance(given, Xor):
        return XorHeader(int(given.mask))
    if isinstance(given, Table):
        return TableHeader(_pack(given.values))
    if isinstance(given, Bundles):
        return TableHeader(_pack(given.images(given.count)))
    label = np.asarray(given.label)
    inner = _permutation_header(given.inner)
    if not isinstance(inner, DigitsHeader | XorHeader):
        return TableHeader(_pack(given.images(len(label))))
    return inner if np.array_equal(label, np.arange(len(label))) else ThroughHeader(_pack(label), inner)


def _pack(values: IntArray) -> str:
    differences = np.diff(np.asarray(values, np.int64), prepend=0).astype("<i4")
    return base64.b64encode(zlib.compress(differences.tobytes(), 9)).decode("ascii")


# --- from the header --------------------------------------------------------------------------------------------------


def num_file_steps(num_steps: int, runs: Sequence[RunHeader], collective: tuple[int, int]) -> int:
    """Steps of the file, of a plan of `num_steps`.

    Args:
        num_steps: of the plan [count].
        runs: of the header.
        collective: its ranks and chunks [count].
    Raises: ValueError: a count, step or member that no plan has.
    """
    most = sum(collective)
    for number, run in enumerate(runs):
        name = f"runs[{number}]"
        if not 1 <= run.count <= most:
            raise ValueError(f"{name}.count={run.count} is not 1 to {most:,}, the ranks and chunks together")
        if number and run.step <= runs[number - 1].step:
            raise ValueError(f"{name}.step={run.step} does not follow {runs[number - 1].step}; sort runs by step")
        if not 1 <= len(run.members) <= MOST_BESIDE:
            raise ValueError(f"{name}.members has {len(run.members)} entries; 1 to {MOST_BESIDE}")
        firsts = [member.first_transfer for member in run.members]
        if firsts[0] != 0 or any(one >= other for one, other in pairwise(firsts)):
            raise ValueError(f"{name}.members: first_transfer={firsts}; they begin with 0 and ascend")
    found = num_steps - sum(run.count - 1 for run in runs)
    if runs and not 0 <= runs[0].step <= runs[-1].step < found:
        raise ValueError(
            f"runs[{len(runs) - 1}].step={runs[-1].step} and num_steps={num_steps} leave {found} steps of rows"
        )
    return found


def read_runs(
    headers: Sequence[RunHeader],
    num_steps: int,
    base: Callable[[int], tuple[Transfers, IntArray]],
    collective: Collective,
) -> tuple[Run, ...]:
    """The runs of a plan.

    Args:
        headers: of the file; `num_file_steps` has accepted them.
        num_steps: steps of the file [count].
        base: step of the file -> its transfers, and their numbers in column `transfer`.
        collective: what the plan claims to do.
    Raises: ValueError: a shift that is no permutation of the chunks, or a growing number of parts that are not kept apart.
    """
    of_step = {header.step: (number, header) for number, header in enumerate(headers)}
    found = []
    for step in range(num_steps):
        number, header = of_step.get(step, (-1, None))
        if header is None:
            found.append(Run(lambda step=step: _kept_apart(base(step)[0], collective)))  # type: ignore[misc]
            continue
        members = []
        for place, member in enumerate(header.members):
            name = f"runs[{number}].members[{place}]"
            if member.parts_step and not collective.keeps_apart:
                raise ValueError(
                    f"{name}.parts_step={member.parts_step}: {collective.name} does not keep parts apart; try 0"
                )
            if abs(member.parts_step) * header.count >= 2**31:
                raise ValueError(f"{name}.parts_step={member.parts_step} leads beyond 32 bits")
            shift = None if member.shift is None else _permutation(member.shift, collective.num_chunks, f"{name}.shift")
            last = header.members[place + 1].first_transfer if place + 1 < len(header.members) else 2**62
            members.append(
                Run(
                    lambda step=step, first=member.first_transfer, last=last: _between(  # type: ignore[misc]
                        *base(step), first, last, collective
                    ),
                    header.count,
                    shift,
                    member.parts_step,
                )
            )
        found.append(Run(members[0].base, header.count, members[0].shift, members[0].parts_step, tuple(members[1:])))
    return tuple(found)


def read_symmetries(headers: Sequence[SymmetryHeader], collective: Collective) -> tuple[Symmetry, ...]:
    """The claims of a plan, which the verifier will check.

    Args:
        headers: of the file.
        collective: what the plan claims to do.
    Raises: ValueError: a claim that is no pair of permutations of the ranks and chunks.
    """
    if len(headers) > MOST_SYMMETRIES:
        raise ValueError(f"symmetries has {len(headers):,} entries; at most {MOST_SYMMETRIES}")
    return tuple(
        Symmetry(
            _permutation(one.ranks, collective.num_ranks, f"symmetries[{number}].ranks"),
            _permutation(one.chunks, collective.num_chunks, f"symmetries[{number}].chunks"),
        )
        for number, one in enumerate(headers)
    )


def _kept_apart(transfers: Transfers, collective: Collective) -> Transfers:
    """With a column of parts where the collective keeps them apart."""
    if transfers.parts is not None or not collective.keeps_apart:
        return transfers
    return replace(transfers, parts=np.ones(len(transfers), np.int32))


def _between(transfers: Transfers, numbers: IntArray, first: int, last: int, collective: Collective) -> Transfers:
    """Transfers whose numbers are first, ..., last - 1.

    Args:
        transfers: of a step.
        numbers: in column `transfer`.
        first, last: the range.
        collective: of the plan.
    """
    whole = _kept_apart(transfers, collective)
    inside = (numbers >= first) & (numbers < last)
    return whole if inside.all() else whole.take(inside)


def _permutation(header: PermutationHeader, count: int, name: str) -> Permutation:
    """A permutation of `count` elements; its images are evaluated, so that a wrong one is refused here."""
    try:
        found = _built(header, count)
        found.images(count)
    except (OpticclError, ValueError, zlib.error, OverflowError) as error:
        raise ValueError(f"{name}: {error}") from None
    return found


def _built(header: PermutationHeader, count: int) -> Permutation:
    if isinstance(header, DigitsHeader):
        if not 1 <= len(header.radices) <= MOST_RADICES or min(header.radices) < 1:
            raise ValueError(f"radices={header.radices[:8]}: 1 to {MOST_RADICES} numbers of 1 or more")
        if not -(2**31) <= header.add < 2**31:
            raise ValueError(f"add={header.add} is beyond 32 bits")
        return Digits(tuple(header.radices), header.digit, header.add)
    if isinstance(header, XorHeader):
        if not 0 <= header.mask < max(count, 1):
            raise ValueError(f"mask={header.mask} is not 0 to {count - 1}")
        return Xor(header.mask)
    if isinstance(header, TableHeader):
        return Table(_unpack(header.values, count))
    return Through(_unpack(header.label, count), _built(header.inner, count))


def _unpack(text: str, count: int) -> IntArray:
    inflate = zlib.decompressobj()
    raw = inflate.decompress(base64.b64decode(text, validate=True), 4 * count + 1)
    if len(raw) != 4 * count:
        raise ValueError(f"not {count:,} values")
    return np.cumsum(np.frombuffer(raw, "<i4").astype(np.int64))
