"""Parts that fail, and cells that no circuit may use.

A cell is (resource, index, wavelength). Dead and stuck parts, other jobs and slots reserved for a plan take cells away.

A condition is written KIND:INDEX[-LAST][:MODE[=VALUE]], several are joined by +:

    comb_laser:5                 part 5 of the kind is dead
    modulator:8-11               parts 8 to 11 are
    filter:3:stuck=0             part 3 stands still in setting 0
    laser:5:weak=0.5             part 5 works at half of its rate
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from opticcl.errors import FabricError
from opticcl.ir._common import IntArray
from opticcl.ir.circuits import Circuits

__all__ = [
    "Condition",
    "Occupied",
    "Options",
    "PartKind",
    "PartUse",
    "conditions_as_text",
    "failed_parts",
    "parse_conditions",
    "shares_of_rate",
    "unique_parts",
]

DEAD, STUCK, WEAK = "dead", "stuck", "weak"
MOST_CONDITIONS = 1 << 20
FORM = r"([a-z_]+):([0-9]{1,18})(?:-([0-9]{1,18}))?(?::([a-z]+)(?:=([0-9.]{1,18}))?)?"
LEAST_SHARE, DIGITS_OF_SHARE = 1e-4, 6


@dataclass(frozen=True, slots=True)
class PartKind:
    """Identical parts that can fail.

    Args:
        kind: such as comb_laser, filter or switch.
        count: of the machine [count].
        settings: in which one can stand still, 0 if it cannot [count].
        weakens: whether one can work at a share of its rate.
    """

    kind: str
    count: int
    settings: int = 0
    weakens: bool = True

    @property
    def modes(self) -> tuple[str, ...]:
        """Ways to fail."""
        return (DEAD, *((STUCK,) if self.settings else ()), *((WEAK,) if self.weakens else ()))


@dataclass(frozen=True, slots=True, order=True)
class Condition:
    """A part that does not work as it should.

    Args:
        kind: of the part.
        index: of the part among its kind.
        mode: dead: no light gets through; stuck: it stands still in one setting; weak: what passes it has a share of its rate.
        value: the setting of a stuck part, the share of a weak one, else 0.
    """

    kind: str
    index: int
    mode: str = DEAD
    value: float = 0

    def __str__(self) -> str:
        value = f"{self.value:.{DIGITS_OF_SHARE}f}".rstrip("0") if self.mode == WEAK else f"{self.value:.0f}"
        return f"{self.kind}:{self.index}" + (f":{self.mode}={value}" if self.mode != DEAD else "")


@dataclass(frozen=True, slots=True, eq=False)
class PartUse:
    """Parts of one kind that the light of circuits passes.

    Args:
        kind: of the parts.
        part: index of the part, int64 (m,).
        circuit: row of the `Circuits`, int64 (m,), or None if row i of `part` belongs to circuit i.
    """

    kind: str
    part: IntArray
    circuit: IntArray | None = None

    def owners(self) -> IntArray:
        """Circuit of each row, int64 (m,)."""
        return np.arange(len(self.part)) if self.circuit is None else np.asarray(self.circuit, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """Ways to light transfers; rows of one choice are used together.

    Args:
        circuits: one wavelength on one port each; `transfer` is the row of the pair. Ways that are preferred come first.
        choice: of each circuit, ascending within a pair and different between pairs, int64 (n,).
    """

    circuits: Circuits
    choice: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Occupied:
    """Cells that circuits may not use, one row each, sorted; equal by value.

    Args:
        resource: position among the resources of the fabric, int64 (m,).
        index: instance of the resource, int64 (m,).
        wavelength: of the cell, 0 where wavelengths are not counted apart, int64 (m,).
        count: of the cell's capacity that is taken, int64 (m,).
        owner: what occupies them, in words.
    """

    resource: IntArray
    index: IntArray
    wavelength: IntArray
    count: IntArray
    owner: str = ""

    @classmethod
    def none(cls) -> Occupied:
        """No cells."""
        return cls(*(np.zeros(0, np.int64),) * 4)

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int, int]], owner: str = "") -> Occupied:
        """Cells from (resource, index, wavelength, count).

        Args:
            rows: a cell each; equal cells add up.
            owner: what occupies them.
        """
        table = np.array(list(rows), np.int64).reshape(-1, 4)
        return cls(*_added(table), owner)

    def __len__(self) -> int:
        return len(self.index)

    def __add__(self, other: Occupied) -> Occupied:
        """Cells of both."""
        tables = (np.stack([o.resource, o.index, o.wavelength, o.count], axis=1) for o in (self, other))
        owner = " and ".join(dict.fromkeys(filter(None, (self.owner, other.owner))))
        return Occupied(*_added(np.concatenate(list(tables))), owner)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Occupied):
            return NotImplemented
        names = ("resource", "index", "wavelength", "count")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        return hash((self.index.tobytes(), self.count.tobytes()))

    def add_to(self, resource: int, depth: int, counts: IntArray) -> None:
        """Add them to a table of what is taken.

        Args:
            resource: position of the resource that the table is of.
            depth: wavelengths counted apart [count].
            counts: (index, wavelength) -> taken, changed.
        """
        mine = self.resource == resource
        np.add.at(counts, self.index[mine] * depth + self.wavelength[mine], self.count[mine].astype(counts.dtype))


def _added(table: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Columns of the rows in order, the counts of equal cells added."""
    cells, which = np.unique(table[:, :3], axis=0, return_inverse=True)
    count = np.bincount(np.ravel(which), table[:, 3], minlength=len(cells)).astype(np.int64)
    return cells[:, 0].copy(), cells[:, 1].copy(), cells[:, 2].copy(), count


