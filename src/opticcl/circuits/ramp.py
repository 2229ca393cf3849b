"""RAMP's network transcoder: transceivers, wavelength and gates of every transfer.

Wavelength and gates follow from the hardware: the wavelength between the two devices, the TX gate at the receiver's group,
the RX gate at the sender's. What is chosen is the transceiver group: t, or n neighbouring ones n p, ..., n p + n - 1 for each
of d - 1 peers, n = floor(x / (d-1)) where light does not meet on the way. Sums are those of the variant (field or modulo x), e
is the receiver's place behind the sender, (y_dst - y_src) mod d:

    steps 1, 2   t = g_src + g_dst + j_src
    step 3       x = 2^k: t = (j_dst XOR 2 j_src) + r 2^m, r < x / 2^m, in the field of 2^m >= J elements
                 else p = e - 1 + k, k = g_src / u - j_src; t = g_dst + j_src where n = 1
    step 4       p = e - 1; modular: p = e - 1 + j_src, n <= floor(x / J), since all racks of a group share its subnets

Crossbars keep racks apart: there p = e - 1 in steps 3 and 4, and every n is floor(x / (d-1)). A broadcast shares a node's x
groups among the wavelengths that it lights (and the racks, behind crossbars, which do not split light). Where receivers
have no filters and light of a subnet meets, all schedules go by first fit.

Skewed exchanges have the planes of their labels; where parts of f planes have failed, labels are dealt over the other x - f, if
that takes fewer rounds than a repair.

Source: RAMP section 6.2, equations 2 to 5.
Reading: equation 2 in step 3 uses receivers twice for even x, and equations 3 to 5 count from the wrong base; the forms above
are the corrected ones. Where x = 2^k, 2^m racks share each pair of groups in step 3, so more than x / 2^m transceivers a peer
cannot be had without crossbars. variant=published keeps equation 2 in all steps and formulation 4.1's x transceivers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from opticcl.circuits import Rounds, register_rule
from opticcl.circuits._around import around
from opticcl.circuits._order import farthest_first
from opticcl.circuits._size import decline_too_many
from opticcl.collective import Request
from opticcl.fabrics.ramp import Ramp, wavelength_between
from opticcl.ir import Circuits, Fabric, IntArray, Schedule, Transfers, concatenate_circuits
from opticcl.ir.limits import MOST_LISTED
from opticcl.ir.phases import Steps
from opticcl.ir.representatives import LightMove, Represented, SymmetricRounds
from opticcl.routing.assign import first_fit, width_that_fits
from opticcl.schedule.galois_field import galois_field
from opticcl.schedule.ramp import phases
from opticcl.schedule.ramp_broadcast import STAGES, Relays, relays
from opticcl.schedule.ramp_maps import Geometry, geometry
from opticcl.schedule.skewed_exchange import SkewedExchange, class_arithmetic, exchange_of, group_turns

FIRST_FIT_BYTES = 88  # of a transfer: what it occupies, three numbers twice, its colour, round and place in the order
CIRCUIT_BYTES = 40  # two hops included


@register_rule("ramp")
def ramp(fabric: Fabric, schedule: Schedule) -> Rounds:
    """The transcoder for RAMP-x, first fit for any other schedule, around what has failed.

    Raises: UnsupportedError: a step of another schedule has too many circuits.
    """
    rounds = _in_order(fabric, schedule)
    if fabric.num_members > 1:
        rounds = _apart(fabric, rounds)
    if not fabric.conditions:
        return rounds
    repaired = around(fabric, rounds, widens=True)
    planes = _planes_that_work(fabric)
    part = fabric.equivalent is not fabric.machine  # whose planes are others
    if part or not _has_labels(fabric, schedule) or not 0 < len(planes) < fabric.machine_as(Ramp).groups:
        return repaired
    dealt = _skewed(fabric, schedule, planes)
    return lambda step, transfers: min((repaired(step, transfers), dealt(step, transfers)), key=len)


def _in_order(fabric: Fabric, schedule: Schedule) -> Rounds:
    """The same where nothing has failed."""
    machine, own = fabric.machine_as(Ramp), fabric.equivalent
    if _has_labels(fabric, schedule):
        return _skewed(fabric, schedule, None)
    if schedule.name != "ramp" or not isinstance(own, Ramp) or machine.signals_meet:
        circuits = machine.transceivers_per_group
        decline_too_many(fabric, schedule, FIRST_FIT_BYTES + CIRCUIT_BYTES * circuits)
        return farthest_first(fabric.num_machine_nodes, lambda transfers: _first_fit(fabric, transfers))
    asked = schedule.collective
    if asked.name == "broadcast" and schedule.parameters.get("stages", STAGES) is not None:
        tree = relays(own, asked.root)
        return lambda step, transfers: _split_light(fabric, own, tree, transfers)
    maps = geometry(own, schedule.parameters.get("variant", "auto"))
    order = phases(maps, asked.name)  # whole messages take the first half of them
    crossbars = machine.subnet == "route_switch"

    def transcode(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        if order[step] == 4 and maps.variant == "modular" and maps.radices[3] > maps.groups:
            return _first_fit(fabric, transfers)  # more peers in a pair of groups than transceivers
        ends = fabric.ranks_in_group(transfers.src), fabric.ranks_in_group(transfers.dst)
        groups = _transceiver_groups(maps, crossbars, order[step], *ends)
        return (_circuits(fabric, own, transfers, np.arange(len(transfers)), groups),)

    return transcode


def _apart(fabric: Fabric, rounds: Rounds) -> Rounds:
    """Rounds of groups that do not meet, as those of racks of one group would; by first fit where they do.

    Args:
        fabric: groups on a RAMP.
        rounds: in which each group has the circuits that it would have alone.
    """
    all_together = farthest_first(fabric.num_machine_nodes, lambda transfers: _first_fit(fabric, transfers))

    def of_groups(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        lowered = rounds(step, transfers)
        return all_together(step, transfers) if any(_groups_meet(fabric, circuits) for circuits in lowered) else lowered

    return of_groups


def _groups_meet(fabric: Fabric, circuits: Circuits) -> bool:
    """Whether light of two groups is in one place of a subnet on one transceiver; no two of them have a node in common."""
    place = _middle(fabric, circuits.src.astype(np.int64), circuits.dst.astype(np.int64))
    key = (place * fabric.ports_per_node + circuits.port) * fabric.num_members + fabric.groups_at(circuits.src)
    key.sort()
    place = key // fabric.num_members
    return bool(((place[1:] == place[:-1]) & (key[1:] != key[:-1])).any())


# --- RAMP-x: closed forms ---------------------------------------------------------------------------------------------


def _transceiver_groups(maps: Geometry, crossbars: bool, phase: int, src: IntArray, dst: IntArray) -> IntArray:
    """Transceiver groups of each transfer, int32 (n, groups a peer)."""
    x, racks, d = maps.groups, maps.racks, maps.radices[phase - 1]
    most = max(1, x // (d - 1))
    add = maps.arithmetic.add
    (g_src, j_src, _, d_src), (g_dst, j_dst, _, d_dst) = maps.split(src), maps.split(dst)
    if phase <= 2 or (phase == 3 and maps.variant == "published"):  # equation 2
        each = most if crossbars or most * racks <= x else 1
        return (add(add(g_src, g_dst), j_src)[:, None] + _side_by_side(each)) % x
    behind = (j_dst - j_src) % racks if phase == 3 else (d_dst - d_src) % d
    if crossbars:
        return _neighbours(behind - 1, most, x)
    if phase == 3 and maps.variant == "field" and x.bit_count() == 1:
        return _xor_racks(x, racks, j_src, j_dst)
    if phase == 3 and (most == 1 or x == 2):
        return add(g_dst, j_src)[:, None]
    if phase == 3:
        subgroup = (g_src * _inverse_tilts(maps)[d_src] - j_src) % x
        return _neighbours(behind - 1 + subgroup, most, x)
    if maps.variant == "modular":
        return _neighbours(behind - 1 + j_src, min(most, x // racks), x)
    return _neighbours(behind - 1, most, x)


def _side_by_side(count: int) -> IntArray:
    return np.arange(count, dtype=np.int32)[None, :]


def _neighbours(place: IntArray, each: int, x: int) -> IntArray:
    """Transceiver groups each * place + 0, 1, ..., each - 1, around the circle of x."""
    return (place[:, None] * np.int32(each) + _side_by_side(each)) % np.int32(x)


def _xor_racks(x: int, racks: int, j_src: IntArray, j_dst: IntArray) -> IntArray:
    """Step 3 where group numbers are added by XOR: pairs of racks that share two groups are up to 2^m >= J."""
    width = 1 << (racks - 1).bit_length()
    place = j_src if width == 2 else j_dst ^ galois_field(width).mul(np.full_like(j_src, 2), j_src)
    return place[:, None] + _side_by_side(x // width) * np.int32(width)


def _inverse_tilts(maps: Geometry) -> IntArray:
    """1 / u(d) for each device group: in step 3 the group moves by u(d) a rack, which is 1 in variant modular."""
    if maps.variant == "modular":
        return np.ones(maps.radices[3], np.int32)
    return np.array([pow(1 + d, -1, maps.groups) for d in range(maps.radices[3])], np.int32)


def _split_light(fabric: Fabric, own: Ramp, tree: Relays, transfers: Transfers) -> tuple[Circuits, ...]:
    """The broadcast: each sender shares its transceiver groups among what it lights, in several rounds if that is more.

    Args:
        fabric: a RAMP, or a job on it.
        own: RAMP of the ranks alone.
        tree: that the data go along.
        transfers: of the step.
    """
    x, racks, devices = own.groups, own.racks, own.wavelengths
    receiver = fabric.ranks_in_group(transfers.dst)
    device = receiver % devices
    straight = device == tree.root % devices
    turn_of = np.zeros(devices, np.int32)
    turn_of[tree.device] = tree.turn
    rounds: dict[int, list[Circuits]] = {}
    for rows, turns in (
        (np.flatnonzero(straight), 1),
        (np.flatnonzero(~straight), int(tree.turn.max(initial=0)) + 1),
    ):
        shares, share = turns, turn_of[device[rows]]
        if own.subnet == "route_switch":  # a crossbar leads to one rack
            shares, share = turns * racks, share * racks + receiver[rows] // devices % racks
        groups = share[:, None] % x * np.int32(max(1, x // shares)) + _side_by_side(max(1, x // shares))
        for number in range(-(-shares // x)):
            now = share // x == number
            if now.any():
                rounds.setdefault(number, []).append(_circuits(fabric, own, transfers, rows[now], groups[now]))
    return tuple(concatenate_circuits(rounds[number]) for number in sorted(rounds))


# --- skewed exchanges: a label a plane ---------------------------------------------------------------------------------


def _has_labels(fabric: Fabric, schedule: Schedule) -> bool:
    """Whether the transfers of a schedule have labels, and the fabric planes of their own for them."""
    own = fabric.equivalent
    if schedule.name != "skewed_exchange" or not isinstance(own, Ramp):
        return False
    return own.subnet == "broadcast" and not own.signals_meet


def _planes_that_work(fabric: Fabric) -> IntArray:
    """Planes of which no part but a node has failed, ascending."""
    machine = fabric.machine_as(Ramp)
    gates = ("tx_gate", "rx_gate", "input_fibre", "output_fibre")
    ports = {
        c.index // (machine.groups if c.kind in gates else 1) % machine.ports_per_node
        for c in fabric.conditions
        if c.kind != "node"
    }
    hurt = {port // machine.transceivers_per_group for port in ports}
    return np.array([plane for plane in range(machine.groups) if plane not in hurt], np.int64)


def _skewed(fabric: Fabric, schedule: Schedule, planes: IntArray | None) -> _Skewed:
    """Rounds of as many labels as there are planes (`opticcl.schedule.skewed_exchange`).

    Args:
        fabric: a RAMP, or a job on it.
        schedule: skewed_exchange.
        planes: that are used, ascending; None: all.
    """
    asked, own = Request(schedule.collective.name, schedule.collective.root), fabric.equivalent
    assert isinstance(own, Ramp)  # else there is no such schedule
    exchange = exchange_of(asked, own, **schedule.parameters)
    exchange = exchange._replace(phases=exchange.steps_on(own))
    return _Skewed(
        fabric, own, schedule.steps, exchange, np.arange(own.groups) if planes is None else planes, MOST_LISTED
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Skewed(Represented):
    """Labels, each on a plane of its own: transfers of a label do not meet on any, so N labels take ceil(N / planes) rounds.

    Args:
        fabric: a RAMP, or a job on it.
        own: RAMP of the ranks alone.
        steps: of the schedule.
        exchange: with the peers of each step.
        planes: that are used, ascending.
        most_listed: circuits of a step that are listed [count].
    """

    fabric: Fabric
    own: Ramp
    steps: Steps
    exchange: SkewedExchange
    planes: IntArray
    most_listed: int

    def __call__(self, step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        """Circuits of each round."""
        phase, x = self.exchange.phases[step], self.own.groups
        src, dst = (self.fabric.ranks_in_group(nodes) for nodes in (transfers.src, transfers.dst))
        ranks = replace(transfers, src=src, dst=dst)
        if phase == "D":  # one peer in each other class, on all planes
            number, plane = self._classes_ahead(ranks), self.planes[None, :]
        else:
            number, one = self._labels(phase, ranks)
            if len(self.planes) < x:
                number, nth = np.divmod(number * x + one, len(self.planes))
                one = self.planes[nth]
            plane = one[:, None]
        ends = np.cumsum(np.bincount(number))
        short = number.astype(np.min_scalar_type(len(ends)))  # sorted by digits where they have few bits
        order = np.argsort(short, kind="stable")
        every = np.broadcast_to(plane, (len(transfers), plane.shape[1]))
        rounds = (rows for rows in np.split(order, ends[:-1]) if len(rows))
        return tuple(_circuits(self.fabric, self.own, transfers, rows, every[rows].astype(np.int32)) for rows in rounds)

    def represents(self, step: int) -> bool:
        """Whether there are too many circuits to list, and those of some senders define all: each label has a plane of its
        own, and all parts work."""
        each = self.own.groups if self.exchange.phases[step] == "D" else 1  # circuits of a transfer
        return self._senders_define_all and self.steps.num_transfers(step) * each > self.most_listed

    @property
    def _senders_define_all(self) -> bool:
        """Whether each label has a plane of its own, and all parts work."""
        identical = len(self.planes) == self.own.groups and self.own.transceivers_per_group == 1
        whole = identical and not self.fabric.conditions and self.fabric.node_of_rank is None
        return whole and self.exchange.phases != "R"

    def senders(self, step: int) -> IntArray | None:
        """Those of group 0 whose places the moves do not join."""
        if not self._senders_define_all:
            return None
        machine = self.own
        along, many = self._places_joined(step)
        firsts = (np.arange(machine.wavelengths // many)[:, None] * many + np.arange(along)).ravel()
        senders: IntArray = (np.arange(machine.racks)[:, None] * machine.wavelengths + firsts).ravel()
        return senders

    def _places_joined(self, step: int) -> tuple[int, int]:
        """By how many places a move goes on, and among how many."""
        machine, phase = self.own, self.exchange.phases[step]
        along = machine.groups if phase == "B" else 1
        classes = self.exchange.classes if phase in "CD" else 1
        return along, machine.wavelengths // classes

    def symmetric(self, step: int) -> tuple[SymmetricRounds, ...]:
        """The same by the circuits of some senders: those of group 0 whose places the moves do not join.

        With the next group all gates are those of the next group; B's planes are g_src + g_dst + j_src, two planes on. With
        the next place, or for B the x-th, whose labels are the same, wavelengths are those of that place. C and D keep the
        class of a place.
        """
        senders = self.senders(step)
        if senders is None:
            return ()
        moves = _moves(self.own, self.exchange.phases[step], *self._places_joined(step), self.exchange.classes)
        return (SymmetricRounds(senders, self(step, self.steps.sent_by(step, senders)), moves),)

    def _labels(self, phase: str, transfers: Transfers) -> tuple[IntArray, IntArray]:
        """Round and plane of each transfer, int (transfers,) each.

        Args:
            phase: A, B, C, M, N or R.
            transfers: of the step.
        """
        machine = self.own
        x, racks, places, block = machine.groups, machine.racks, machine.wavelengths, self.exchange.block
        src, dst = transfers.src, transfers.dst
        l_src, l_dst, j_src = src % places, dst % places, src // places % racks
        g_src, g_dst = src // machine.nodes_per_group, dst // machine.nodes_per_group
        ahead, racks_ahead = g_dst - g_src, dst // places % racks - j_src
        if phase in "ANM":
            within, every = racks_ahead % block, racks_ahead % racks * places + (l_dst - l_src) % places
            relayed = transfers.chunk_lo >= self.exchange.direct * machine.num_nodes  # N has none, A has no others
            return np.where(relayed, within, every + block * (phase == "M")), (ahead - j_src) % x
        if phase == "C":
            many, field = places // self.exchange.classes, class_arithmetic(self.own, self.exchange.classes)
            number = racks_ahead % racks * many + (l_dst - l_src) % many
            return number, field.sub(field.sub(g_dst, g_src), j_src)
        if phase == "B":
            number = racks_ahead // block % (racks // block) * (places // x) + (l_dst // x - l_src // x) % (places // x)
            return number, (ahead + 2 * g_src + j_src) % x
        return l_dst // x, l_dst % x

    def _classes_ahead(self, transfers: Transfers) -> IntArray:
        """Classes from the sender's to the receiver's, 1 to q - 1, int (transfers,)."""
        places, classes = self.own.wavelengths, self.exchange.classes
        many = places // classes
        return (transfers.dst % places // many - transfers.src % places // many) % classes


@lru_cache(8)
def _moves(machine: Ramp, phase: str, along: int, many: int, classes: int) -> tuple[LightMove, ...]:
    """Moves of a machine that a step of a skewed exchange has.

    Args:
        machine: any.
        phase: of the exchange.
        along: by how many places a move goes on [count].
        many: among how many [count].
        classes: of places [count].
    """
    x, places = machine.groups, machine.wavelengths
    nodes, ports = np.arange(machine.num_nodes).reshape(x, machine.racks, places), np.arange(x)
    turns = [np.roll(np.arange(x), -1)]
    if phase in "CD":
        turns = list(group_turns(x, class_arithmetic(machine, classes)))
    moves = [
        LightMove(nodes[turn].ravel(), (ports + 2 * (phase == "B")) % x, np.arange(places), turn) for turn in turns
    ]
    if along < many:
        ahead = np.roll(np.arange(places).reshape(-1, many), -along, axis=1).ravel()
        moves.append(LightMove(nodes[:, :, ahead].ravel(), ports, ahead, np.arange(x)))
    return tuple(moves)


# --- from transceiver groups to circuits, and other schedules --------------------------------------------


def _circuits(fabric: Fabric, own: Ramp, transfers: Transfers, rows: IntArray, groups: IntArray) -> Circuits:
    """Circuits of some rows of the transfers: one for each of their transceiver groups and its transceivers.

    Args:
        fabric: a RAMP, or a job on it.
        own: RAMP whose transceiver groups are numbered.
        transfers: of the step.
        rows: that have circuits, int (n,).
        groups: transceiver groups of each, int32 (n, groups a peer).
    """
    machine, b = fabric.machine_as(Ramp), own.transceivers_per_group
    port = (groups[:, :, None] * b + np.arange(b, dtype=np.int32)).reshape(len(rows), -1)
    row = np.repeat(rows.astype(np.int32), port.shape[1])
    src, dst = transfers.src[row], transfers.dst[row]
    gates = np.stack([dst // machine.nodes_per_group, src // machine.nodes_per_group], axis=1)
    wavelength = wavelength_between(machine.subnet, machine.wavelengths, src, dst)
    return Circuits.of(row, src, dst, port.ravel(), wavelength, 1, gates)


def _middle(fabric: Fabric, src: IntArray, dst: IntArray) -> IntArray:
    """What two circuits on the same transceiver would meet in, whichever that is, int64 (n,).

    Args:
        fabric: a RAMP, or a job on it.
        src, dst: nodes, int64.
    """
    machine = fabric.machine_as(Ramp)
    x, devices, nodes_per_group = machine.groups, machine.wavelengths, machine.nodes_per_group
    if machine.subnet == "route_switch":
        return (src // devices * x + dst // nodes_per_group) * devices + dst % devices
    pair = src // nodes_per_group * x + dst // nodes_per_group
    if machine.subnet == "broadcast":
        return pair if machine.signals_meet else pair * devices + dst % devices
    middle = pair * devices + dst % devices
    return middle if machine.signals_meet else middle * devices + src % devices


def _first_fit(fabric: Fabric, transfers: Transfers) -> tuple[Circuits, ...]:
    """Any transfers: the first transceiver groups that sender, receiver and the subnets between their groups have free."""
    machine = fabric.machine_as(Ramp)
    x = machine.groups
    n = fabric.num_machine_nodes
    src, dst = transfers.src.astype(np.int64), transfers.dst.astype(np.int64)
    middle = _middle(fabric, src, dst)
    occupied = np.stack([src, n + dst, 2 * n + middle], axis=1).ravel()
    offsets = np.arange(len(transfers) + 1, dtype=np.int64) * 3
    kinds = 2 * n + int(middle.max(initial=-1)) + 1
    width = width_that_fits(occupied, kinds, x)
    first, number = first_fit(occupied, offsets, kinds, x, width)
    rounds = (np.flatnonzero(number == r) for r in range(int(number.max(initial=-1)) + 1))
    return tuple(
        _circuits(fabric, machine, transfers, rows, first[rows, None] + _side_by_side(width)) for rows in rounds
    )
