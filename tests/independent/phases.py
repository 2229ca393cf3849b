"""Phases in the header of a plan file, as docs/files.md describes them, for the independent judge.

Imports nothing of the library; `test_judge.py` checks that.
"""

from itertools import pairwise, product
from math import prod
from typing import NamedTuple

import numpy as np

CONSTANT = {
    "src": 0, "dst": 0, "lo": 0, "count": 1, "step": 1, "shift": 0, "part": 0, "unit_lo": 0, "unit_count": 1, "unit_step": 1,
    "op": 0, "parts": 1, "unit_shift": 0, "parts_step": 0,
}  # fmt: skip
OF_DIGITS = ("src", "dst", "lo", "count", "step", "shift")
UNIT = -1


class BadPhasesError(Exception):
    """Phases that define no steps."""


class Sent(NamedTuple):
    """A transfer of a step: ranks, chunks in ascending order, operation, contributions of each chunk."""

    src: int
    dst: int
    chunks: tuple[int, ...]
    op: int
    parts: int


class Phase(NamedTuple):
    """A phase: rows as dictionaries; None: its step is in the rows of the file alone."""

    rows: list[dict] | None
    moves: list[int]
    count: int
    bundles: list[int]
    same_circuits: bool


class Phases:
    """Steps of a plan.

    Args:
        header: field `steps` of the header of a file.
        ranks, chunks: of the collective [count].
        unpacked: (text, count) -> numbers.
    """

    def __init__(self, header, ranks, chunks, unpacked):
        self.radices = header["radices"]
        if not self.radices or min(self.radices) < 1 or prod(self.radices) != ranks:
            raise BadPhasesError(f"digits {self.radices} of {ranks} ranks")
        order = header.get("order")
        self.order = list(range(ranks)) if order is None else np.cumsum(unpacked(order, ranks)).tolist()
        if sorted(self.order) != list(range(ranks)):
            raise BadPhasesError("an order that is none")
        self.parts = header["parts"]
        self.units = [prod(radix for digit, _, radix in part if digit == UNIT) for part in self.parts]
        self.sizes = [prod(radix for _, _, radix in part) for part in self.parts]
        for part in self.parts:
            self._check_part(part)
        if sum(self.sizes) != chunks:
            raise BadPhasesError(f"{sum(self.sizes)} chunks of {chunks}")
        self.phases = [self._phase(one, unpacked) for one in header["phases"]]
        self.starts = [0, *np.cumsum([phase.count for phase in self.phases]).tolist()]

    def _check_part(self, part):
        for digit in {digit for digit, _, _ in part}:
            at = 1
            for stride, radix in sorted((stride, radix) for one, stride, radix in part if one == digit):
                if stride != at or radix < 1:
                    raise BadPhasesError(f"digit {digit} of a part")
                at *= radix
            if digit != UNIT and (not 0 <= digit < len(self.radices) or at != self.radices[digit]):
                raise BadPhasesError(f"digit {digit} of a part")

    def _phase(self, given, unpacked):
        moves, count, rows = given.get("moves", []), given.get("count", 1), given.get("rows")
        if count < 1 or any(not 0 <= digit < len(self.radices) for digit in moves) or len(set(moves)) < len(moves):
            raise BadPhasesError("a phase without steps, or digits that no rank has")
        if rows is None:
            if moves or count != 1:
                raise BadPhasesError("a phase of several steps without rows")
            return Phase(None, [], 1, [0], False)
        n, digits = rows["num_rows"], len(self.radices)
        columns = {}
        for name, usual in CONSTANT.items():
            value, many = rows.get(name, usual), n * digits if name in OF_DIGITS else n
            found = [value] * many if isinstance(value, int) else np.cumsum(unpacked(value, many)).tolist()
            columns[name] = [found[r * digits : (r + 1) * digits] for r in range(n)] if name in OF_DIGITS else found
        listed = [{name: column[r] for name, column in columns.items()} for r in range(n)]
        for row in listed:
            self._check_row(row, moves, count)
        bundles = given.get("bundles", 0)
        first = [0] if bundles == 0 else np.cumsum(np.asarray(unpacked(bundles, None))).tolist()
        if first[0] or any(b <= a for a, b in pairwise(first)) or first[-1] >= n:
            raise BadPhasesError("bundles that do not ascend")
        return Phase(listed, moves, count, first, given.get("same_circuits", False))

    def _check_row(self, row, moves, count):
        for d, radix in enumerate(self.radices):
            if not (0 <= row["src"][d] < radix and 0 <= row["dst"][d] < radix) or (d in moves and row["src"][d]):
                raise BadPhasesError("a place that is none")
        if not 0 <= row["part"] < len(self.parts) or not 0 <= row["op"] <= 3:
            raise BadPhasesError("a part or an operation that does not exist")
        if min(row["parts"], row["parts"] + (count - 1) * row["parts_step"]) < 1:
            raise BadPhasesError("no contribution")
        part, wide = self.parts[row["part"]], 0
        for d in {digit for digit, _, _ in part if digit != UNIT}:
            radix, lo, many, step = self.radices[d], row["lo"][d], row["count"][d], row["step"][d]
            if not 0 <= lo < radix or many < 1 or step < 1 or (many - 1) * step >= radix:
                raise BadPhasesError("a box beyond its digits")
            if many > 1 and many * step != radix:
                wide += 1
                if step > 1 or [d, 1, radix] not in part or wide > 1:
                    raise BadPhasesError("a box that is not a range")
            if count > 1 and d not in moves and row["shift"][d]:
                raise BadPhasesError("a shift of what does not move")
        units, last = self.units[row["part"]], row["unit_lo"] + (row["unit_count"] - 1) * row["unit_step"]
        if row["unit_count"] < 1 or row["unit_step"] < 1 or (row["unit_shift"] and row["unit_count"] > 1):
            raise BadPhasesError("units that are none")
        if not row["unit_shift"] and not 0 <= row["unit_lo"] <= last < units:
            raise BadPhasesError("units that the part does not have")

    @property
    def num_steps(self):
        """Of the plan [count]."""
        return self.starts[-1]

    def file_steps(self):
        """First step and number of steps that each step of the file stands for, and whether the phases define them."""
        found = []
        for phase, start in zip(self.phases, self.starts, strict=False):
            if phase.rows is None:
                found.append((start, 1, False))
                continue
            kinds = [self._kind(phase, k) if phase.same_circuits else k for k in range(phase.count)]
            begins = [k for k in range(phase.count) if not k or kinds[k] != kinds[k - 1] or kinds[k] is None]
            ends = [*begins[1:], phase.count]
            found += [(start + a, b - a, True) for a, b in zip(begins, ends, strict=True)]
        return found

    def _kind(self, phase, k):
        """What two steps of a phase have in common that differ in the numbers of chunks alone; None: nothing."""
        for row in phase.rows:
            wide = any(
                1 < n != radix // step for n, step, radix in zip(row["count"], row["step"], self.radices, strict=True)
            )
            if row["parts_step"] or (wide and any(row["shift"])):
                return None
        return tuple(0 <= row["unit_lo"] + k * row["unit_shift"] < self.units[row["part"]] for row in phase.rows)

    def step(self, i):
        """Transfers of a step, in the order of their numbers."""
        number = max(n for n, start in enumerate(self.starts[:-1]) if start <= i)
        phase, k = self.phases[number], i - self.starts[number]
        if phase.rows is None:
            return None
        found = []
        axes = [range(radix) if d in phase.moves else [0] for d, radix in enumerate(self.radices)]
        for image, by in enumerate(product(*axes)):
            for r, row in enumerate(phase.rows):
                bundle = sum(first <= r for first in phase.bundles)
                ends = [self._rank(row[end], by) for end in ("src", "dst")]
                for around, chunks in enumerate(self._chunks(row, by, k)):
                    if chunks and ends[0] != ends[1]:
                        sent = Sent(*ends, chunks, row["op"], row["parts"] + k * row["parts_step"])
                        found.append(((around, bundle, image, r), sent))
        return [sent for _, sent in sorted(found, key=lambda one: one[0])]

    def _rank(self, digits, by):
        place = 0
        for digit, moved, radix in zip(digits, by, self.radices, strict=True):
            place = place * radix + (digit + moved) % radix
        return self.order[place]

    def _chunks(self, row, by, k):
        """Chunks of the image of a row: those before a digit begins again, and those behind."""
        part, first = self.parts[row["part"]], sum(self.sizes[: row["part"]])
        digits = sorted({digit for digit, _, _ in part if digit != UNIT})
        values, wide = {}, None
        for d in digits:
            radix, many = self.radices[d], row["count"][d]
            begin = (row["lo"][d] + k * row["shift"][d] + by[d]) % radix
            values[d] = [begin + t * row["step"][d] for t in range(many)]
            wide = d if many > 1 and many * row["step"][d] != radix else wide
        units = [row["unit_lo"] + k * row["unit_shift"] + t * row["unit_step"] for t in range(row["unit_count"])]
        values[UNIT] = [unit for unit in units if 0 <= unit < self.units[row["part"]]]
        halves = [values]
        if wide is not None:
            radix = self.radices[wide]
            halves = [
                {**values, wide: [v for v in values[wide] if v < radix]},
                {**values, wide: [v for v in values[wide] if v >= radix]},
            ]
        for half in halves:
            found = []
            for label in product(*(half[d] for d in (*digits, UNIT))):
                at = dict(zip((*digits, UNIT), label, strict=True))
                number = 0
                for digit, stride, radix in part:
                    value = at[digit] if digit == UNIT else at[digit] % self.radices[digit]
                    number = number * radix + value // stride % radix
                found.append(first + number)
            yield tuple(sorted(found))
