"""ODDL (Li, Yuan, Wang, Tan, Zhang, Rouskas, JOCN 2024): the claims that its text fixes."""

from __future__ import annotations

import numpy as np

from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.fabrics.oddl import MAX_WAVELENGTHS, Oddl, switches_per_dimension
from opticcl.ir import CircuitPlan, Circuits, Fabric
from opticcl.papers import Found, claim, found, printed_claims
from opticcl.schedule import generate
from opticcl.simulate import simulate
from opticcl.verify import verify

GRIDS = ("2x4", "32x32", "16x16x16", "8x8x16", "4x2x8")


def _plan(
    shape: str,
    algorithm: str = "halving_doubling",
    wavelengths: int | None = None,
    collective: str = "all_reduce",
) -> CircuitPlan:
    where = fabric("oddl", shape=shape, wavelengths=wavelengths)
    return lower(where, generate(algorithm, collective, where))


def _longest_path(plan: CircuitPlan) -> int:
    """Hops, 0 if the plan does not verify."""
    return max(int(c.num_hops().max()) for c in _circuits(plan)) if verify(plan).ok else 0


def _circuits(plan: CircuitPlan) -> list[Circuits]:
    """Circuits of every round, in order."""
    return [circuits for step in range(plan.schedule.num_steps) for circuits in plan.rounds(step)]


def table_1() -> CircuitPlan:
    """Halving-doubling on eight nodes with the wavelengths of table 1."""
    by_bit = _plan("8")
    table = np.array(printed_claims("oddl")["O3"]["table"])

    def rounds(step: int) -> tuple[Circuits, ...]:
        return tuple(
            Circuits.of(c.transfer, c.src, c.dst, c.port, table[c.src, c.dst] - 1, 1, c.hops[:, None])
            for c in by_bit.rounds(step)
        )

    return CircuitPlan(by_bit.fabric, by_bit.schedule, rounds)


@claim("oddl", "O1", "ring")
@claim("oddl", "O2", "halving_doubling")
def steps(algorithm: str) -> list[int]:
    return [_plan(shape, algorithm).schedule.num_steps for shape in ("8", "32x32")]


@claim("oddl", "O3")
def table_1_serves() -> bool:
    """Whether a plan with the wavelengths of table 1 verifies."""
    return verify(table_1()).ok


@claim("oddl", "O4")
def first_node_in_turn() -> list[list[int]]:
    """Partners and wavelengths of the first node, numbered from 1 as printed; equal ones in a row are listed once."""
    partners: list[tuple[int, int]] = []
    for circuits in _circuits(table_1()):
        row = int(np.flatnonzero(circuits.src == 0)[0])
        now = int(circuits.dst[row]) + 1, int(circuits.wavelength_lo[row]) + 1
        if partners[-1:] != [now]:
            partners.append(now)
    return [list(column) for column in zip(*partners, strict=True)]


def _wavelengths_used(plan: CircuitPlan) -> int:
    return len(np.unique(np.concatenate([c.wavelength_lo for c in _circuits(plan)])))


@claim("oddl", "O5")
def wavelengths_on_one_switch() -> list[int]:
    """Wavelengths that the circuits of a job use."""
    return [_wavelengths_used(_plan(str(1 << bits))) for bits in range(1, 9)]


@claim("oddl", "O6")
def wavelengths_a_partner() -> list[int]:
    """Bonded wavelengths of a circuit."""
    return [int(_circuits(_plan(shape, wavelengths=8))[0].wavelength_n[0]) for shape in ("256", "16")]


def _shape(where: Fabric) -> tuple[int, ...]:
    return where.machine_as(Oddl).shape


@claim("oddl", "O8")
def switches_of_1024() -> int:
    """Switches of 32 x 32."""
    return sum(switches_per_dimension(_shape(fabric("oddl:shape=32x32"))))


