"""ODDL (Li, Yuan, Wang, Tan, Zhang, Rouskas, JOCN 2024): the claims that its text fixes."""

from __future__ import annotations

import numpy as np

from opticcl.circuits import lower
from opticcl.data import load
from opticcl.fabric import fabric
from opticcl.fabric.oddl import MAX_WAVELENGTHS, switches_per_dimension
from opticcl.ir import CircuitPlan, Circuits, Fabric
from opticcl.papers import claim
from opticcl.schedule import generate
from opticcl.simulate import assumptions, closed_form
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
    """Hops, 0 if the judge refuses the plan."""
    return max(int(c.num_hops().max()) for c in _circuits(plan)) if verify(plan).ok else 0


def _circuits(plan: CircuitPlan) -> list[Circuits]:
    """Circuits of every round, in order."""
    return [circuits for step in range(plan.schedule.num_steps) for circuits in plan.rounds(step)]


def table_1() -> CircuitPlan:
    """Halving-doubling on eight nodes with the wavelengths of table 1."""
    by_bit = _plan("8")
    table = np.array(load("papers/oddl.toml")["O3"]["table"])

    def rounds(step: int) -> tuple[Circuits, ...]:
        return tuple(
            Circuits.of(c.transfer, c.src, c.dst, c.port, table[c.src, c.dst] - 1, 1, c.hops[:, None])
            for c in by_bit.rounds(step)
        )

    return CircuitPlan(by_bit.fabric, by_bit.schedule, rounds)


@claim("oddl", "O1")
def ring_steps() -> list[int]:
    """Steps of a ring."""
    return [_plan(shape, "ring").schedule.num_steps for shape in ("8", "32x32")]


@claim("oddl", "O2")
def halving_doubling_steps() -> list[int]:
    """Steps of halving-doubling."""
    return [_plan(shape).schedule.num_steps for shape in ("8", "32x32")]


@claim("oddl", "O3")
def table_1_serves() -> bool:
    """What the judge says of table 1."""
    return verify(table_1()).ok


@claim("oddl", "O4")
def first_node_in_turn() -> list[list[int]]:
    """Partners and wavelengths of the first node, numbered from 1 as printed; a partner that stays is told once."""
    told: list[tuple[int, int]] = []
    for circuits in _circuits(table_1()):
        row = int(np.flatnonzero(circuits.src == 0)[0])
        now = int(circuits.dst[row]) + 1, int(circuits.wavelength_lo[row]) + 1
        if told[-1:] != [now]:
            told.append(now)
    return [list(column) for column in zip(*told, strict=True)]


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
    shape: tuple[int, ...] = where.parameters["shape"]
    return shape


@claim("oddl", "O8")
def switches_of_1024() -> int:
    """Switches of 32 x 32."""
    return sum(switches_per_dimension(_shape(fabric("oddl:shape=32x32"))))


@claim("oddl", "O9")
def switches_of_4096() -> int:
    """Switches of 16 x 16 x 16."""
    return sum(switches_per_dimension(_shape(fabric("oddl:shape=16x16x16"))))


@claim("oddl", "O10")
def nodes_of_link_budget() -> int:
    """Nodes of 8 x 8 x 8."""
    return fabric("oddl:shape=8x8x8").num_nodes


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


def _order(seconds: float) -> str:
    """The order of magnitude in words."""
    names = ("microseconds", "tens of microseconds", "hundreds of microseconds")
    return names[int(np.floor(np.log10(seconds * 1e6)))]


@claim("oddl", "O19")
def control_delay() -> str:
    """Mean over the steps of halving-doubling: 32 us."""
    plan = _plan("32x32")
    timeline = closed_form(plan, 100_000_000, assumptions("oddl"))
    return _order(timeline.totals()["control_s"] / plan.schedule.num_steps)


@claim("oddl", "O21")
def wavelengths_of_sip_ring() -> list[int]:
    """Transfers over the busiest fibre of a one-way ring, the largest of all steps of halving-doubling."""
    schedules = [_plan(shape).schedule for shape in ("8", "32x32")]
    return [
        max(_busiest_fibre(s.step(i).src, s.step(i).dst, s.collective.num_ranks) for i in range(s.num_steps))
        for s in schedules
    ]


def _busiest_fibre(src: np.ndarray, dst: np.ndarray, num_nodes: int) -> int:
    """Fibre i runs from node i to the next; a transfer takes the fibres from src up to the one before dst."""
    begins, ends = np.bincount(src, minlength=num_nodes), np.bincount(dst, minlength=num_nodes)
    around = np.count_nonzero(dst < src)  # these pass the end of the count and go on at fibre 0
    return int((around + np.cumsum(begins - ends)).max())


@claim("oddl", "O39")
def pause_below_a_millisecond() -> bool:
    """Reconfiguration and control of the slowest step of halving-doubling: 55 us."""
    timeline = closed_form(_plan("32x32"), 100_000_000, assumptions("oddl"))
    return float((timeline.reconfiguration_s + timeline.control_s).max()) < 1e-3


@claim("oddl", "O41")
def hops_of_all_to_all() -> list[int]:
    """Hops of the longest path, with a wavelength for each of the side - 1 partners."""
    grids = (("2x4", 4), ("8x8", 8), ("4x4x4", 4))
    return [_longest_path(_plan(shape, "by_dimension", side - 1, "all_to_all")) for shape, side in grids]
