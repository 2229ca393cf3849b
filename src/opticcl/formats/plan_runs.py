"""Runs of steps in the header of a plan file of version 1 to 3.

The file holds the first step of each run; the header says how many steps it stands for and how the chunks move from step to
step. Files of later versions hold phases instead (`opticcl.formats.plan_phases`). Symmetries were claims that the verifier
checked; nothing rests on them now, and they are not read.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod

import msgspec
import numpy as np

from opticcl.ir import Collective, IntArray, Transfers

__all__ = ["RunHeader", "SymmetryHeader", "num_file_steps", "read_runs"]

MOST_RADICES = 64  # digits of a number of chunks; more would all be 1
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
    steps = num_steps - sum(run.count - 1 for run in runs)
    if runs and not 0 <= runs[0].step <= runs[-1].step < steps:
        raise ValueError(
            f"runs[{len(runs) - 1}].step={runs[-1].step} and num_steps={num_steps} leave {steps} steps of rows"
        )
    return steps


def read_runs(
    headers: Sequence[RunHeader],
    num_steps: int,
    base: Callable[[int], tuple[Transfers, IntArray]],
    collective: Collective,
) -> tuple[Callable[[int], Transfers], tuple[range, ...], bool]:
    """The steps of a plan.

    Args:
        headers: of the file; `num_file_steps` has accepted them.
        num_steps: steps of the file [count].
        base: step of the file -> its transfers, and their numbers in column `transfer`.
        collective: what the plan claims to do.
    Returns: a function of the step; the steps that each step of the file stands for; whether contributions grow from step to
        step.
    Raises: ValueError: a shift that is no permutation of the chunks, or a growing number of parts that are not kept apart.
    """
    of_step = {header.step: (number, header) for number, header in enumerate(headers)}
    counts = [of_step[step][1].count if step in of_step else 1 for step in range(num_steps)]
    starts = np.cumsum([0, *counts])
    shifts: dict[int, list[IntArray | None]] = {}
    for number, header in enumerate(headers):
        shifts[header.step] = []
        for place, member in enumerate(header.members):
            name = f"runs[{number}].members[{place}]"
            if member.parts_step and not collective.keeps_apart:
                raise ValueError(
                    f"{name}.parts_step={member.parts_step}: {collective.name} does not keep parts apart; try 0"
                )
            if abs(member.parts_step) * header.count >= 2**31:
                raise ValueError(f"{name}.parts_step={member.parts_step} leads beyond 32 bits")
            shift = None if member.shift is None else _images(member.shift, collective.num_chunks, f"{name}.shift")
            shifts[header.step].append(shift)

    def step(i: int) -> Transfers:
        number = int(np.searchsorted(starts, i, side="right")) - 1
        transfers, numbers = base(number)
        transfers = _kept_apart(transfers, collective)
        if i == starts[number]:  # also of each step that is no run
            return transfers
        times, (_, header) = i - int(starts[number]), of_step[number]
        member = np.searchsorted([one.first_transfer for one in header.members], numbers, side="right") - 1
        lo, parts = transfers.chunk_lo.copy(), None if transfers.parts is None else transfers.parts.copy()
        for at, (one, shift) in enumerate(zip(header.members, shifts[number], strict=True)):
            rows = member == at
            if shift is not None:
                lo[rows] = _power(shift, times)[lo[rows]]
            if parts is not None:
                parts[rows] += times * one.parts_step
        return replace(transfers, chunk_lo=lo, parts=parts)

    classes = tuple(range(int(a), int(b)) for a, b in pairwise(starts))
    return step, classes, any(member.parts_step for header in headers for member in header.members)


def _kept_apart(transfers: Transfers, collective: Collective) -> Transfers:
    """With a column of parts where the collective keeps them apart."""
    if transfers.parts is not None or not collective.keeps_apart:
        return transfers
    return replace(transfers, parts=np.ones(len(transfers), np.int32))


def _power(images: IntArray, exponent: int) -> IntArray:
    """Images under a permutation applied `exponent` times, int64 (n,), by repeated squaring."""
    result, base = np.arange(len(images)), images
    while exponent:
        if exponent & 1:
            result = base[result]
        base = base[base]
        exponent >>= 1
    return result


def _images(header: PermutationHeader, count: int, name: str) -> IntArray:
    """Image of each of `count` elements, int64 (count,).

    Args:
        header: of a permutation.
        count: elements [count].
        name: of the field, for messages.
    Raises: ValueError: it does not permute them.
    """
    try:
        images = _built(header, count)
        if not np.array_equal(np.sort(images), np.arange(count)):
            raise ValueError(f"symmetry: a table of {len(images)} values does not permute {count} elements")
    except (ValueError, zlib.error, IndexError) as error:
        raise ValueError(f"{name}: {error}") from None
    return images


def _built(header: PermutationHeader, count: int) -> IntArray:
    elements = np.arange(count)
    if isinstance(header, DigitsHeader):
        if not 1 <= len(header.radices) <= MOST_RADICES or min(header.radices) < 1:
            raise ValueError(f"radices={header.radices[:8]}: 1 to {MOST_RADICES} numbers of 1 or more")
        if not -(2**31) <= header.add < 2**31:
            raise ValueError(f"add={header.add} is beyond 32 bits")
        if prod(header.radices) != count or not 0 <= header.digit < len(header.radices):
            raise ValueError(f"digit {header.digit} of {header.radices[:8]} does not permute {count} elements")
        stride, radix = prod(header.radices[header.digit + 1 :]), header.radices[header.digit]
        value = elements // stride % radix
        moved: IntArray = elements + ((value + header.add) % radix - value) * stride
        return moved
    if isinstance(header, XorHeader):
        if not 0 <= header.mask < max(count, 1):
            raise ValueError(f"mask={header.mask} is not 0 to {count - 1}")
        return elements ^ header.mask
    if isinstance(header, TableHeader):
        return _unpack(header.values, count)
    label, element = _unpack(header.label, count), np.empty(count, np.int64)
    element[label] = elements
    images: IntArray = element[_built(header.inner, count)[label]]
    return images


def _unpack(text: str, count: int) -> IntArray:
    inflate = zlib.decompressobj()
    raw = inflate.decompress(base64.b64decode(text, validate=True), 4 * count + 1)
    if len(raw) != 4 * count:
        raise ValueError(f"not {count:,} values")
    return np.cumsum(np.frombuffer(raw, "<i4").astype(np.int64))
