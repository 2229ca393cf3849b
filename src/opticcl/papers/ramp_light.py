"""RAMP's claims about its subnets and its light: sections 3, 4.1 and 4.2.

The paper prints what the detector needs and no gain, loss or launch power, so the budget of figure 6 cannot be drawn again.
What stands beside it, with amplifiers assumed from a datasheet or fitted, is marked so and predicts nothing.
"""

from __future__ import annotations

from typing import cast

from opticcl.errors import FabricError
from opticcl.estimate.budget import budget
from opticcl.fabrics import fabric, light_table
from opticcl.fabrics.ramp import Ramp
from opticcl.optics.values import light_path_of, optics
from opticcl.papers import Found, claim, found
from opticcl.plans.limits import limits


def _count(kind: str) -> int:
    """Resources of a kind."""
    return next(r.count for r in fabric("ramp").resources if r.kind == kind)


def _parameter(name: str) -> int:
    return int(fabric("ramp").parameters[name])


@claim("ramp", "RAMP-3-capformula")
def capacity_by_formula() -> float:
    made = fabric("ramp")
    return made.num_nodes * made.node_rate_bits_per_s


@claim("ramp", "RAMP-3-bisection")
def bisection() -> float:
    made = fabric("ramp")
    return made.num_nodes / 2 * made.node_rate_bits_per_s


@claim("ramp", "RAMP-3-groupnodes")
def nodes_of_a_group() -> int:
    return fabric("ramp").num_nodes // _parameter("groups")


@claim("ramp", "RAMP-3-fibres")
def fibres() -> int:
    """One to each subnet from each of its racks, and one back."""
    return 2 * _parameter("racks") * _count("subnet")


@claim("ramp", "RAMP-3-links")
def links() -> int:
    """The fibres of a rack to a group ribboned over all transceivers."""
    return fibres() // fabric("ramp").ports_per_node


@claim("ramp", "RAMP-3-pulse")
def subnets_of_pulse() -> float:
    """PULSE has a subnet a pair of racks: (J x)^2."""
    return (_parameter("racks") * _parameter("groups")) ** 2 / _count("subnet")


@claim("ramp", "RAMP-3-minscale")
def least_scale() -> bool:
    made = fabric("ramp")
    return made.num_nodes > 4096 and made.node_rate_bits_per_s >= 12.8e12


@claim("ramp", "RAMP-4-slot")
def shortest_slot() -> float:
    made = fabric("ramp")
    return made.machine_as(Ramp).switching / float(light_table("ramp").geometry["slot_overhead"])


@claim("ramp", "RAMP-9-20ns")
def reconfigures_within_a_slot() -> bool:
    return fabric("ramp").machine_as(Ramp).switching < shortest_slot()


@claim("ramp", "RAMP-4-wavelengths")
def wavelengths_suffice() -> bool:
    return fabric("ramp").num_wavelengths <= light_table("ramp").geometry["channels"]


@claim("ramp", "RAMP-4-starports")
def star_stages() -> float:
    """Of the star coupler on the path, for as many ports as a group has nodes."""
    path = light_path_of(fabric("ramp"))
    star = next(k for k, element in enumerate(path.elements) if element.kind == "star")
    return float(path.extremes[0][star])


@claim("ramp", "RAMP-4-budget")
def budget_as_printed() -> list[str]:
    """Values that a budget of the largest system lacks."""
    values = optics(light_table("ramp"))
    lacking = [name for name, value in values.values.items() if value.value is None]
    kinds = light_path_of(fabric("ramp")).kinds
    wanted = (".loss", ".gain", ".length")
    return [n for n in lacking if n == "launch" or (n.partition(".")[0] in kinds and n.endswith(wanted))]


def _limit(preset: str, name: str) -> float:
    known = limits(fabric("ramp"), optics(light_table("ramp"), preset))
    return float(cast(float, next(limit.value for limit in known if limit.name == name)))