@claim("oddl", "O9")
def switches_of_4096() -> Found:
    """Switches of 16 x 16 x 16; and of a plane of 16 x 16."""
    each = switches_per_dimension(_shape(fabric("oddl:shape=16x16x16")))
    plane = sum(switches_per_dimension(_shape(fabric("oddl:shape=16x16"))))
    return found(sum(each), lines=each[0], plane=plane)


@claim("oddl", "O10")
def nodes_of_link_budget() -> Found:
    """Nodes of 8 x 8 x 8."""
    nodes = fabric("oddl:shape=8x8x8").num_nodes
    return found(nodes, nodes=nodes)


@claim("oddl", "O14")
def hops() -> list[int]:
    """Hops of the longest path of both algorithms on each grid."""
    both = ("halving_doubling", "recursive_doubling")
    return [max(_longest_path(_plan(shape, algorithm)) for algorithm in both) for shape in GRIDS]


@claim("oddl", "O15")
def directions() -> list[str]:
    """Dimension of each step on two rows of four."""
    return [("vertical", "horizontal")[int(np.unique(c.hops).item())] for c in _circuits(_plan("2x4"))]


@claim("oddl", "O16")
def wavelengths_of_1024() -> int:
    """Wavelengths that the circuits of a job use."""
    return _wavelengths_used(_plan("32x32"))


@claim("oddl", "O17")
def wavelengths_of_band() -> int:
    """The most wavelengths that the fabric takes: 4.8 THz at 50 GHz."""
    return MAX_WAVELENGTHS


@claim("oddl", "O18")
def control_message_bits() -> int:
    """Address of the largest system and one bit for the type: ready, or done."""
    return (fabric("oddl:shape=16x16x16").num_nodes - 1).bit_length() + 1


def order_of_magnitude(seconds: float) -> str:
    """The order of magnitude in words."""
    names = ("microseconds", "tens of microseconds", "hundreds of microseconds")
    return names[int(np.floor(np.log10(seconds * 1e6)))]


@claim("oddl", "O19")
def control_delay() -> Found:
    """Mean over the steps of halving-doubling."""
    plan = _plan("32x32")
    timeline = simulate(plan, 100_000_000, "oddl").timeline
    mean_s = timeline.totals()["control_s"] / plan.schedule.num_steps
    return found(order_of_magnitude(mean_s), mean_us=mean_s * 1e6)


@claim("oddl", "O21")
def wavelengths_of_sip_ring() -> Found:
    """Transfers over the busiest fibre of a one-way ring, the largest of all steps of halving-doubling."""
    schedules = [_plan(shape).schedule for shape in ("8", "32x32")]
    small, large = (
        max(_busiest_fibre(s.step(i).src, s.step(i).dst, s.collective.num_ranks) for i in range(s.num_steps))
        for s in schedules
    )
    return found(small >= 8 / 2 - 1 and large >= 1024 / 2 - 1, small=small, large=large)


def _busiest_fibre(src: np.ndarray, dst: np.ndarray, num_nodes: int) -> int:
    """Fibre i runs from node i to the next; a transfer takes the fibres from src up to the one before dst."""
    begins, ends = np.bincount(src, minlength=num_nodes), np.bincount(dst, minlength=num_nodes)
    around = np.count_nonzero(dst < src)  # these pass node 0
    return int((around + np.cumsum(begins - ends)).max())


@claim("oddl", "O39")
def pause_below_a_millisecond() -> Found:
    """Reconfiguration and control of the slowest step of halving-doubling."""
    timeline = simulate(_plan("32x32"), 100_000_000, "oddl").timeline
    pause_s = float((timeline.reconfiguration_s + timeline.control_s).max())
    return found(pause_s < 1e-3, pause_us=pause_s * 1e6)


@claim("oddl", "O41")
def hops_of_all_to_all() -> list[int]:
    """Hops of the longest path, with a wavelength for each of the side - 1 partners."""
    grids = (("2x4", 4), ("8x8", 8), ("4x4x4", 4))
    return [_longest_path(_plan(shape, "by_dimension", side - 1, "all_to_all")) for shape, side in grids]
