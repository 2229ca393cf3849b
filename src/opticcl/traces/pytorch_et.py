"""Reader of PyTorch execution traces (JSON), which `torch.profiler.ExecutionTraceObserver` writes for one rank.

::

    {"schema": "1.1.1-chakra.0.0.4", "nodes": [{"name": "record_param_comms", "inputs": ..., "attrs": [...]}, ...]}

A node is what the host executes; there are no durations. The calls are the nodes `record_param_comms`: their attributes have
collective, elements, type and group since schema 1.1, before that the same stand among the inputs: tensors, number in the
sequence of the group, its name, rank or root, collective, parts, first rank, stride and size. Gloo has no such nodes: its calls
are the operators `c10d::...` without one, by the shapes of their tensors; their groups are not recorded. The node
`## process_group:init ##` lists the process groups.

Source: pytorch/pytorch, execution_trace_observer; facebookresearch/param, execution traces of schemas 1.0.2 to 1.1.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opticcl.formats.encoding.json_stream import JsonStream
from opticcl.reading import DamageError, check_size, printable, reading, title
from opticcl.traces._kineto_arguments import shaped_call, values_of
from opticcl.traces._kineto_events import OPERATOR, Events, give_values
from opticcl.traces.c10d import (
    MAX_GROUP,
    add_splits,
    collective_of,
    count_of,
    is_whole,
    members_of,
    rank_list,
    tensors_of,
    width_of,
)
from opticcl.traces.notes import Omissions
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import GroupEnds, RankCall, RankTrace
from opticcl.traces.sidecar import rank_in_name

__all__ = ["PytorchEtReader"]

_RECORD, _GROUPS, _OPERATOR = "record_param_comms", "## process_group:init ##", "c10d::"
_ROOTED = ("broadcast", "reduce", "gather", "scatter", "send", "recv")  # their nodes have the root in place of the rank


def _is_execution_trace(head: bytes) -> int:
    if not re.match(rb"(\xef\xbb\xbf)?\s*\{", head):
        return 0
    nodes = rb'"nodes"\s*:\s*\[.*"(ctrl_deps|fw_parent)"\s*:'
    return 2 if re.search(rb'"schema"\s*:\s*"[0-9]+\.[0-9]+\.[0-9]+|' + nodes, head, re.DOTALL) else 0


@register_trace("pytorch_et", (), _is_execution_trace)
class PytorchEtReader(TraceReader):
    """Reads the execution trace of one rank."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The calls of one rank, in the order of the file, as the base class describes."""
        calls: list[RankCall] = []
        operators = _Operators()
        omissions = Omissions()
        groups: dict[str, tuple[int, ...]] = {}
        names: dict[int, str] = {}  # of groups by the number of their back end, which calls have before schema 1.0.3
        count, rank, schema, has_nodes = 0, -1, "", False
        with reading(path, "PyTorch execution trace (.json)", "character") as file:
            stream = JsonStream(file)
            for key in stream.members():
                if key == "schema":
                    schema = printable(str(stream.value()))
                elif key == "nodes":
                    has_nodes = True
                    for at in stream.elements():
                        node = stream.value()
                        count += 1
                        if not isinstance(node, dict):
                            raise DamageError(at, "a node that is not an object")
                        if node.get("name") == _RECORD:
                            call, of = _call(node, at, names, omissions)
                            rank = of if of >= 0 else rank
                            calls += [call] if call else []
                            operators.recorded.add(node.get("ctrl_deps"))
                        elif str(node.get("name")).startswith(_OPERATOR):
                            operators.add(node, at, len(calls))
                        elif node.get("name") == _GROUPS:
                            groups |= _groups(node, names)
                else:
                    stream.skip()
            stream.finish()
            if not has_nodes:
                raise DamageError(0, "there are no nodes")
        sizes = [ranks for ranks in groups.values() if ranks]
        unrecorded = operators.calls(omissions)
        for place, call in reversed(unrecorded):
            calls.insert(place, call)
        of_gloo = [f"operators {_OPERATOR} without a record, as those of Gloo: {len(unrecorded):,}"]
        return RankTrace(
            title(path),
            f"PyTorch execution trace {printable(path.name)}, schema {schema}",
            printable(path.name),
            calls,
            rank=rank if rank >= 0 else rank_in_name(path.name),
            groups={name: ranks for name, ranks in groups.items() if ranks},
            groups_source="process_group:init",
            omissions=omissions,
            before=[f"nodes: {count:,}", *(of_gloo if unrecorded else [])],
            after=["no durations are recorded: the calls follow each other", *_note_on(groups, sizes)],
        )