def _largest(preset: str) -> int:
    return int(_limit(preset, "largest_scale_nodes"))


@claim("ramp", "RAMP-4-budget-assumed")
def scale_with_assumed_parts() -> Found:
    lowest_dbm = budget(fabric("ramp"), optics(light_table("ramp"), "typical")).lowest_dbm
    return found(_largest("typical"), below_db=-20 - lowest_dbm)


@claim("ramp", "RAMP-4-budget-fitted")
def scale_with_fitted_amplifiers() -> int:
    return _largest("fitted")


@claim("ramp", "RAMP-4-budget-splitting")
def splitting() -> float:
    """Of both switches and the star coupler, by the law alone."""
    return _limit("fitted", "splitting_db")


@claim("ramp", "RAMP-4-budget-lowest")
def fitted_light_closes() -> bool:
    light = budget(fabric("ramp"), optics(light_table("ramp"), "fitted"))
    return light.received_dbm >= -15 and light.lowest_dbm >= -20


@claim("ramp", "RAMP-4-5.5x")
def nodes_of_the_reference() -> int:
    """The most that the reference system can have."""
    return int(fabric("ramp").num_nodes / 5.5)


@claim("ramp", "RAMP-4-20x")
def rate_of_the_reference() -> float:
    """The most that a node of the small platforms can have [bit/s]."""
    return fabric("ramp").node_rate_bits_per_s / 20


@claim("ramp", "RAMP-4-dojo", 14)
def nodes_of(groups: int) -> int:
    """Nodes of a RAMP of that many groups and racks with the wavelengths of the largest one, which they need not divide."""
    made = fabric("ramp", groups=groups, racks=groups, wavelengths=groups)
    return made.num_nodes // made.num_wavelengths * fabric("ramp").num_wavelengths


def _rate_of(groups: int, transceivers: int) -> float:
    """Rate of a node with that many groups, and transceivers in a transceiver group [bit/s]."""
    made = fabric("ramp", groups=groups, racks=groups, wavelengths=groups, transceivers_per_group=transceivers)
    return made.node_rate_bits_per_s


@claim("ramp", "RAMP-4-288T")
def dojo_rate() -> Found:
    """The least of x b transceivers that is enough."""
    transceivers = next(b for b in range(1, 257) if _rate_of(14, b) >= 288e12)
    return found(_rate_of(14, transceivers), b=transceivers, fewer=_rate_of(14, transceivers - 1) / 1e12)


@claim("ramp", "RAMP-4-dojo-maps")
def dojo_has_maps() -> Found:
    """Whether the fabric can be had: x must divide the wavelengths."""
    groups, wavelengths = 14, fabric("ramp").num_wavelengths
    try:
        fabric("ramp", groups=groups, racks=groups, wavelengths=wavelengths)
    except FabricError:
        return found(False, groups=groups, wavelengths=wavelengths)
    return found(True, groups=groups, wavelengths=wavelengths)


def _groups_of_4096() -> int:
    return next(x for x in range(1, 33) if nodes_of(x) >= 4096)


@claim("ramp", "RAMP-4-4096")
def nodes_of_ten_groups() -> Found:
    """x = J = 10 with the same wavelengths."""
    return found(nodes_of(10), needed=_groups_of_4096())


@claim("ramp", "RAMP-4-960T")
def node_rate_of_ten_groups() -> Found:
    """x = 10, b = 256."""
    return found(_rate_of(10, 256), needed=_groups_of_4096(), of_eight_t=_rate_of(_groups_of_4096(), 256) / 1e12)


@claim("ramp", "RAMP-4-5.33")
def over_a_gpu() -> float:
    return fabric("ramp").node_rate_bits_per_s / float(fabric("superpod").parameters["nvlink_rate"])


@claim("ramp", "RAMP-2-oversub")
def oversubscription() -> float:
    rates = fabric("superpod").parameters
    return float(rates["nvlink_rate"]) / float(rates["card_rate"])
