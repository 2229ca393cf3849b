"""Reader of Chakra traces as JSON, which Chakra's jsonizer prints: metadata, then a node after the other.

::

    {"version": "0.0.4"} {"id": "4", "name": "...", "type": "COMM_COLL_NODE", "dataDeps": ["1"], "attr": [...]} ...

The objects follow each other, or are the elements of a list. Numbers of 64 bits are texts; names are in camelCase or as in
et_def.proto. Each node is encoded as protobuf again, so that both forms are read by one parser.

Source: mlcommons/chakra, jsonizer; protobuf, JSON mapping.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from opticcl.formats.encoding.json_stream import JsonStream
from opticcl.formats.encoding.protobuf import LENGTH, VARINT, written
from opticcl.formats.encoding.reading import DamageError, reading
from opticcl.traces._chakra_nodes import NODE_TYPES
from opticcl.traces.chakra import read_chakra
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import RankTrace

__all__ = ["ChakraJsonReader"]

_NUMBER = re.compile(r"-?\d{1,20}", re.ASCII).fullmatch
_PLAIN = {(str, str), (str, int), (str, bool)}
_FIELDS = {"id": 1, "name": 2, "type": 3, "ctrldeps": 4, "datadeps": 5, "starttimemicros": 6, "durationmicros": 7}
_VALUES = {"int32val": 7, "int64val": 9, "uint32val": 11, "uint64val": 13, "boolval": 27, "stringval": 29}


def _is_chakra_json(head: bytes) -> int:
    known = rb'"(COMP|COMM_SEND|COMM_RECV|COMM_COLL|METADATA)_NODE"|"(ctrlDeps|dataDeps)"'
    return 2 * (re.match(rb"(\xef\xbb\xbf)?\s*[{\[]", head) is not None and re.search(known, head) is not None)


@register_trace("chakra_json", (), _is_chakra_json)
class ChakraJsonReader(TraceReader):
    """Reads the Chakra trace of one rank in JSON."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The calls and tasks of one rank, as the base class describes."""

        def messages() -> Iterator[tuple[int, bytes]]:
            with reading(path, "Chakra trace in JSON", "character") as file:
                stream = JsonStream(file)
                listed = stream.peek() == "["
                first = True
                for at in stream.elements() if listed else _objects(stream):
                    value = stream.value()
                    if not isinstance(value, dict):
                        raise DamageError(at, "a node that is not an object")
                    is_node = "type" in value
                    if first and is_node:
                        yield at, b""  # no metadata
                    yield at, _node(value, at) if is_node else b""
                    first = False
                stream.finish()

        return read_chakra(path, messages(), "character", tasks=tasks)


def _objects(stream: JsonStream) -> Iterator[int]:
    """Places of objects that follow each other."""
    while stream.peek():
        yield stream.at


@lru_cache(maxsize=256)
def _key(name: str) -> str:
    return name.replace("_", "").lower()


def _node(value: dict[str, Any], at: int) -> bytes:
    """The protobuf message of a node."""
    message = b""
    for name, content in value.items():
        key = _key(name)
        number = _FIELDS.get(key)
        if key == "attr" and isinstance(content, list):
            for one in content:
                # Most attributes are a name and a value that occurred before.
                kind = tuple(map(type, one.values())) if isinstance(one, dict) and len(one) == 2 else ()
                message += _known(tuple(one.items()), kind, at) if kind in _PLAIN else _field(10, _attribute(one, at))
        elif number is None:
            continue
        elif key == "name":
            message += _field(number, str(content).encode())
        elif key == "type":
            message += _field(number, _type(content))
        else:
            for one in content if isinstance(content, list) else [content]:
                message += _field(number, _whole(one, at, name))
    return message


def _type(value: Any) -> int:
    word = str(value).lower().removesuffix("_node")
    return NODE_TYPES.index(word) if word in NODE_TYPES else value if isinstance(value, int) and value >= 0 else 0


@lru_cache(maxsize=2**14)
def _encoded(items: tuple[tuple[str, Any], ...], kind: tuple[type, ...]) -> bytes:
    """The field of an attribute; `kind` separates True from 1."""
    return _field(10, _attribute(dict(items), 0))


def _known(items: tuple[tuple[str, Any], ...], kind: tuple[type, ...], at: int) -> bytes:
    """The same, with the place of the node in a refusal.

    Args:
        items: name and value.
        kind: their types.
        at: place of the node.
    """
    try:
        return _encoded(items, kind)
    except DamageError as error:
        raise DamageError(at, error.what) from None


def _attribute(value: Any, at: int) -> bytes:
    """An AttributeProto; floats and lists keep their name alone."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise DamageError(at, "an attribute without a name")
    message = _field(1, value["name"].encode())
    for name, content in value.items():
        number = _VALUES.get(_key(name))
        if number == 29:
            message += _field(29, str(content).encode())
        elif number is not None:
            message += _field(number, int(content) if isinstance(content, bool) else _whole(content, at, name))
    return message


def _whole(value: Any, at: int, name: str) -> int:
    """A number of 64 bits, written as a number or a text."""
    text = str(value)
    if isinstance(value, bool) or not _NUMBER(text):
        raise DamageError(at, f"{name} is {text[:40]!r}, not a whole number")
    return int(text) & (2**64 - 1)


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return written(number << 3 | VARINT) + written(value)
    return written(number << 3 | LENGTH) + written(len(value)) + value
