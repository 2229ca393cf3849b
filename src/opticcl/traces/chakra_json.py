"""Reader of Chakra traces as JSON, which Chakra's jsonizer prints: metadata, then a node after the other.

::

    {"version": "0.0.4"} {"id": "4", "name": "...", "type": "COMM_COLL_NODE", "dataDeps": ["1"], "attr": [...]} ...
    {"workload_graph": [{"Id": 4, "Name": "...", "NodeType": 7, "data_deps": [1], "runtime": 5, "comm_size": 8, ...}, ...]}

The objects follow each other, or are the elements of a list. Numbers of 64 bits are texts; names are in camelCase or as in
et_def.proto. In the form that Chakra's feeder reads, the last one, attributes are keys of the node. Attributes and dependencies
are encoded as protobuf again, so that all forms are read by one parser.

Source: mlcommons/chakra, jsonizer and feeder; protobuf, JSON mapping.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from opticcl.formats.encoding.json_stream import JsonStream
from opticcl.formats.encoding.protobuf import LENGTH, VARINT, written
from opticcl.reading import DamageError, head_of, reading
from opticcl.traces._chakra_nodes import NODE_TYPES, USED, ChakraNode
from opticcl.traces.chakra import read_chakra
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import RankTrace

__all__ = ["ChakraJsonReader"]

_NUMBER = re.compile(r"-?[0-9]{1,20}", re.ASCII).fullmatch
_FLAT = re.compile(rb'(\xef\xbb\xbf)?\s*\{[^{}]*"workload_graph"\s*:\s*\[')
_PLAIN = {(str, str), (str, int), (str, bool)}
_FIELDS = {"id": "id", "name": "name", "type": "type", "attr": "attr", "ctrldeps": "control", "datadeps": "data"}
_FIELDS |= {
    "starttimemicros": "start_us",
    "durationmicros": "duration_us",
    "nodetype": "type",
    "runtime": "duration_us",
}
_VALUES = {"int32val": 7, "int64val": 9, "uint32val": 11, "uint64val": 13, "boolval": 27, "stringval": 29}


def _is_chakra_json(head: bytes) -> int:
    known = rb'"(COMP|COMM_SEND|COMM_RECV|COMM_COLL|METADATA)_NODE"|"(ctrlDeps|dataDeps|workload_graph)"'
    return 2 * (re.match(rb"(\xef\xbb\xbf)?\s*[{\[]", head) is not None and re.search(known, head) is not None)


@register_trace("chakra_json", (), _is_chakra_json)
class ChakraJsonReader(TraceReader):
    """Reads the Chakra trace of one rank in JSON."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The calls and tasks of one rank, as the base class describes."""

        def nodes() -> Iterator[tuple[int, bytes | ChakraNode]]:
            with reading(path, "Chakra trace in JSON", "character") as file:
                stream = JsonStream(file)
                first = True
                for at in _objects(stream, flat=_FLAT.match(head_of(path)) is not None):
                    value = stream.value()
                    if not isinstance(value, dict):
                        raise DamageError(at, "a node that is not an object")
                    is_node = "type" in value or "NodeType" in value
                    if first or not is_node:
                        yield at, b""  # the metadata
                    if is_node:
                        yield at, _node(value, at)
                    first = False
                stream.finish()

        return read_chakra(path, nodes(), "character", tasks=tasks)


def _objects(stream: JsonStream, *, flat: bool) -> Iterator[int]:
    """Places of objects that follow each other, are the elements of a list, or of that of a workload graph."""
    if stream.peek() == "[":
        yield from stream.elements()
    elif flat:
        for key in stream.members():
            if key == "workload_graph":
                yield from stream.elements()
            else:
                stream.skip()
    else:
        while stream.peek():
            yield stream.at


@lru_cache(maxsize=256)
def _key(name: str) -> str:
    return name.replace("_", "").lower()


