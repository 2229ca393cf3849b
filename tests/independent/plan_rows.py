"""Plan files as docs/files.md describes them, for the independent judge: JSON and CSV.

Imports nothing of the library; `test_judge.py` checks that.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from pathlib import Path

import numpy as np
from tests.independent.phases import BadPhasesError, Phases, Sent

COLUMNS = (
    "step", "round", "transfer", "src", "dst", "chunk_lo", "chunk_n", "parts", "op", "port",
    "wavelength_lo", "wavelength_n", "wavelength_step", "path",
)  # fmt: skip
HEADER = (
    "format", "version", "opticcl", "fabric", "collective", "algorithm", "num_steps", "size_bytes", "nodes",
    "runs", "symmetries", "steps",
)  # fmt: skip
FREE, A_ROW = 1024, 64
"""A file of n rows claims at most FREE + A_ROW n ranks, and as many chunks."""


class MalformedError(Exception):
    """A file that is no plan file."""


class NotJudgedError(Exception):
    """What this judge does not know, so that it has no verdict."""


@dataclass(frozen=True)
class Transfer:
    """Rows with one number and the same values up to `op`.

    Args:
        number: in its step.
        src, dst: nodes.
        chunk_lo, chunk_n, chunk_step: chunks that it carries.
        parts: contributions in each chunk [count].
        op: 0 copy, 1 add, 2 move, 3 add and give up.
    """

    number: int
    src: int
    dst: int
    chunk_lo: int
    chunk_n: int
    chunk_step: int
    parts: int
    op: int

    @property
    def chunks(self) -> list[int]:
        """All of them; none where the distance is no distance."""
        step = self.chunk_step
        return list(range(self.chunk_lo, self.chunk_lo + self.chunk_n * step, step)) if step > 0 else []


@dataclass(frozen=True)
class Circuit:
    """A row.

    Args:
        carries: its transfer; None: it stands idle.
        first, last: the bytes of its transfer that it carries, as shares of them.
        src, dst: nodes.
        port: of both.
        wavelengths: first, number and distance.
        path: elements that the light passes.
        waveguide: on every edge; -1 without that column.
    """

    carries: Transfer | None
    first: Fraction
    last: Fraction
    src: int
    dst: int
    port: int
    wavelengths: tuple[int, int, int]
    path: tuple[int, ...]
    waveguide: int

    @property
    def lines(self) -> range:
        """Its wavelengths."""
        first, number, distance = self.wavelengths
        return range(first, first + number * distance, distance)

    def signal(self, chunks: Mapping[Transfer, list[int]]) -> tuple[object, ...]:
        """Equal for circuits that are one signal: one transmitter and wavelength, the same bytes of the same chunks.

        Args:
            chunks: of all transfers, in one step of the plan.
        """
        data = () if self.carries is None else (tuple(chunks[self.carries]), self.first, self.last)
        return self.src, self.port, self.wavelengths, data


@dataclass(frozen=True)
class Member:
    """Transfers of a run that change in the same way from step to step.

    Args:
        first_transfer: their least number.
        image: of each chunk in the next step; None: no chunk changes.
        parts_step: added to their parts from step to step.
    """

    first_transfer: int
    image: list[int] | None
    parts_step: int


@dataclass(frozen=True)
class FileStep:
    """Rows of one step.

    Args:
        rounds: circuits that exist at the same time.
        transfers: each once.
        count: steps of the plan that it stands for.
        members: of its run.
    """

    rounds: list[list[Circuit]]
    transfers: list[Transfer]
    count: int
    members: list[Member]

    def steps(self, num_chunks: int) -> Iterator[dict[Transfer, tuple[int, list[int]]]]:
        """The steps of the plan that it stands for: parts and chunks of every transfer.

        Args:
            num_chunks: of the plan; numbers that are no chunks stay as they are.
        Raises: MalformedError: a shift leaves a range no range.
        """
        member = [sum(m.first_transfer <= t.number for m in self.members) - 1 for t in self.transfers]
        images = [list(range(num_chunks)) for _ in self.members]
        for turn in range(self.count):
            found = {}
            for t, m in zip(self.transfers, member, strict=True):
                one, image = self.members[m], images[m]
                chunks = [image[c] if 0 <= c < num_chunks else c for c in t.chunks]
                if (
                    one.image is not None
                    and len(chunks) > 1
                    and chunks != list(range(chunks[0], chunks[0] + len(chunks)))
                ):
                    raise MalformedError(f"step {turn} of a run: chunks {t.chunks} become {chunks}")
                found[t] = t.parts + turn * one.parts_step, chunks
            yield found
            images = [
                image if one.image is None else [one.image[c] for c in image]
                for one, image in zip(self.members, images, strict=True)
            ]


@dataclass(frozen=True)
class PhaseStep:
    """Rows of one step, whose transfers phases define.

    Args:
        rounds: circuits that exist at the same time.
        transfers: each once.
        later: transfers of each step of the plan that it stands for, in the order of their numbers.
    """

    rounds: list[list[Circuit]]
    transfers: list[Transfer]
    later: list[list[Sent]]

    @property
    def count(self) -> int:
        """Steps of the plan that it stands for."""
        return len(self.later)

    def steps(self, num_chunks: int) -> Iterator[dict[Transfer, tuple[int, list[int]]]]:
        """As of `FileStep`."""
        for sent in self.later:
            yield {t: (one.parts, list(one.chunks)) for t, one in zip(self.transfers, sent, strict=True)}


@dataclass(frozen=True)
class PlanRows:
    """A plan file.

    Args:
        fabric: "name:key=value,...".
        collective: as in the header.
        nodes: of the machine in the order of the ranks; None: all.
        steps: of the file.
    """

    fabric: str
    collective: dict
    nodes: list[int] | None
    steps: list[FileStep | PhaseStep]


def read_plan(path: Path) -> PlanRows:
    """Read a plan file.

    Raises: MalformedError: it is none. NotJudgedError: a header with fields that this judge does not know.
    """
    header, columns = _csv(path) if path.suffix == ".csv" else _json(path)
    if missing := [name for name in COLUMNS if name not in columns]:
        raise MalformedError(f"no column {missing[0]}")
    if unknown := set(header) - set(HEADER):
        raise NotJudgedError(f"fields {sorted(unknown)} of the header")
    sizes = {len(column) for column in columns.values()}
    if len(sizes) > 1:
        raise MalformedError("columns of several lengths")
    for name in (*COLUMNS, "chunk_step", "waveguide"):
        for cell in columns.get(name, ()):
            if any(type(x) is not int or not -(2**31) <= x < 2**31 for x in (cell if name == "path" else [cell])):
                raise MalformedError(f"{name}={cell} is not a number of 32 bits")
    rows, collective = sizes.pop(), header["collective"]
    most = FREE + A_ROW * rows
    if max(collective["num_ranks"], collective["num_chunks"]) > most:
        raise MalformedError(f"more than {most} ranks or chunks")
    runs = {run["step"]: run for run in header.get("runs", [])}
    phases = _phases(header)
    num_steps = header["num_steps"] - sum(run["count"] - 1 for run in runs.values())
    if phases is not None:
        if phases.num_steps != header["num_steps"]:
            raise MalformedError(f"{phases.num_steps} steps of phases")
        num_steps = len(phases.file_steps())
    if num_steps > rows:
        raise MalformedError(f"{num_steps} steps of {rows} rows")
    order = list(zip(columns["step"], columns["round"], strict=True))
    if order != sorted(order) or any(not 0 <= step < num_steps or number < 0 for step, number in order):
        raise MalformedError("rows out of order, or of no step")
    if min(columns["transfer"], default=0) < -1:
        raise MalformedError("a transfer below -1")
    of_step: list[list[int]] = [[] for _ in range(num_steps)]
    for row, step in enumerate(columns["step"]):
        of_step[step].append(row)
    steps = [_step(columns, of_step[k], runs.get(k), collective["num_chunks"]) for k in range(num_steps)]
    if phases is not None:
        where = header.get("nodes") or list(range(collective["num_ranks"]))
        for k, (first, count, defined) in enumerate(phases.file_steps()):
            if defined:
                steps[k] = _of_phases(steps[k], [phases.step(first + turn) for turn in range(count)], where)
    return PlanRows(header["fabric"], collective, header.get("nodes"), steps)


def _phases(header: dict) -> Phases | None:
    if header.get("steps") is None:
        return None

    def numbers(text: str, count: int | None) -> np.ndarray:
        return np.frombuffer(inflated(text), "<i4").astype(np.int64) if count is None else unpacked(text, count)

    c = header["collective"]
    try:
        return Phases(header["steps"], c["num_ranks"], c["num_chunks"], numbers)
    except BadPhasesError as error:
        raise MalformedError(str(error)) from None


def _of_phases(step: FileStep, sent: list[list[Sent]], nodes: list[int]) -> PhaseStep:
    """A step of the file, whose rows must repeat what phases say.

    Args:
        step: by its rows.
        sent: transfers of each step of the plan that it stands for.
        nodes: of the ranks.
    Raises: MalformedError: rows with other transfers.
    """
    if any(len(one) != len(sent[0]) for one in sent):
        raise MalformedError("steps of one kind with other transfers")
    found = []
    for number, one in enumerate(sent[0]):
        lo, n = one.chunks[0], len(one.chunks)
        apart = one.chunks[1] - lo if n > 1 else 1
        found.append(Transfer(number, nodes[one.src], nodes[one.dst], lo, n, apart, one.parts, one.op))
    for t in step.transfers:
        said = found[t.number] if t.number < len(found) else None
        if said is None or replace(t, chunk_step=said.chunk_step if t.chunk_n == 1 else t.chunk_step) != said:
            raise MalformedError(f"transfer {t} is not what the phases say")
    if missing := set(range(len(found))) - {t.number for t in step.transfers}:
        raise MalformedError(f"no row of transfer {min(missing)} of the phases")
    known = {(t.number, t.src, t.dst, t.chunk_lo, t.chunk_n, t.parts, t.op): t for t in found}

    def carried(c: Circuit) -> Circuit:
        t = c.carries
        return (
            c if t is None else replace(c, carries=known[t.number, t.src, t.dst, t.chunk_lo, t.chunk_n, t.parts, t.op])
        )

    return PhaseStep([[carried(c) for c in circuits] for circuits in step.rounds], found, sent)


def _json(path: Path) -> tuple[dict, dict]:
    whole = json.loads(path.read_text("utf-8-sig"))
    return whole["header"], whole["columns"]


def _csv(path: Path) -> tuple[dict, dict]:
    first, names, *lines = path.read_text("utf-8-sig").splitlines()
    if not first.startswith("# "):
        raise MalformedError("no header")
    table = [line.split(",") for line in lines if line]
    columns = {}
    for place, name in enumerate(names.split(",")):
        cells = [row[place] for row in table]
        columns[name] = [[int(x) for x in cell.split()] if name == "path" else int(cell) for cell in cells]
    return json.loads(first[2:]), columns


def _step(columns: dict, rows: list[int], run: dict | None, num_chunks: int) -> FileStep:
    """A step of the file. The bytes of a transfer are divided among its circuits in the order of ports and wavelengths.

    Args:
        columns: of all rows.
        rows: of the step.
        run: of the header that begins with it.
        num_chunks: of the plan [count].
    """
    apart = columns.get("chunk_step")
    transfer_of: dict[int, Transfer] = {}
    wavelengths: dict[Transfer, int] = {}  # of all circuits of a transfer
    for row in rows:
        if (number := columns["transfer"][row]) >= 0:
            src, dst, lo, n, parts, op = (columns[c][row] for c in ("src", "dst", "chunk_lo", "chunk_n", "parts", "op"))
            transfer_of[row] = Transfer(number, src, dst, lo, n, 1 if apart is None else apart[row], parts, op)
            many = wavelengths.get(transfer_of[row], 0)
            wavelengths[transfer_of[row]] = many + max(columns["wavelength_n"][row], 0)
    first: dict[int, Fraction] = {}
    last: dict[int, Fraction] = {}
    before = dict.fromkeys(wavelengths, 0)
    for row in sorted(transfer_of, key=lambda row: (columns["port"][row], columns["wavelength_lo"][row])):
        sent = transfer_of[row]
        whole = max(wavelengths[sent], 1)
        first[row] = Fraction(before[sent], whole)
        before[sent] += max(columns["wavelength_n"][row], 0)
        last[row] = Fraction(before[sent], whole)
    rounds: dict[int, list[Circuit]] = {}
    for row in rows:
        share = first.get(row, Fraction(0)), last.get(row, Fraction(0))
        ends = (columns[c][row] for c in ("src", "dst", "port"))
        light = tuple(columns[c][row] for c in ("wavelength_lo", "wavelength_n", "wavelength_step"))
        guide = columns["waveguide"][row] if "waveguide" in columns else -1
        circuit = Circuit(transfer_of.get(row), *share, *ends, light, tuple(columns["path"][row]), guide)
        rounds.setdefault(columns["round"][row], []).append(circuit)
    members = [Member(0, None, 0)] if run is None else [_member(one, num_chunks) for one in run["members"]]
    count = 1 if run is None else run["count"]
    return FileStep([rounds[number] for number in sorted(rounds)], list(wavelengths), count, members)


def _member(given: dict, num_chunks: int) -> Member:
    shift = given.get("shift")
    image = None if shift is None else permutation(shift, num_chunks)
    return Member(given.get("first_transfer", 0), image, given.get("parts_step", 0))


def permutation(given: dict, count: int) -> list[int]:
    """Image of each of `count` elements.

    Raises: MalformedError: no permutation of them. NotJudgedError: of a kind that this judge does not know.
    """
    found, kind = np.arange(count), given["kind"]
    if kind == "digits":
        radices, digit = given["radices"], given["digit"]
        stride = prod(radices[digit + 1 :])
        at = found // stride % radices[digit]
        found = found + ((at + given["add"]) % radices[digit] - at) * stride
    elif kind == "xor":
        found = found ^ given["mask"]
    elif kind == "table":
        found = np.cumsum(unpacked(given["values"], count))
    elif kind == "through":
        label = np.cumsum(unpacked(given["label"], count))
        if sorted(label.tolist()) != list(range(count)):
            raise MalformedError("labels are not all elements")
        found = np.argsort(label)[np.array(permutation(given["inner"], count))[label]]
    else:
        raise NotJudgedError(f"permutation {kind}")
    if sorted(found.tolist()) != list(range(count)):
        raise MalformedError(f"{kind}: no permutation of {count} elements")
    return found.tolist()


def unpacked(text: str, count: int) -> np.ndarray:
    """`count` numbers: little-endian int32, deflated, in base 64.

    Raises: MalformedError: another number of them, or damaged.
    """
    found = np.frombuffer(inflated(text), "<i4")
    if len(found) != count:
        raise MalformedError(f"{len(found)} values, not {count}")
    return found.astype(np.int64)


def inflated(text: str) -> bytes:
    """Bytes that are deflated, in base 64.

    Raises: MalformedError: damaged.
    """
    try:
        return zlib.decompress(base64.b64decode(text, validate=True))
    except (binascii.Error, zlib.error) as error:
        raise MalformedError(f"damaged values: {error}") from None
