"""What the optical machines can do, by brute force, written from the hardware sections of their papers.

A machine says of a circuit why its hardware cannot make it, which cells it takes (a laser, a photodiode, a wavelength of a
fibre) and which settings it needs. `light.py` counts.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from math import ceil, gcd, lcm, log2, prod

from tests.independent.plan_rows import Circuit, NotJudgedError

COMB_LINES = 160
"""Lines of the comb of a SiPAC. Source: SiPAC section III-B."""
SHARES = 720_720_000
"""Shares of a port of `ocs` that circuits take."""


@dataclass(frozen=True)
class Use:
    """Cells that a circuit takes.

    Args:
        cell: name of the part and its coordinates.
        most: that a cell has room for [count].
        amount: that the circuit takes [count].
        splits: whether circuits of one signal count once.
    """

    cell: tuple[Hashable, ...]
    most: int = 1
    amount: int = 1
    splits: bool = False


class Machine:
    """A machine; the defaults are those of one port and no settings."""

    nodes: int
    ports: int = 1
    wavelengths: int = 1
    idles: bool = True

    def misfit(self, circuit: Circuit) -> str:
        """Why the hardware cannot make a circuit whose nodes, port and wavelengths exist; empty where it can."""
        raise NotImplementedError

    def uses(self, circuit: Circuit) -> Iterator[Use]:
        """Cells that it takes in its round."""
        yield from ()

    def settings(self, circuit: Circuit) -> Iterator[tuple[Hashable, Hashable]]:
        """Device and setting, the same for all circuits of a round."""
        yield from ()

    def settings_of_job(self, circuit: Circuit) -> Iterator[tuple[Hashable, Hashable]]:
        """Device and setting, the same for all circuits of the plan."""
        yield from ()

    def together(self, circuits: list[Circuit]) -> str:
        """Why circuits that fit one by one cannot exist together, besides cells and settings."""
        return ""


def number(text: str) -> int:
    """A whole number, written in any way."""
    return int(float(text))


def sides(text: str) -> list[int]:
    """A shape."""
    return [int(side) for side in text.split("x")]


class Ramp(Machine):
    """RAMP sections 3.1, 4.1: gates at both ends, star couplers or routers between the groups."""

    def __init__(
        self, groups, racks, wavelengths, transceivers_per_group="1", subnet="broadcast", receiver="by_subnet"
    ):
        self.x, self.racks, self.devices = number(groups), number(racks), number(wavelengths)
        self.b, self.subnet = number(transceivers_per_group), subnet
        needed = {"broadcast": "fixed", "route_broadcast": "tunable", "route_switch": "none"}[subnet]
        self.filters = needed if receiver == "by_subnet" else receiver
        self.group = self.racks * self.devices
        self.nodes, self.ports, self.wavelengths = self.x * self.group, self.x * self.b, self.devices
        self.meet = self.filters == "none" and subnet != "route_switch"  # all light of a subnet, on any wavelength

    def misfit(self, circuit):
        """Gates at the groups of both ends; the one wavelength that leads there."""
        src, dst, lines = circuit.src, circuit.dst, circuit.lines
        if circuit.path != (dst // self.group, src // self.group):
            return "gates towards other groups"
        if len(lines) != 1:
            return "a laser has one wavelength"
        if self.subnet == "broadcast":
            return "" if self.filters != "fixed" or lines[0] == dst % self.devices else "the filter of another device"
        return "" if lines[0] == (dst - src) % self.devices else "the router leads it to another device"

    def subnet_of(self, circuit):
        """The star coupler, or the coupler or crossbar input behind a router."""
        src, dst = circuit.src, circuit.dst
        if self.subnet == "broadcast":
            return src // self.group, dst // self.group
        source = src // self.group if self.subnet == "route_broadcast" else src // self.devices
        return source, dst // self.group, dst % self.devices

    def uses(self, circuit):
        """A laser and a star coupler hand one signal to many; a photodiode and a crossbar have one circuit."""
        port, (line,) = circuit.port, circuit.lines
        yield Use(("transmitter", circuit.src, port), splits=True)
        yield Use(("receiver", circuit.dst, port))
        place = ("subnet", port, *self.subnet_of(circuit))
        if self.subnet == "route_switch":
            yield Use(place)
        else:
            yield Use(place if self.meet else (*place, line), splits=True)

    def together(self, circuits):
        """The b transceivers of a group have one laser and one instruction, whether they carry data or not."""
        if self.b == 1:
            return ""
        opened, listens, light = defaultdict(set), defaultdict(set), {}
        for c in circuits:
            (line,), (group, plane) = c.lines, divmod(c.port, self.b)
            opened[c.src, group].add((plane, line, c.path[0]))
            listens[c.dst, group].add((c.path[1], line if self.filters == "tunable" else 0))
            place = (group, *self.subnet_of(c))
            place = place if self.meet or self.subnet == "route_switch" else (*place, line)
            if light.setdefault(place, c.src) != c.src:
                return "light of two senders on planes of one transceiver group"
        for found in opened.values():
            gates = defaultdict(set)
            for plane, _, gate in found:
                gates[plane].add(gate)
            if len({line for _, line, _ in found}) > 1 or len(set(map(frozenset, gates.values()))) > 1:
                return "two instructions for a transceiver group that sends"
        return "two instructions for a transceiver group that receives" if max(map(len, listens.values())) > 1 else ""


class Sipac(Machine):
    """SiPAC sections III-A, III-B: micro-rings lead each group of lines from an input of a switch to one output."""

    def __init__(self, channels, radix="0", levels="0", radices="", wavelengths=""):
        self.radices = sides(radices) if radices else [number(radix)] * number(levels)
        self.channels = channels
        self.groups = [max(1, r - 1) if channels == "retuned" else r for r in self.radices]
        even = lcm(*self.groups)
        fill = COMB_LINES // even * even or max(COMB_LINES, *self.groups)
        self.wavelengths = number(wavelengths) if wavelengths else fill
        self.nodes, self.ports = prod(self.radices), len(self.radices)

    def digits(self, node):
        """Of a node, level 0 first."""
        found = []
        for radix in self.radices:
            node, digit = divmod(node, radix)
            found.append(digit)
        return found

    def misfit(self, circuit):
        """The port of the one level whose digit differs, lines of the group that a ring drops there."""
        here, there, level = self.digits(circuit.src), self.digits(circuit.dst), circuit.port
        if circuit.path != (level,) or [k for k in range(self.ports) if here[k] != there[k]] != [level]:
            return "no switch joins them at this port"
        radix, groups = self.radices[level], self.groups[level]
        ahead = (there[level] - here[level]) % radix
        dropped = {ahead - 1} if self.channels == "retuned" else {ahead}
        if self.channels == "ring" and ahead == 1:
            dropped.add(0)
        found = {line % groups for line in circuit.lines}
        return "" if len(found) == 1 and found <= dropped else "its ring drops another group"

    def uses(self, circuit):
        """A modulator and a photodiode of each line."""
        for line in circuit.lines:
            yield Use(("modulator", circuit.src, circuit.port, line))
            yield Use(("photodiode", circuit.dst, circuit.port, line))


class Rings(Machine):
    """Fibres that light passes node by node: WRHT section 3.2, ODDL section 2.

    A port belongs to one fibre; `onward` gives the segment from a node and the node behind it.
    """

    tunable = False
    """Whether a port has one transmitter and one receiver for any wavelength, not one of each for every wavelength."""

    def onward(self, node, port):
        """Name of the segment that leads from a node, and the node that it leads to; None without one."""
        raise NotImplementedError

    def misfit(self, circuit):
        """Segments from the sender to the receiver, at most once round."""
        at, passed = circuit.src, set()
        for hop in circuit.path:
            segment = self.onward(at, circuit.port)
            if segment is None or segment[0] != hop or hop in passed:
                return "segments that do not follow each other"
            passed.add(hop)
            at = segment[1]
        if not circuit.path or at != circuit.dst:
            return "segments that lead to another node"
        return "a transmitter has one wavelength" if self.tunable and len(circuit.lines) > 1 else ""

    def fibre(self, port):
        """Name of the fibres that segments of a port belong to."""
        return 0

    def uses(self, circuit):
        """A transmitter, a receiver, and every segment on each wavelength."""
        for line in circuit.lines:
            own = () if self.tunable else (line,)
            yield Use(("transmitter", circuit.src, circuit.port, *own))
            yield Use(("receiver", circuit.dst, circuit.port, *own))
            for hop in circuit.path:
                yield Use(("fibre", self.fibre(circuit.port), hop, line))


class Terarack(Rings):
    """Double rings: port 2 ring + direction."""

    def __init__(self, nodes, wavelengths, rings="1"):
        self.nodes, self.wavelengths, self.ports = number(nodes), number(wavelengths), 2 * number(rings)

    def onward(self, node, port):
        """Clockwise segment i leads from i to i + 1, counter-clockwise segment N + i from i + 1 to i."""
        if port % 2 == 0:
            return node, (node + 1) % self.nodes
        back = (node - 1) % self.nodes
        return self.nodes + back, back

    def fibre(self, port):
        """The ring."""
        return port // 2


class SipRing(Terarack):
    """One ring with one or two directions; a node has a tunable transmitter and receiver for each."""

    tunable = True

    def __init__(self, nodes, wavelengths, directions="1"):
        super().__init__(nodes, wavelengths)
        self.ports = number(directions)


class TerarackTorus(Rings):
    """Ports 0 and 1 along the row, 2 and 3 along the column; segment p N + i is between i and the next node."""

    ports = 4

    def __init__(self, shape, wavelengths, wrap="True"):
        (self.rows, self.columns), self.wavelengths = sides(shape), number(wavelengths)
        self.nodes, self.wrap = self.rows * self.columns, wrap.lower() in ("true", "1", "yes", "on")

    def onward(self, node, port):
        """Along the row or the column, forward or back; a mesh has no segment behind its edge."""
        place, side = list(divmod(node, self.columns)), (self.rows, self.columns)
        axis, way = (1 if port < 2 else 0), (-1 if port % 2 else 1)
        place[axis] += way
        if not self.wrap and not 0 <= place[axis] < side[axis]:
            return None
        place[axis] %= side[axis]
        far = place[0] * self.columns + place[1]
        return port * self.nodes + (node if way == 1 else far), far


class Oddl(Machine):
    """ODDL sections 3, 4.B: a NIC a dimension, switches that lead a wavelength of an input to one output, set once a job."""

    def __init__(self, shape, wavelengths=""):
        self.shape = sides(shape)
        self.nodes, self.ports = prod(self.shape), len(self.shape)
        self.wavelengths = number(wavelengths) if wavelengths else max(1, ceil(log2(max(self.shape))))

    def coordinates(self, node):
        """Of a node; the last dimension varies fastest."""
        found = []
        for side in reversed(self.shape):
            node, at = divmod(node, side)
            found.append(at)
        return found[::-1]

    def misfit(self, circuit):
        """NIC and switch of the one dimension that differs; bonded wavelengths are neighbours."""
        here, there = self.coordinates(circuit.src), self.coordinates(circuit.dst)
        differ = [d for d in range(self.ports) if here[d] != there[d]]
        if differ != [circuit.port] or circuit.path != (circuit.port,):
            return "no switch joins them at this NIC"
        return "wavelengths apart" if len(circuit.lines) > 1 and circuit.lines.step != 1 else ""

    def uses(self, circuit):
        """The whole NIC at both ends."""
        yield Use(("transmitter", circuit.src, circuit.port))
        yield Use(("receiver", circuit.dst, circuit.port))

    def settings_of_job(self, circuit):
        """Where the switch leads a wavelength of an input, and whose light an output gets on it."""
        for line in circuit.lines:
            yield ("input", circuit.src, circuit.port, line), circuit.dst
            yield ("output", circuit.dst, circuit.port, line), circuit.src


class Lightpath(Machine):
    """LUMORPH sections 2.1, 2.2, equation 6: tiles on a grid, waveguides between neighbours, MZI switches in the tiles."""

    MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))
    """East, west, south, north: edge 4 tile + direction."""

    def __init__(self, shape, lasers, waveguides, switch_unit="wavelength", numbering="row"):
        (self.rows, self.columns), self.wavelengths = sides(shape), number(lasers)
        self.nodes, self.guides, self.unit = self.rows * self.columns, number(waveguides), switch_unit
        tiles = list(range(self.nodes))
        if numbering == "squares":
            tiles.sort(
                key=lambda tile: [divmod(tile, self.columns)[k] >> bit & 1 for bit in range(24, -1, -1) for k in (0, 1)]
            )
        elif numbering != "row":
            raise NotJudgedError(f"numbering {numbering}")
        self.tile = tiles

    def misfit(self, circuit):
        """Edges from tile to tile, never straight back, on one waveguide where these have numbers."""
        at, before = self.tile[circuit.src], -1
        for hop in circuit.path:
            tile, way = divmod(hop, 4)
            if tile != at:
                return "edges that do not follow each other"
            if before >= 0 and self.MOVES[way] == tuple(-x for x in self.MOVES[before]):
                return "straight back"
            row, column = (x + move for x, move in zip(divmod(tile, self.columns), self.MOVES[way], strict=True))
            if not (0 <= row < self.rows and 0 <= column < self.columns):
                return "beyond the grid"
            at, before = row * self.columns + column, way
        if not circuit.path or at != self.tile[circuit.dst]:
            return "edges that lead to another tile"
        without = self.unit == "waveguide" and not 0 <= circuit.waveguide < self.guides
        return "no waveguide" if without else ""

    def uses(self, circuit):
        """A laser, a photodiode and a waveguide of every edge, on each wavelength."""
        for line in circuit.lines:
            yield Use(("laser", circuit.src, line))
            yield Use(("photodiode", circuit.dst, line))
            for hop in circuit.path:
                if self.unit == "wavelength":
                    yield Use(("edge", hop, line), self.guides)
                else:
                    yield Use(("waveguide", hop, circuit.waveguide, line))

    def settings(self, circuit):
        """A waveguide gets light from one side, and all of it goes to one side at its end."""
        if self.unit == "waveguide":
            ways = ["laser", *(hop % 4 for hop in circuit.path), "photodiodes"]
            for place, hop in enumerate(circuit.path):
                yield ("begin", hop, circuit.waveguide), ways[place]
                yield ("end", hop, circuit.waveguide), ways[place + 2]


class Ocs(Machine):
    """arXiv 2602.09188, 2510.19322: switches whose setting is a permutation; nodes forward, circuits share links."""

    wavelengths = SHARES

    def __init__(self, nodes, planes="1", forwarding="plane"):
        self.nodes, self.ports, self.between = number(nodes), number(planes), forwarding == "any"

    def links(self, circuit):
        """Ends of each link: hop plane N + i is that out of the sender i, (k + plane) N + i that out of a relay i."""
        begins = [hop % self.nodes for hop in circuit.path]
        return list(zip(begins, [*begins[1:], circuit.dst], strict=True))

    def misfit(self, circuit):
        """Links of its plane from the sender on, or of any plane behind the first."""
        for place, hop in enumerate(circuit.path):
            relays, plane = divmod(hop // self.nodes, self.ports)
            if relays != bool(place) or (plane != circuit.port and not (place and self.between)):
                return "a link of another plane"
        links = self.links(circuit) if circuit.path else [(-1, -1)]
        astray = links[0][0] != circuit.src or any(begin == end for begin, end in links)
        return "no links from the sender to the receiver" if astray else ""

    def uses(self, circuit):
        """Its shares of both ports of every link."""
        for hop, (begin, end) in zip(circuit.path, self.links(circuit), strict=True):
            plane = hop // self.nodes % self.ports
            yield Use(("transmitter", begin, plane), SHARES, len(circuit.lines))
            yield Use(("receiver", end, plane), SHARES, len(circuit.lines))

    def settings(self, circuit):
        """One link a port."""
        for hop, (begin, end) in zip(circuit.path, self.links(circuit), strict=True):
            plane = hop // self.nodes % self.ports
            yield ("input", begin, plane), end
            yield ("output", end, plane), begin


class TopoOpt(Machine):
    """TopoOpt (Wang et al. 2023): rings of all nodes by their strides, set once; nodes forward packets, which share links."""

    idles = False

    def __init__(self, nodes, degree="", strides="", preset="ramp"):
        self.nodes = number(nodes)
        given = sides(strides) if strides else []
        self.ports = number(degree) if degree else len(given) or {"ramp": 1, "topoopt": 4}[preset]
        chosen = given or self._near_geometric()
        self.strides = sorted(set(chosen), key=lambda stride: (-chosen.count(stride), chosen.index(stride)))

    def _near_geometric(self):
        """Stride k is the unused one, coprime to N, that is nearest to N^(k / d), the smaller of two."""
        free = [stride for stride in range(self.nodes) if gcd(stride, self.nodes) == 1]
        chosen = []
        for k in range(min(self.ports, len(free))):
            nearest = min(free, key=lambda stride: (abs(stride - self.nodes ** (k / self.ports)), stride))
            free.remove(nearest)
            chosen.append(nearest)
        return [chosen[k % len(chosen)] for k in range(self.ports)] if self.nodes > 1 else []

    def misfit(self, circuit):
        """Circuits end to end: number ring N + node."""
        at = circuit.src
        for hop in circuit.path:
            ring, node = divmod(hop, self.nodes)
            if node != at or not 0 <= ring < len(self.strides):
                return "circuits that do not follow each other"
            at = (at + self.strides[ring]) % self.nodes
        return "" if circuit.path and at == circuit.dst else "circuits that lead to another node"


MACHINES = {
    "ramp": (Ramp, "groups racks wavelengths transceivers_per_group subnet receiver"),
    "sipac": (Sipac, "channels radix levels radices wavelengths"),
    "terarack": (Terarack, "nodes wavelengths rings"),
    "terarack_torus": (TerarackTorus, "shape wavelengths wrap"),
    "sip_ring": (SipRing, "nodes wavelengths directions"),
    "oddl": (Oddl, "shape wavelengths"),
    "lightpath": (Lightpath, "shape lasers waveguides switch_unit numbering"),
    "ocs": (Ocs, "nodes planes forwarding"),
    "topoopt": (TopoOpt, "nodes degree strides preset"),
}
DAMAGE = {"failed", "dead_tiles", "dead_lasers", "dead_waveguides"}


def machine_of(fabric: str) -> Machine:
    """The machine that a header names.

    Raises: NotJudgedError: another one, or one with failed parts.
    """
    name, _, rest = fabric.partition(":")
    given = dict(part.split("=", 1) for part in re.split(r",(?=\w+=)", rest) if part)
    if name not in MACHINES or DAMAGE & set(given):
        raise NotJudgedError(fabric)
    make, read = MACHINES[name]
    return make(**{key: text for key, text in given.items() if key in read.split()})