class _Operators:
    """Operators of collectives, which Gloo's calls are.

    Attributes: recorded: ids of those within which a call is recorded.
    """

    def __init__(self) -> None:
        self.recorded: set[Any] = set()
        self._read: list[tuple[Any, int, RankCall | None, Omissions]] = []

    def add(self, node: dict[str, Any], at: int, place: int) -> None:
        """Add an operator.

        Args:
            node: of it.
            at: its position, for messages.
            place: number of calls before it.
        Raises: DamageError: a size beyond all bounds.
        """
        name, part = printable(str(node["name"])), Events()
        collective = collective_of(name.removeprefix(_OPERATOR))
        values, shapes, types = _columns(node, "inputs")
        args = {"Input Dims": shapes, "Input type": list(map(_type_of_elements, types)), "Concrete Inputs": values}
        call = shaped_call(part, OPERATOR, name, collective, "", args, at)
        if call is not None and (concrete := values_of(name, collective, args)) is not None:
            for why in give_values(call, concrete):
                part.omissions[OPERATOR].add(why)
        self._read.append((node.get("id"), place, call, part.omissions[OPERATOR]))

    def calls(self, omissions: Omissions) -> list[tuple[int, RankCall]]:
        """The calls without a record, with the number of recorded calls before each.

        Args: omissions: counts what is left out.
        """
        own = [one for one in self._read if one[0] not in self.recorded]
        for *_, left_out in own:
            omissions.add_all(left_out)
        return [(place, call) for _, place, call, _ in own if call is not None]


def _type_of_elements(word: Any) -> str:
    """Type of the elements in "GenericList[Tensor(float)]"; empty if there is no tensor."""
    match = re.search(r"Tensor\((.*?)\)", word) if isinstance(word, str) else None
    return match[1] if match else ""


def _note_on(groups: dict[str, tuple[int, ...]], sizes: list[tuple[int, ...]]) -> list[str]:
    without = len(groups) - len(sizes)
    return [f"process groups without a list of ranks: {without:,} of {len(groups):,}"] if without else []


