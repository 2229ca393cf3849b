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


WIDTHS = {"Float": 4, "BFloat16": 2, "Long": 8, "Byte": 1}
CANONICAL = {"allreduce": "all_reduce", "_allgather_base": "all_gather", "_reduce_scatter_base": "reduce_scatter"}
CANONICAL |= {"broadcast": "broadcast", "all_to_allv": "all_to_all"}


def whole_events(events: list[dict]) -> list[dict]:
    """Events with their durations; pairs of B and E of one thread and name as one event."""
    found, begun = [], {}
    for one in events:
        key = one.get("pid"), one.get("tid"), one["name"]
        if one["ph"] == "B":
            begun.setdefault(key, []).append(one)
        elif one["ph"] == "E":
            start = begun[key].pop()
            found.append({**start, "ph": "X", "dur": one["ts"] - start["ts"]})
        else:
            found.append(one)
    return found


def records_of(events: list[dict]) -> list[dict]:
    """Arguments of the host's records of calls, by start."""
    mine = [one for one in whole_events(events) if one["name"] == "record_param_comms"]
    return [one["args"] for one in sorted(mine, key=lambda one: one["ts"])]


def calls_of(ranks: dict[int, list[dict]]) -> list[tuple]:
    """Every call of a job once: collective, bytes and ranks, from the records of each rank.

    Collectives are those of one group and sequence number, transfers the n-th of sender and receiver.
    """
    found: dict[tuple, tuple] = {}
    for rank, events in ranks.items():
        seen: dict[tuple, int] = {}
        for args in records_of(events):
            width = WIDTHS[args["dtype"]]
            sides = args["In msg nelems"] * width, args["Out msg nelems"] * width
            members = tuple(json.loads(args["Process Group Ranks"]))
            if args["Collective name"] in ("send", "recv"):
                ends = (rank, args["Dst Rank"]) if args["Collective name"] == "send" else (args["Src Rank"], rank)
                seen[ends, args["Process Group Name"]] = seen.get((ends, args["Process Group Name"]), 0) + 1
                key = (ends, args["Process Group Name"], seen[ends, args["Process Group Name"]])
                found[key] = ("send_recv", sides[0], ends)
                continue
            key = args["Process Group Name"], args["Seq"]
            kind = CANONICAL[args["Collective name"]]
            if kind == "all_to_all":
                moved = found.setdefault(key, (kind, 0, members))[1]
                for side, list_ in zip(sides, ("In split size", "Out split size"), strict=True):
                    rows = json.loads(args[list_])
                    own = rows[members.index(rank)] * (side // sum(rows)) if side else 0
                    n = len(members)
                    moved = max(moved, -(-(side - own) * n // (n - 1)))
                found[key] = kind, moved, members
            else:
                found[key] = kind, max(sides), members
    return list(found.values())


def times_of(events: list[dict]) -> tuple[int, int, int]:
    """Microseconds in which a device computed, only communicated, and was idle, by marking each of them."""
    kernels = [one for one in whole_events(events) if one["cat"] == "kernel"]
    first = min(one["ts"] for one in kernels)
    marks = bytearray(max(one["ts"] + one["dur"] for one in kernels) - first)
    for mark, communicates in ((1, True), (2, False)):
        for one in kernels:
            if one["name"].startswith("nccl") == communicates:
                at = one["ts"] - first
                marks[at : at + one["dur"]] = bytes([mark]) * one["dur"]
    return marks.count(2), marks.count(1), marks.count(0)
