"""What differs between two records, and which differences need a reason."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

RELATIVE = 1e-9
"""Relative difference up to which numbers are equal."""
NOTHING = 1e-15
"""Absolute difference up to which they are equal: rounding beside zero."""
GONE = "(none)"
"""In place of a value that a record does not have."""
NOT_COMPARED = frozenset({"apart", "changes", "id"})
"""Fields of a record on how it came about."""
VERDICTS = frozenset({"code", "ok", "verdict", "verified", "violations", "closes", "answer", "wrong_ranks", "stable"})
"""Fields that say whether something is right."""
TOTALS = frozenset({"total_s", "time_s", "iteration_s"})
"""Times that the others are parts of."""
NO_TIME = re.compile(r"bound|_per_s$")
"""Fields with such a name that are no time of a plan."""


class Difference(NamedTuple):
    """A value that differs.

    where: path of it, such as "answer.rows[2].total_s".
    old: value before, `GONE` for none.
    new: value now.
    """

    where: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.where}: {shown(self.old)} -> {shown(self.new)}"


def shown(value: Any) -> str:
    """A value in at most 100 characters."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def differences(old: Any, new: Any, where: str = "") -> Iterator[Difference]:
    """What differs; a field that only the new value has is no difference.

    Args:
        old: as recorded.
        new: of now.
        where: path of both.
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key, value in old.items():
            if where or key not in NOT_COMPARED:
                yield from differences(value, new.get(key, GONE), f"{where}.{key}" if where else key)
        if "refusal" in new and "refusal" not in old and not where:  # it answered before
            yield Difference("refusal", GONE, new["refusal"])
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) != len(new) and ranges(old, new):
        yield from differences(step_by_step(old), step_by_step(new), where)
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) == len(new):
        for i, (mine, its) in enumerate(zip(old, new, strict=True)):
            yield from differences(mine, its, f"{where}[{i}]")
    elif not equal(old, new):
        yield Difference(where, old, new)


def ranges(*lists: Any) -> bool:
    """Whether all are lists of rows that stand for several steps, from "first" to "last"."""
    return all(isinstance(row, Mapping) and {"first", "last"} <= row.keys() for rows in lists for row in rows)


def step_by_step(rows: Any) -> list[dict[str, Any]]:
    """A row a step: the steps of a row have equal parts of its sums."""
    found = []
    for row in rows:
        many = row["last"] - row["first"] + 1
        part = {
            key: value / many if isinstance(value, int | float) and not isinstance(value, bool) else value
            for key, value in row.items()
            if key not in ("first", "last")
        }
        found += [{"step": float(row["first"] + at), **part} for at in range(many)]
    return found


def equal(old: Any, new: Any) -> bool:
    """Whether two values without fields are the same: whole numbers exactly, others to `RELATIVE`."""
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (old, new)]
    if all(numbers) and (isinstance(old, float) or isinstance(new, float)):
        return math.isclose(old, new, rel_tol=RELATIVE, abs_tol=NOTHING) or (math.isnan(old) and math.isnan(new))
    return type(old) is type(new) and bool(old == new)


def needing_reason(found: list[Difference]) -> list[str]:
    """Differences that must not be recorded without a reason, each with what it is.

    Args: found: differences of one record.
    """
    totals = [one for one in found if name_of(one) in TOTALS or is_total_of_cell(one)]
    lines = []
    for one in found:
        name = name_of(one)
        if one.where == "refusal":
            lines.append(f"another refusal: {one}")
        elif one.where == "code" or name in VERDICTS:
            lines.append(f"another verdict: {one}")
        elif one.where.startswith("command"):
            lines.append(f"another command: {one}")
        elif one.new == GONE or isinstance(one.old, list | dict) or isinstance(one.new, list | dict):
            lines.append(f"gone or moved: {one}")
        elif one.where.startswith("digests") or (one.where.startswith("programmes") and isinstance(one.old, str)):
            lines.append(f"another plan: {one}")
        elif is_time(one) and (not totals or one in totals) and one.new > one.old:
            lines.append(f"slower: {one}")
    return lines


def name_of(one: Difference) -> str:
    """The last field of a path, without places in lists."""
    return re.sub(r"\[\d+\]", "", one.where).rpartition(".")[2]


def is_time(one: Difference) -> bool:
    """Whether a difference is one of times that a plan or a job takes."""
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in one[1:])
    seconds = name_of(one).endswith("_s") or is_total_of_cell(one)
    return numbers and seconds and not NO_TIME.search(name_of(one))


def is_total_of_cell(one: Difference) -> bool:
    """Whether it is a total of a record of a cell: by the closed form, or of a programme (digest, total, sum of times)."""
    return one.where.startswith("total_s.") or (one.where.startswith("programmes.") and one.where.endswith("[1]"))