def _call(node: dict[str, Any], at: int, names: Mapping[int, str], omissions: Omissions) -> tuple[RankCall | None, int]:
    """The call of a node, None if it is left out, and the rank of the trace, -1 if the node does not have it.

    Args:
        node: record of a call.
        at: its position, for messages.
        names: of groups by the number of their back end.
        omissions: counts what is left out.
    """
    attrs = node.get("attrs")
    pairs = (
        [a for a in attrs if isinstance(a, dict) and isinstance(a.get("name"), str)] if isinstance(attrs, list) else []
    )
    known = {a["name"]: a.get("value") for a in pairs}
    inputs = _columns(node, "inputs")
    name, at_name = known.get("collective_name"), -1
    for i, value in enumerate(inputs[0]):
        if isinstance(value, str) and (value == name or (not isinstance(name, str) and collective_of(value))):
            name, at_name = value, i
    if not isinstance(name, str):
        omissions.add(f"{_RECORD} without a collective's name")
        return None, -1
    collective = collective_of(name)
    if not collective:
        omissions.add(f"{_RECORD} of {printable(name[:40])}, which moves no data itself")
        return None, -1
    rank = count_of(inputs[0][at_name - 1], -1) if at_name > 0 and collective not in _ROOTED else -1
    sizes = _sizes(node, known, inputs)
    if not sizes:
        omissions.add(f"{_RECORD} of {printable(name[:40])} without elements of a known type", missing=True)
        return None, rank
    sent = check_size(sizes[0] if collective == "all_to_all" else max(sizes), at, f"{name[:40]} of this node")
    call = RankCall(printable(name), collective, sent)
    after = inputs[0][at_name + 1 :] if at_name >= 0 else []
    call.group, call.ranks, call.group_size = _group(known, inputs[0][:at_name], after)
    if at_name > 1:
        call.group = call.group or names.get(count_of(inputs[0][at_name - 2], -2, 63), "")
    if collective not in ("send", "recv"):
        call.sequence = _sequence(inputs[0][:at_name])
    else:
        peer = count_of(inputs[0][at_name - 1], -1) if at_name > 0 else -1
        if peer >= 0:
            ends = (-1, peer) if collective == "send" else (peer, -1)
            call.ends = GroupEnds(*ends, call.ranks)
        call.ranks = (-1, -1)
    if collective == "all_to_all":
        call.received_bytes = sizes[-1]
        width = width_of(known.get("dtype")) or 1  # without a type both sides count bytes
        listed = [*(value for value in after if isinstance(value, list)), "", ""]  # before schema 1.1 among the inputs
        lists = known.get("in_split_size", listed[0]), known.get("out_split_size", listed[1])
        for why in add_splits(call, lists, (call.size_bytes // width, call.received_bytes // width), width):
            omissions.add(why)
    return call, rank


def _sequence(before: Sequence[Any]) -> int:
    """Number of a collective in the sequence of its group, from the inputs before its name; -1 if they do not have it.

    It stands before name and description of the group, alone or with whether it counts transfers.
    """
    at = next((i for i, value in enumerate(before) if _is_name_of_group(value)), 0)
    value = before[at - 1] if at else None
    value = value[0] if isinstance(value, list) and len(value) == 2 else value
    return count_of(value, 0) or -1


def _is_name_of_group(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and isinstance(value[0], str)


def _columns(node: dict[str, Any], key: str) -> tuple[list[Any], list[Any], list[Any]]:
    """Values, shapes and types of the inputs or outputs of a node."""
    part = node.get(key)
    if isinstance(part, list):  # before schema 1.0.3
        shapes, types = node.get(f"{key[:-1]}_shapes"), node.get(f"{key[:-1]}_types")
        return part, shapes if isinstance(shapes, list) else [], types if isinstance(types, list) else []
    if not isinstance(part, dict):
        return [], [], []
    values, shapes, types = (part.get(name) for name in ("values", "shapes", "types"))
    return (
        values if isinstance(values, list) else [],
        shapes if isinstance(shapes, list) else [],
        types if isinstance(types, list) else [],
    )


def _sizes(node: dict[str, Any], known: dict[Any, Any], inputs: tuple[list[Any], list[Any], list[Any]]) -> list[int]:
    """Bytes of input and output: by the attributes, otherwise by the shapes of the tensors."""
    width = width_of(known.get("dtype"))
    elements = [known[key] for key in ("in_msg_nelems", "out_msg_nelems") if is_whole(known.get(key))]
    if width and elements:
        return [n * width for n in elements]
    both = []
    for _, shapes, types in (inputs, _columns(node, "outputs")):
        plain = [re.sub(r"\A.*Tensor\((.*?)\).*", r"\1", t) if isinstance(t, str) else t for t in types]
        sizes = list(tensors_of(shapes[:1], plain[:1]))
        both += sizes
    return both


def _group(known: dict[Any, Any], before: Sequence[Any], after: Sequence[Any]) -> tuple[str, tuple[int, ...], int]:
    """Name, ranks and size of the group; without attributes start, stride and size are the last three inputs."""
    name = known.get("pg_name")
    if name is None:
        pair = next(filter(_is_name_of_group, reversed(before)), None)
        name = pair[0] if pair else ""
    numbers = [v for v in after if is_whole(v)][-3:]
    start, stride, size = numbers if len(numbers) == 3 else (-1, 0, *numbers) if len(numbers) == 1 else (-1, 0, 0)
    size = count_of(known.get("pg_size"), count_of(size, 0))
    start = count_of(known.get("global_rank_start"), count_of(start, -1))
    stride = count_of(known.get("global_rank_stride"), count_of(stride, 0))
    ranks = rank_list(known.get("pg_ranks"))
    if not ranks and start >= 0 and stride and size <= MAX_GROUP:
        ranks = tuple(range(start, start + stride * size, stride))
    return printable(str(name)), ranks, min(size, MAX_GROUP)


def _groups(node: dict[str, Any], names: dict[int, str]) -> dict[str, tuple[int, ...]]:
    """Members of the process groups that a node lists as JSON; empty if it lists neither ranks nor that it has all.

    Args:
        node: that lists them.
        names: of groups by the number of their back end, to be extended.
    """
    groups: dict[str, tuple[int, ...]] = {}
    for value in _columns(node, "inputs")[0]:
        try:
            listed = json.loads(value) if isinstance(value, str) else []
        except (ValueError, RecursionError):
            continue
        for group in listed if isinstance(listed, list) else ():
            if isinstance(group, dict) and isinstance(group.get("pg_name"), str):
                name = printable(group["pg_name"])
                groups[name] = members_of(group)
                names[count_of(group.get("backend_id"), -1, 63)] = name
    return groups
