"""Division of the calls of a workload into those that a comparison takes and those that it leaves out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

from opticcl.errors import ParameterError
from opticcl.ir.task_graph import CollectiveCall, Workload, counted_calls
from opticcl.units import counted, format_bytes

__all__ = ["CallClass", "Division", "divide"]


class CallClass(NamedTuple):
    """Calls of one collective in groups of one size.

    Args:
        collective: canonical name; "transfer" for one from a rank to another.
        group_size: ranks of each group; 0 if all ranks take part and their number is unknown [count].
    """

    collective: str
    group_size: int

    def __str__(self) -> str:
        if self.collective == "transfer":
            return "transfers between two ranks"
        return self.collective + (f" in groups of {self.group_size:,} ranks" if self.group_size else "")


@dataclass(frozen=True, slots=True)
class Division:
    """A workload of which one class of calls is compared.

    Args:
        workload: the whole.
        chosen: the class that is compared.
        sizes: messages of its calls, in order [bytes].
        left_out: the other classes, with number of calls and bytes.
        uneven: calls of the class that are all_to_alls of unequal parts [count].
    """

    workload: Workload
    chosen: CallClass
    sizes: tuple[int, ...]
    left_out: dict[CallClass, tuple[int, int]]
    uneven: int = 0

    def first_line(self, num_nodes: int) -> str:
        """What is compared, on which number of nodes.

        Args: num_nodes: of the fabrics [count].
        """
        work, size = self.workload, self.chosen.group_size
        calls = f"{counted(len(self.sizes), 'call')} of {self.chosen.collective}"
        text = f"{work.name}: {calls}, {format_bytes(sum(self.sizes))} ({sum(self.sizes):,} bytes)"
        if size and size < work.num_ranks:
            text += f", in groups of {size:,} of the {work.num_ranks:,} ranks"
        if size and num_nodes != size:
            return f"{text}, compared on {num_nodes:,} nodes and not on the recorded {size:,} ranks"
        return f"{text}, on {num_nodes:,} nodes"

    def notes(self) -> list[str]:
        """What is compared as something else, and what is not compared, a line for each class."""
        uneven = (
            f"uneven all_to_all: {self.uneven:,}, compared as even ones as large as their busiest rank; opticcl train times "
            "the bytes of each pair"
        )
        return [uneven] * bool(self.uneven) + [
            f"not compared: {counted(n, 'call')}, {format_bytes(size)} ({size:,} bytes): {one}; opticcl train times all"
            for one, (n, size) in self.left_out.items()
        ]

    def record(self) -> dict[str, Any]:
        """The division as plain values; compared, left_out and omitted are all calls of the file."""
        work = self.workload
        return {
            "name": work.name,
            "source": work.source,
            "num_ranks": work.num_ranks or None,
            "num_ranks_source": work.ranks_source or None,
            "calls": len(work.calls) + sum(one.calls for one in work.omitted),
            "compared": _record(self.chosen, len(self.sizes), sum(self.sizes)),
            "uneven": self.uneven,
            "left_out": [_record(one, n, size) for one, (n, size) in self.left_out.items()],
            "omitted": [{"what": one.what, "calls": one.calls, "bytes": one.size_bytes} for one in work.omitted],
            "assumed_groups": sum(
                number for call, number, _ in counted_calls(work.calls) if call.group_source.startswith("assumed")
            ),
        }


def _record(one: CallClass, calls: int, size_bytes: int) -> dict[str, Any]:
    size = one.group_size or None
    return {"collective": one.collective, "group_size": size, "calls": calls, "bytes": size_bytes}


def _class_of(call: CollectiveCall, num_ranks: int) -> CallClass:
    """The class of a call of a workload."""
    if call.is_transfer:
        return CallClass("transfer", 2)
    return CallClass(call.collective, len(call.ranks) or num_ranks)


def divide(workload: Workload, collective: str | None = None) -> Division:
    """Choose the class of calls to compare: of all ranks if there is one, of these the one with the most bytes.

    Args:
        workload: with at least one call.
        collective: canonical name; None: any.
    Raises: ParameterError: no call of that collective; the message lists those of the workload.
    """
    counts, sizes = Counter[CallClass](), Counter[CallClass]()
    for call, number, size in counted_calls(workload.calls):
        one = _class_of(call, workload.num_ranks)
        counts[one] += number
        sizes[one] += size
    candidates = [one for one in counts if one.collective != "transfer" and collective in (None, one.collective)]
    if not candidates:
        known = ", ".join(f"{n:,} {one}" for one, n in counts.items())
        wanted = collective or "collective"
        raise ParameterError(f"{workload.name} has no {wanted} to compare, but {known}; opticcl train times these")
    chosen = max(candidates, key=lambda one: (one.group_size == workload.num_ranks, sizes[one], counts[one]))
    mine = [call for call in workload.calls if _class_of(call, workload.num_ranks) == chosen]
    left_out = {one: (counts[one], sizes[one]) for one in counts if one != chosen}
    sizes_bytes = tuple(call.size_bytes for call in mine)
    return Division(workload, chosen, sizes_bytes, left_out, sum(call.is_uneven for call in mine))
