"""Parsers of real traces written for the tests alone, to compare with the readers of the package."""

import gzip
import json
import tarfile
from pathlib import Path


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of protobuf, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        shift, at = shift + 7, at + 1
        if byte < 128:
            return value, at


def message(data: bytes) -> list[tuple[int, int | bytes]]:
    """Field numbers and values of a message: integers, or the bytes of what has a length."""
    found, at = [], 0
    while at < len(data):
        tag, at = varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = varint(data, at)
        else:
            length, at = varint(data, at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
            value, at = data[at : at + length], at + length
        found.append((tag >> 3, value))
    return found


def chakra_nodes(path: Path) -> list[dict]:
    """Every node of a Chakra trace: type, attributes and data dependencies."""
    data, at, messages = path.read_bytes(), 0, []
    while at < len(data):
        length, at = varint(data, at)
        messages.append(data[at : at + length])
        at += length
    nodes = []
    for one in messages[1:]:
        node = {"type": 0, "attributes": {}, "needs": [], "id": 0, "duration_us": 0, "name": ""}
        for number, value in message(one):
            if number == 1:
                node["id"] = value
            elif number == 2:
                node["name"] = value.decode()
            elif number == 7:
                node["duration_us"] = value
            elif number == 3:
                node["type"] = value
            elif number == 5 and isinstance(value, bytes):
                at = 0
                while at < len(value):
                    need, at = varint(value, at)
                    node["needs"].append(need)
            elif number == 10:
                fields = dict(message(value))
                kept = next((v for n, v in fields.items() if n != 1), None)
                node["attributes"][fields[1].decode()] = kept.decode() if isinstance(kept, bytes) else kept
        nodes.append(node)
    return nodes


def kineto(path: Path) -> dict:
    """A whole trace of the PyTorch profiler."""
    return json.loads(gzip.decompress(path.read_bytes()))


def archive(path: Path) -> dict[str, dict]:
    """The traces in an archive, by name."""
    with tarfile.open(path) as files:
        return {m.name: json.loads(files.extractfile(m).read()) for m in files.getmembers() if m.isfile()}
