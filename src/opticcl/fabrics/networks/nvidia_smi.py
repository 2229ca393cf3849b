"""Matrices of `nvidia-smi topo -m`: what is between every two GPUs and network cards of a server.

NV# are bonded NVLinks. Where all pairs of GPUs have equal ones and more than a GPU has, they lead to NVSwitches, which are one
vertex; else each pair has direct links. Where they do not join all GPUs, PCIe does: GPUs below one switch are PIX to each
other, below several PXB, below one CPU PHB or NODE, and SYS crosses the one link between two CPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import nan

from opticcl.fabrics.networks import register_network
from opticcl.fabrics.networks._servers import PCIE_LEFT_OUT, copied, joined, nvlinks_are_switched, rate_of_nvlinks
from opticcl.fabrics.networks.file_graph import NODE, FileFaultError, FileGraph, FileGraphBuilder, FileOptions, Nic, Way

DISTANCES = {"PIX": 0, "PXB": 1, "PHB": 2, "NODE": 3, "SYS": 4, "SOC": 4}
P2P = {"OK", "GNS", "CNS", "TNS", "NS", "DR", "U"}
_CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_HEADER = re.compile(r"^[ \t]*GPU0\s+(?!X)\S", re.MULTILINE)
_WORDS = re.compile(r"(?:X|NV[0-9]+|PIX|PXB|PHB|NODE|SYS|SOC)+")
"""Cells of a row; terminals that write tabs as spaces leave no space between some."""

_NAME = re.compile(r"GPU[0-9]+|NIC[0-9]+|[A-Za-z][\w.:-]*[0-9][^\W0-9]*")


def _plain(text: str) -> str:
    return _CODES.sub("", text)


def _sniff(text: str) -> bool:
    plain = _plain(text)
    header = _HEADER.search(plain)
    return header is not None and re.search(r"^[ \t]*GPU0\s+X", plain, re.MULTILINE) is not None


@dataclass(frozen=True, slots=True)
class _Matrix:
    """Names of the columns, GPUs first, and the words between every two.

    Args:
        names: GPUs, then network cards, in the order of the header.
        num_gpus: [count].
        word: by (row, column).
        affinity: CPUs of each GPU as the row says, "" if it does not.
    """

    names: tuple[str, ...]
    num_gpus: int
    word: dict[tuple[int, int], str]
    affinity: tuple[str, ...]

    def distance(self, one: int, other: int) -> int:
        """How far two are apart on PCIe; where NVLinks hide it, at the same CPU or not."""
        word = self.word[one, other]
        if word in DISTANCES:
            return DISTANCES[word]
        return DISTANCES["NODE" if self.affinity[one] == self.affinity[other] else "SYS"]

    def links(self, one: int, other: int) -> int:
        """NVLinks between two [count]."""
        word = self.word[one, other]
        return int(word[2:]) if word.startswith("NV") else 0


def _parse(text: str) -> _Matrix:
    """The matrix of a text, whatever stands before and behind it.

    Raises: FileFaultError: rows and header that do not fit, which a wrapped line does, or words that are unknown.
    """
    lines = list(enumerate(_plain(text).splitlines(), 1))
    at = next((k for k, (_, row) in enumerate(lines) if _HEADER.match(row)), None)
    if at is None:
        raise FileFaultError(0, "has no header with GPU0, GPU1, ...; paste all that nvidia-smi topo -m prints")
    columns: list[str] = []
    for cell in lines[at][1].split():
        if not _NAME.fullmatch(cell):  # CPU Affinity and what follows
            break
        columns.append(cell)
    if len(set(columns)) != len(columns):
        raise FileFaultError(lines[at][0], "two columns have one name")
    gpus = [name for name in columns if re.fullmatch(r"GPU[0-9]+", name)]
    order = gpus + [name for name in columns if name not in gpus]
    place = {name: k for k, name in enumerate(order)}
    word: dict[tuple[int, int], str] = {}
    affinity = [""] * len(gpus)
    for line, row in lines[at + 1 :]:
        cells = [one for cell in row.split() for one in _words(cell)]
        if (
            not cells
            or len(cells) < 2
            or not (cells[1] == "X" or cells[1] in DISTANCES or re.match(r"NV[0-9]|OK|N?S$", cells[1]))
        ):
            continue
        if cells[0] not in place:
            raise FileFaultError(line, f"row {cells[0][:20]!r} has no column in the header; is a line wrapped?")
        if (place[cells[0]],) * 2 in word:
            raise FileFaultError(
                line, f"a second row {cells[0]}; a file has the matrix of one server, copies= makes several"
            )
        word |= _row(line, place[cells[0]], cells[1:], [place[name] for name in columns])
        if place[cells[0]] < len(gpus):
            affinity[place[cells[0]]] = "".join(cells[1 + len(columns) : 2 + len(columns)])
    for one, other in ((one, other) for one in range(len(order)) for other in range(len(order))):
        if (one, other) not in word and (one < len(gpus) or other < len(gpus)):
            if one >= len(gpus):  # rows of network cards say nothing that columns do not
                word[one, other] = word[other, one]
                continue
            raise FileFaultError(0, f"row {order[one]} is missing; paste all that nvidia-smi topo -m prints")
    for one, other in combinations(range(len(gpus)), 2):
        if word[one, other] != word[other, one]:
            raise FileFaultError(
                0, f"{order[one]} to {order[other]} is {word[one, other]}, and back {word[other, one]}"
            )
    return _Matrix(tuple(order), len(gpus), word, tuple(affinity))


def _words(cell: str) -> list[str]:
    """The words of a cell."""
    return re.findall(r"X|NV[0-9]+|[A-Z]{3}(?!E)|NODE", cell) if _WORDS.fullmatch(cell) else [cell]


def _row(line: int, row: int, cells: list[str], columns: list[int]) -> dict[tuple[int, int], str]:
    """Words of a row."""
    if len(cells) < len(columns):
        raise FileFaultError(line, f"{len(cells)} cells, and the header has {len(columns)} columns; is a line wrapped?")
    words = {}
    for column, cell in zip(columns, cells, strict=False):
        if cell in P2P:
            raise FileFaultError(
                line, "is a matrix of nvidia-smi topo -p2p, without distances; take nvidia-smi topo -m"
            )
        if not (cell in DISTANCES or re.fullmatch(r"NV[0-9]{1,3}", cell) or (cell == "X" and column == row)):
            raise FileFaultError(line, f"{cell[:20]!r} is none of X, NV#, {', '.join(DISTANCES)}")
        if cell == "NV0" or (column == row) != (cell == "X"):
            where = "two that differ" if column != row else "one and itself"
            raise FileFaultError(line, f"{cell} between {where}; X is itself, and NV1 the fewest links of a pair")
        words[row, column] = cell
    return words


@register_network("nvidia_smi", "nvidia-smi topo -m", _sniff, servers=True)
def read_nvidia_smi(text: str, options: FileOptions) -> FileGraph:
    """The graph of a server, or of copies of it.

    Raises: FileFaultError: a matrix that is none, or a rate that is unknown.
    """
    matrix, made = _parse(text), FileGraphBuilder(options)
    for name in matrix.names[: matrix.num_gpus]:
        made.vertex(name, NODE)
    pairs = [(one, other) for one, other in combinations(range(matrix.num_gpus), 2) if matrix.links(one, other)]
    if pairs:
        _add_nvlinks(made, matrix, pairs)
    apart = len(set(joined(matrix.num_gpus, pairs))) > 1
    made.pcie_bits_per_s = options.pcie if options.pcie is not None else nan
    hubs: dict[int, int] = {}
    if apart if options.with_pcie is None else options.with_pcie:
        hubs = _add_pcie(made, matrix, nvlinks=bool(pairs))
    else:
        made.notes.append(PCIE_LEFT_OUT)
    for nic in range(matrix.num_gpus, len(matrix.names)):
        far = [matrix.distance(nic, gpu) for gpu in range(matrix.num_gpus)]
        near = tuple(gpu for gpu, distance in enumerate(far) if distance == min(far))
        made.nics.append(Nic(matrix.names[nic], near, min(far) <= DISTANCES["PXB"], nan, hubs.get(nic, -1)))
    return made.graph() if options.copies == 1 else copied(made.graph(), options)


def _add_nvlinks(made: FileGraphBuilder, matrix: _Matrix, pairs: list[tuple[int, int]]) -> None:
    """Links of the GPUs to NVSwitches, or to each other."""
    gpus, counts = matrix.num_gpus, {matrix.links(*pair) for pair in pairs}
    whole = len(pairs) == gpus * (gpus - 1) // 2 and len(counts) == 1
    switched = whole and nvlinks_are_switched(made.options, gpus, min(counts))
    of_gpus = [sum(matrix.links(gpu, other) for other in range(gpus) if other != gpu) for gpu in range(gpus)]
    rate = rate_of_nvlinks(made.options, made, min(counts) if switched else max(of_gpus))
    if switched:
        switch = made.vertex("NVSwitch", "NVSwitch")
        for gpu in range(gpus):
            made.edge(gpu, switch, min(counts) * rate, way=Way.BOTH)
        made.notes.append(
            f"NV{min(counts)} between all GPUs are {min(counts)} links of each to NVSwitches, which are one vertex."
        )
        return
    for one, other in pairs:
        made.edge(one, other, matrix.links(one, other) * rate, way=Way.BOTH)


def _add_pcie(made: FileGraphBuilder, matrix: _Matrix, *, nvlinks: bool) -> dict[int, int]:
    """The tree of PCI switches and CPUs that the words imply.

    Returns: vertex from which each network card hangs.
    Raises: FileFaultError: rates that are needed and not given.
    """
    options, every = made.options, range(len(matrix.names))
    if options.pcie is None:
        hidden = "" if nvlinks else " (topo -mp hides NVLinks: take topo -m)"
        raise FileFaultError(
            0, f"no NVLinks join all GPUs{hidden}, PCIe does: give pcie=, such as 12GB/s, and sys= between CPUs"
        )
    if not all(matrix.affinity) and any(matrix.links(*pair) for pair in combinations(range(matrix.num_gpus), 2)):
        raise FileFaultError(
            0, "NVLinks hide how GPUs are on PCIe, and no CPU Affinity says it; paste all columns of the matrix"
        )
    levels = [
        joined(
            len(every),
            ((a, b) for a, b in combinations(every, 2) if (a, b) in matrix.word and matrix.distance(a, b) <= farthest),
        )
        for farthest in (DISTANCES["PIX"], DISTANCES["PXB"], DISTANCES["NODE"])
    ]
    cpus = {root: made.vertex(f"CPU{k}", "CPU") for k, root in enumerate(sorted(set(levels[2])))}
    if len(cpus) > 1 and options.sys is None:
        raise FileFaultError(
            0, f"GPUs of {len(cpus)} CPUs are joined by PCIe: sys= is the rate between two CPUs, such as 10GB/s"
        )
    for one, other in combinations(cpus.values(), 2):
        made.edge(one, other, options.sys or nan, way=Way.BOTH)
    hub = dict(enumerate(cpus[root] for root in levels[2]))
    with_gpus = [{level[gpu] for gpu in range(matrix.num_gpus)} for level in levels]
    bridges = [levels[1].count(root) > 1 and root in with_gpus[1] for root in levels[1]]
    several = [len({levels[0][k] for k in every if levels[1][k] == root}) > 1 for root in levels[1]]
    for level, wanted in (
        (levels[1], [one and other for one, other in zip(bridges, several, strict=True)]),
        (levels[0], [one and root in with_gpus[0] for one, root in zip(bridges, levels[0], strict=True)]),
    ):
        hub = dict(_add_switches(made, level, wanted, hub))
    for gpu in range(matrix.num_gpus):
        made.edge(gpu, hub[gpu], options.pcie, way=Way.BOTH)
    made.notes.append("PCIe is part of the network.")
    return hub


def _add_switches(
    made: FileGraphBuilder, level: list[int], wanted: list[bool], hub: dict[int, int]
) -> Iterator[tuple[int, int]]:
    """Vertex that each member hangs from: a new switch for each set that is wanted.

    Args:
        made: collects them.
        level: set of each member.
        wanted: whether the set of each member has a switch.
        hub: vertex above each member so far.
    """
    switches: dict[int, int] = {}
    for member, root in enumerate(level):
        if wanted[member] and root not in switches:
            switches[root] = made.vertex(f"PCI switch {sum(kind == 'PCI switch' for kind in made.kinds)}", "PCI switch")
            made.edge(switches[root], hub[member], made.options.pcie or nan, way=Way.BOTH)
        yield member, switches.get(root, hub[member])