def _node(value: dict[str, Any], at: int) -> ChakraNode:
    """A node; its message has the name and the attributes that count.

    Raises: DamageError: a number or an attribute of another form.
    """
    node, parts = ChakraNode(b""), list[bytes]()
    for name, content in value.items():
        field = _FIELDS.get(_key(name))
        if field is None:
            if name in USED:
                kind_of = {bool: "bool_val", str: "string_val"}.get(type(content), "int64_val")
                parts.append(_field(10, _attribute({"name": name, kind_of: content}, at)))
            continue
        if field == "attr":
            for one in content if isinstance(content, list) else ():
                if isinstance(one, dict) and isinstance(called := one.get("name"), str) and called not in USED:
                    continue
                # Most attributes are a name and a value that occurred before.
                kind = tuple(map(type, one.values())) if isinstance(one, dict) else ()
                parts.append(
                    _known(tuple(one.items()), kind, at) if kind in _PLAIN else _field(10, _attribute(one, at))
                )
        elif field == "name":
            parts.append(_field(2, str(content).encode("utf-8", "replace")))
        elif field == "type":
            node.kind = _type(content)
        else:
            _set(node, field, content if isinstance(content, list) else [content], (name, at))
    node.message = b"".join(parts)
    return node


def _set(node: ChakraNode, field: str, numbers: list[Any], place: tuple[str, int]) -> None:
    """Set a field of a node: dependencies, or a number, of which the last counts.

    Args:
        node: to be changed.
    Raises: DamageError: a number of another form.
    """
    try:
        if field in ("control", "data"):
            setattr(node, field, getattr(node, field) + b"".join(map(_varint, numbers)))
        elif numbers:
            setattr(node, field, _number(numbers[-1]))
    except (ValueError, TypeError):  # also a list in place of a number, which no cache takes
        wrong = next(one for one in numbers if not _is_number(one))
        raise DamageError(place[1], f"{place[0]} is {str(wrong)[:40]!r}, not a whole number") from None


def _type(value: Any) -> int:
    word = str(value).lower().removesuffix("_node")
    return NODE_TYPES.index(word) if word in NODE_TYPES else max(0, value) if isinstance(value, int) else 0


@lru_cache(maxsize=2**14)
def _encoded(items: tuple[tuple[str, Any], ...], kind: tuple[type, ...]) -> bytes:
    """The field of an attribute; `kind` separates True from 1."""
    return _field(10, _attribute(dict(items), 0))


def _known(items: tuple[tuple[str, Any], ...], kind: tuple[type, ...], at: int) -> bytes:
    """The same, with the place of the node in a refusal."""
    try:
        return _encoded(items, kind)
    except DamageError as error:
        raise DamageError(at, error.what) from None


def _attribute(value: Any, at: int) -> bytes:
    """An AttributeProto; floats and lists keep their name alone."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise DamageError(at, "an attribute without a name")
    message = _field(1, value["name"].encode("utf-8", "replace"))
    for name, content in value.items():
        number = _VALUES.get(_key(name))
        if number == 29:
            message += _field(29, str(content).encode("utf-8", "replace"))
        elif number is not None:
            message += _field(number, int(content) if isinstance(content, bool) else _whole(content, at, name))
    return message


def _is_number(value: Any) -> bool:
    """Whether it is a whole number of 64 bits, written as a number or a text."""
    return _NUMBER(str(value)) is not None


def _number(value: Any) -> int:
    """Its two's complement.

    Raises: ValueError: no number.
    """
    if not _is_number(value):
        raise ValueError
    return int(value) & (2**64 - 1)


@lru_cache(maxsize=2**16, typed=True)
def _varint(value: int | str) -> bytes:
    """Its encoding; the same ids occur in many dependencies. `typed` separates True from 1.

    Raises: ValueError: no number.
    """
    return written(_number(value))


def _whole(value: Any, at: int, name: str) -> int:
    """A number of 64 bits, written as a number or a text.

    Raises: DamageError: something else.
    """
    if not _is_number(value):
        raise DamageError(at, f"{name} is {str(value)[:40]!r}, not a whole number")
    return _number(value)


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return written(number << 3 | VARINT) + written(value)
    return written(number << 3 | LENGTH) + written(len(value)) + value
