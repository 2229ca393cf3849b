"""What the budget limits: how large a machine may be, or how far its light may go, before it does not close.

Each fabric has its own question. Its answer is a formula or a search over the paths of machines of other sizes; WRHT's
longest lightpaths follow from its tree of groups.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor

import numpy as np

from opticcl.collective import Request
from opticcl.errors import ParameterError
from opticcl.fabric._light_oddl import modules_passed, oddl_light
from opticcl.fabric._light_ramp import ramp_light
from opticcl.fabric._light_sipac import crossings, sipac_light
from opticcl.fabric.sipac import num_groups, radices_of
from opticcl.ir import Fabric
from opticcl.physics.chain import ROUNDING_DB, Chain, amplifier_places
from opticcl.physics.crosstalk import snr_for_ber
from opticcl.physics.decibels import ratio_of_db
from opticcl.physics.light import LightPath, light_path_of
from opticcl.physics.optics import Optics, chain_of, geometry
from opticcl.schedule.wavelength_exchange import CLOCKWISE, arcs, channels, exchange_wavelengths
from opticcl.schedule.wrht import tree

__all__ = ["Limit", "limits", "longest_lightpath"]

LOOKED_AT = 4096  # nodes of a ring up to which every group size is
MOST = 1 << 16  # pieces of anything that a limit counts up to
ODDL_PORTS = (8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Limit:
    """One thing that the budget limits.

    Args:
        name: what, as a key.
        value: how much; None if there is no value on file for it, or nothing closes.
        text: in words.
    """

    name: str
    value: float | None
    text: str


def limits(fabric: Fabric, values: Optics) -> tuple[Limit, ...]:
    """What the budget limits on this fabric.

    Raises: UnsupportedError: no light path. ParameterError: values are missing.
    """
    path = light_path_of(fabric)
    find = {
        "ramp": _ramp, "sipac": _sipac, "terarack": _terarack, "oddl": _oddl, "lightpath": _lightpath,
        "sip_ring": _sip_ring, "topoopt": _topoopt,
    }  # fmt: skip
    return find[path.sheet](fabric, path, values)


def _largest(candidates: Sequence[int], closes: Callable[[int], bool]) -> int | None:
    """The largest candidate that closes, of ascending ones that close up to some point."""
    found = bisect_left(candidates, True, key=lambda candidate: not closes(candidate))
    return candidates[found - 1] if found else None


def _counted(number: float | None, thing: str) -> str:
    """A number of things in words.

    >>> _counted(None, "interface"), _counted(1, "interface"), _counted(65536, "interface")
    ('no interfaces', '1 interface', '65,536 or more interfaces')
    """
    if number is None:
        return f"no {thing}s"
    return f"{number:,}{' or more' * (number >= MOST)} {thing}{'s' * (number != 1)}"


def _reach(chain: Chain, path: LightPath, each: dict[str, float]) -> int | None:
    """Hops that a passive path may have, each of them so many of these elements; None if not even none closes."""
    start = np.array([1.0 if element.kind == "modulator" else 0.0 for element in path.elements])
    hop = np.array([each.get(element.kind, 0.0) for element in path.elements])
    margin, loss = float(chain.margin_db(start)[0]), float(hop @ chain.loss_db)
    if margin < -ROUNDING_DB:
        return None
    return floor(min((margin + ROUNDING_DB) / loss, MOST)) if loss else MOST


# --- RAMP -------------------------------------------------------------------------------------------------------------


def _ramp(fabric: Fabric, path: LightPath, values: Optics) -> tuple[Limit, ...]:
    """The largest x = J with the same number of wavelengths, as section 4.2 asks."""
    devices, subnet = fabric.parameters["wavelengths"], fabric.parameters["subnet"]

    def closes(x: int) -> bool:
        light = ramp_light(x, x, devices, subnet)
        return bool(chain_of(light, values).closes(light.extremes).all())

    x = _largest([x for x in range(1, devices + 1) if devices % x == 0], closes)
    split = float(chain_of(path, values).once_db.sum())
    return (
        Limit(
            "largest_scale_nodes",
            x and x * x * devices,
            f"largest {subnet} machine with {devices} wavelengths: "
            + (f"{x * x * devices:,} nodes (x = J = {x})" if x else "none closes"),
        ),
        Limit("splitting_db", split, f"splitting alone loses {split:.1f} dB"),
    )


# --- SiPAC ------------------------------------------------------------------------------------------------------------


def _sipac(fabric: Fabric, path: LightPath, values: Optics) -> tuple[Limit, ...]:
    """The largest switch whose last crossing still lets enough light through, with the same comb."""
    channels, lines = fabric.parameters["channels"], fabric.num_wavelengths

    def closes(radix: int) -> bool:
        light = sipac_light((radix,), np.ones(1), lines, (num_groups(radix, channels),))
        return bool(chain_of(light, values).closes(light.extremes).all())

    radix = _largest(range(2, MOST + 1), closes)
    passed = max(map(crossings, radices_of(fabric)))
    each = values.loss_db("ring_pass")
    found = f"{_counted(radix, 'port')}, {crossings(radix):,} rings passed" if radix else "none closes"
    return (
        Limit("largest_radix", radix, f"largest switch for {lines} lines: {found}"),
        Limit("crossings", passed, f"a circuit passes up to {passed} rings off resonance, {passed * each:.2f} dB"),
    )


# --- TeraRack and WRHT ------------------------------------------------------------------------------------------------


def _terarack(fabric: Fabric, path: LightPath, values: Optics) -> tuple[Limit, ...]:
    """Interfaces that light may pass, by power and by crosstalk, and what WRHT asks for."""
    everything = np.ones(len(path.elements), bool)  # also on a ring of one node
    by_power = _reach(chain_of(path, values, everything), path, {"interface": 1})
    found = [Limit("reach_interfaces", by_power, f"by power light passes {_counted(by_power, 'interface')}")]
    reach = by_power or 0
    if not values.missing(["crosstalk.receiver", "crosstalk.transmitter"]):
        by_noise, rate = _crosstalk_reach(values), f"{geometry('terarack', 'bit_error_rate'):g}".replace("e-0", "e-")
        told = f"by crosstalk, for a bit error rate of {rate}, light passes {_counted(by_noise, 'interface')}"
        found.append(Limit("crosstalk_interfaces", by_noise, told))
        reach = min(reach, by_noise or 0)
    if fabric.name == "terarack" and fabric.num_nodes > 1 and fabric.nodes is None:
        found += _wrht(fabric, reach)
    return tuple(found)


def _crosstalk_reach(values: Optics) -> int | None:
    """Interfaces at which the crosstalk of equation 12 still leaves the ratio that equation 13 needs."""
    receiver, transmitter = (
        float(ratio_of_db(-decibels)) for decibels in values.needed(["crosstalk.receiver", "crosstalk.transmitter"])
    )
    allowed = 1 / snr_for_ber(geometry("terarack", "bit_error_rate"))
    if transmitter > allowed:
        return None
    return floor(min((allowed - transmitter) / receiver, MOST)) if receiver else MOST


def longest_lightpath(fabric: Fabric, group_size: int) -> int:
    """Interfaces that the longest lightpath of WRHT's all-reduce passes on a ring.

    Members of a group send straight to the one in their middle, and the last level exchanges each to each, mostly the shorter
    way. Equation 7 gives up to 32 times less; see docs/papers/wrht.md.
    """
    levels = tree(fabric, Request("all_reduce"), group_size).lines[0].levels
    longest = 0
    for members, middles in pairwise(levels):
        first = np.arange(0, len(members), group_size)
        last = np.minimum(first + group_size, len(members)) - 1
        longest = max(longest, int((middles - members[first]).max()), int((members[last] - middles).max()))
    tops = levels[-1]
    if len(tops) > 1:
        way = arcs(len(tops), 0, exchange_wavelengths(len(tops)))
        ahead = np.where(way.direction == CLOCKWISE, 1, -1) * (tops[way.dst] - tops[way.src])
        longest = max(longest, int((ahead % fabric.num_nodes).max()))
    return longest


def _wrht(fabric: Fabric, reach: int) -> list[Limit]:
    """Longest lightpath with the largest groups, and the largest groups whose longest lightpath closes."""
    largest = min(2 * channels(fabric) + 1, max(2, fabric.num_nodes))
    sizes = range(2, largest + 1) if fabric.num_nodes <= LOOKED_AT else (largest,)
    longest = {m: longest_lightpath(fabric, m) for m in sizes}
    least = min(longest, key=lambda m: longest[m])
    fits = [m for m, hops in longest.items() if hops <= reach]
    if fits:
        told = f"largest groups of WRHT that close: m' = {fits[-1]}"
    elif fabric.num_nodes <= LOOKED_AT:
        told = (
            "no group size of WRHT closes: the least that any needs is "
            f"{_counted(longest[least], 'interface')} (m = {least})"
        )
    else:
        told = (
            f"the largest groups of WRHT do not close; smaller ones are looked at on rings of up to {LOOKED_AT:,} nodes"
        )
    farthest = _counted(longest[largest], "interface")
    return [
        Limit("longest_lightpath", longest[largest], f"longest lightpath of WRHT: {farthest} (m = {largest})"),
        Limit("largest_group", fits[-1] if fits else None, told),
    ]


# --- SiP-Ring and TopoOpt ---------------------------------------------------------------------------------------------


def _sip_ring(fabric: Fabric, path: LightPath, values: Optics) -> tuple[Limit, ...]:
    """Interfaces that light may pass, and the largest ring of which every node can reach every other."""
    everything = np.ones(len(path.elements), bool)
    reach = _reach(chain_of(path, values, everything), path, {"interface": 1})
    nodes = 1 + fabric.parameters["directions"] * (reach or 0)
    return (
        Limit("reach_interfaces", reach, f"by power light passes {_counted(reach, 'interface')}"),
        Limit("largest_ring_nodes", nodes, f"largest ring whose light reaches every node: {_counted(nodes, 'node')}"),
    )


def _topoopt(fabric: Fabric, path: LightPath, values: Optics) -> tuple[Limit, ...]:
    """What the panel may lose."""
    most = float(chain_of(path, values).margin_db(path.extremes)[0]) + values.loss_db("patch_panel")
    told = f"the panel may lose up to {most:.2f} dB" if most >= 0 else "not even a panel without loss closes"
    return (Limit("largest_panel_loss_db", most if most >= 0 else None, told),)


# --- ODDL -------------------------------------------------------------------------------------------------------------


def _oddl(fabric: Fabric, path: LightPath, values: Optics) -> tuple[Limit, ...]:
    """Margin of switches of 8 to 64 ports without an amplifier, and the amplifiers that close it."""
    return tuple(_switch(ports, values) for ports in ODDL_PORTS)


def _switch(ports: int, values: Optics) -> Limit:
    light, name = oddl_light((ports,)), f"margin_{ports}_ports_db"
    size, modules = modules_passed(ports)
    if values.missing([f"wss{size}.loss"]):
        return Limit(name, None, f"{ports} ports: no wss{size}.loss on file")
    chain = chain_of(light, values)
    losses = (light.extremes[0] * chain.loss_db)[:-1]  # all but the amplifier
    margin = chain.launch_dbm - float(losses.sum()) - chain.sensitivity_dbm
    told = f"{ports} ports ({modules} x wss{size}): margin {margin:+.1f} dB without amplifier"
    gain, most = float(chain.gain_db[-1]), float(chain.most_dbm[-1])
    if margin < -ROUNDING_DB and gain:
        try:
            places = amplifier_places(chain.launch_dbm, losses, gain, chain.sensitivity_dbm, most_dbm=most)
            told += f", closes with {len(places)} of {gain:g} dB"
        except ParameterError:
            told += f", and no number of amplifiers of {gain:g} dB closes it"
    elif margin < -ROUNDING_DB:
        told += ": an amplifier is needed"
    return Limit(name, margin, told)


# --- LIGHTPATH --------------------------------------------------------------------------------------------------------


def _lightpath(fabric: Fabric, path: LightPath, values: Optics) -> tuple[Limit, ...]:
    """Tiles that light may go straight ahead on one wafer, had it that many."""
    everything = np.array([element.kind != "board_fibre" for element in path.elements])
    chain = chain_of(path, values, everything)
    found = []
    for name, along in (("x", "along a row"), ("y", "along a column")):
        reach = _reach(chain, path, {"mzi": 2, f"waveguide_{name}": 1, "stitch": 1})
        found.append(Limit(f"reach_{name}_tiles", reach, f"reach {along}: {_counted(reach, 'tile')}"))
    return tuple(found)