def parse_conditions(text: str, kinds: Sequence[PartKind], name: str) -> tuple[Condition, ...]:
    """Conditions from a text, sorted.

    Args:
        text: as the module docstring writes it.
        kinds: parts of the machine.
        name: of what is refused, for messages: "ramp: failed".
    Raises: FabricError: another form, an unknown part or mode, or a part twice.

    >>> [str(c) for c in parse_conditions("fibre:3-4+node:0", [PartKind("node", 2), PartKind("fibre", 8)], "failed")]
    ['fibre:3', 'fibre:4', 'node:0']
    """
    known = {kind.kind: kind for kind in kinds}
    conditions: list[Condition] = []
    for item in (part.strip() for part in str(text).split("+")):
        match = re.fullmatch(FORM, item, re.ASCII)
        if match is None:
            raise FabricError(
                f"{name}: {item!r} is not of the form; write comb_laser:5, fibre:3-4, filter:3:stuck=0 or laser:5:weak=0.5"
            )
        kind, first, last, mode, value = match.groups()
        if kind not in known:
            near = get_close_matches(kind, known, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise FabricError(f"{name}: {item}: there is no part {kind}; {hint}parts are {', '.join(known)}")
        conditions += _checked(known[kind], item, name, (int(first), int(last or first)), mode or DEAD, value)
        if len(conditions) > MOST_CONDITIONS:
            raise FabricError(f"{name}: more than {MOST_CONDITIONS:,} parts; try fewer")
    return unique_parts(conditions, name)


def _checked(
    kind: PartKind, item: str, name: str, indices: tuple[int, int], mode: str, value: str | None
) -> list[Condition]:
    """Conditions of one item.

    Args:
        kind: of the parts.
        item: as it is written.
        name: for messages.
        indices: first and last.
        mode: of the item.
        value: setting of stuck parts, share of weak ones.
    Raises: FabricError: no such part, mode, setting or share.
    """
    first, last = indices
    if not first <= last < kind.count:
        near = min(first, kind.count - 1)
        raise FabricError(
            f"{name}: {item}: parts {kind.kind} are 0 to {kind.count - 1}, ranges go upwards; try {kind.kind}:{near}"
        )
    if last - first >= MOST_CONDITIONS:
        raise FabricError(f"{name}: {item}: more than {MOST_CONDITIONS:,} parts; try fewer")
    if mode not in kind.modes:
        raise FabricError(f"{name}: {item}: a {kind.kind} has no mode {mode}; try {' or '.join(kind.modes)}")
    if mode == WEAK:
        share = _share(value)
        if share is None:
            raise FabricError(f"{name}: {item}: a weak part has a share of its rate above 0 and below 1; try weak=0.5")
        return [Condition(kind.kind, index, mode, share) for index in range(first, last + 1)]
    if (mode == STUCK) != (value is not None):
        raise FabricError(f"{name}: {item}: only a stuck part has a setting, and it needs one; try stuck=0")
    if value is not None and not (re.fullmatch("[0-9]+", value) and int(value) < kind.settings):
        raise FabricError(f"{name}: {item}: settings of a {kind.kind} are 0 to {kind.settings - 1}")
    return [Condition(kind.kind, index, mode, int(value or 0)) for index in range(first, last + 1)]


def _share(text: str | None) -> float | None:
    """The share of a weak part, None if it is none.

    >>> _share("0.25"), _share("1"), _share("..5"), _share(None)
    (0.25, None, None, None)
    """
    if text is None or not re.fullmatch(r"(?:[0-9]*\.)?[0-9]+", text, re.ASCII):
        return None
    share = round(float(text), DIGITS_OF_SHARE)
    return share if LEAST_SHARE <= share < 1 else None


def unique_parts(conditions: Iterable[Condition], name: str) -> tuple[Condition, ...]:
    """The conditions, sorted.

    Raises: FabricError: a part twice.
    """
    ordered = sorted(conditions)
    for one, other in pairwise(ordered):
        if (one.kind, one.index) == (other.kind, other.index):
            raise FabricError(f"{name}: {one.kind}:{one.index} is named twice; write each part once")
    return tuple(ordered)


def conditions_as_text(conditions: Iterable[Condition]) -> str | None:
    """Conditions as a fabric takes them, the same text for the same conditions; None for none.

    >>> conditions_as_text([Condition("fibre", 3), Condition("fibre", 4), Condition("filter", 3, "stuck", 0)])
    'fibre:3-4+filter:3:stuck=0'
    """
    items: list[str] = []
    runs: list[list[Condition]] = []
    for one in sorted(conditions):
        last = runs[-1][-1] if runs else None
        follows = last is not None and (last.kind, last.index + 1, last.mode) == (one.kind, one.index, one.mode)
        if follows and one.mode == DEAD:
            runs[-1].append(one)
        else:
            runs.append([one])
    for run in runs:
        items.append(str(run[0]) if len(run) == 1 else f"{run[0].kind}:{run[0].index}-{run[-1].index}")
    return "+".join(items) or None


def failed_parts(conditions: Iterable[Condition], kind: str, mode: str = DEAD) -> npt.NDArray[np.int64]:
    """Parts of a kind that are in a mode, ascending.

    Args:
        conditions: of the machine.
        kind: of the parts.
        mode: dead, stuck or weak.
    """
    return np.array(sorted(c.index for c in conditions if c.kind == kind and c.mode == mode), np.int64)


def shares_of_rate(
    conditions: Iterable[Condition], uses: Iterable[PartUse], num_circuits: int
) -> npt.NDArray[np.float64]:
    """Share of its rate that each circuit has: that of the weakest part that it passes, 1 without weak ones, float64 (n,).

    Args:
        conditions: of the machine.
        uses: parts that the circuits pass.
        num_circuits: n [count].
    """
    weak: dict[str, dict[int, float]] = {}
    for each in conditions:
        if each.mode == WEAK:
            weak.setdefault(each.kind, {})[each.index] = each.value
    shares = np.ones(num_circuits)
    for use in uses if weak else ():
        if use.kind in weak:
            part = np.array(sorted(weak[use.kind]), np.int64)
            share = np.array([weak[use.kind][index] for index in part.tolist()])
            row = np.minimum(np.searchsorted(part, use.part), len(part) - 1)
            hit = part[row] == use.part
            np.minimum.at(shares, use.owners()[hit], share[row[hit]])
    return shares
