"""WRHT's claims: steps, wavelengths, lightpaths, and the averages of figures 5 and 6 against Ring, H-Ring and BT.

The averages are reproduced only under assumptions that the paper does not state: 320 Gb/s a wavelength, no exchange among
representatives, ratio of the sums of all bars. They were fitted to the printed averages and predict nothing; beside each is
a row with the printed parameters and the algorithm as described. Figure 7 is in wrht_rivals.py, loss and crosstalk in
wrht_light.py.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.fabrics import fabric, groups
from opticcl.ir import CircuitPlan
from opticcl.papers import Found, claim, found, printed_claims
from opticcl.papers._inverse import argument_of
from opticcl.papers.formula import ceil_log
from opticcl.plans.plan import compile
from opticcl.schedule import generate
from opticcl.simulate import Profile, profile
from opticcl.verify import verify

PARAMETERS = (307e6, 138e6, 62.3e6, 25e6)  # section 5.1: BEiT-L, VGG16, AlexNet, ResNet50
BYTES = 4  # of a parameter: float32
FITTED = ("wavelength_rate=320Gb/s", "wrht:variant=published")
H_RING = "hierarchical_ring:group_size=5"  # table 1, section 5.4
LITERAL = ("wavelength_rate=40Gb/s", "wrht")
FIGURE_5 = tuple(f"nodes=1024,wavelengths={w}" for w in (4, 16, 64, 256))
FIGURE_6 = tuple(f"nodes={n},wavelengths=64" for n in (1024, 2048, 3072, 4096))


@claim("wrht", "W2")
def figure_2b() -> list[int]:
    """Steps, nodes of a group, representatives."""
    made = _verified("nodes=15,wavelengths=2").schedule
    group = int(np.bincount(made.step(0).dst).max()) + 1
    return [made.num_steps, group, len(np.unique(made.step(1).src))]


@claim("wrht", "W3")
def exchange_of_figure_2b() -> int:
    """Wavelengths of the middle step."""
    return _wavelengths(_verified("nodes=15,wavelengths=2"))[1]


@claim("wrht", "W4", 2, 3, 4, 5, 8, 17, 32, 129)
@claim("wrht", "W5", 3, 5, 17, 129)
def collection_wavelengths(*group_sizes: int) -> list[int]:
    """Wavelengths of the first step of a collection, for each number m of nodes of a group."""
    algorithms = (f"wrht:group_size={m},variant=published" for m in group_sizes)
    return [_wavelengths(_verified("nodes=1000", algorithm))[0] for algorithm in algorithms]


@claim("wrht", "W6")
def groups_of_each_step() -> list[int]:
    """Receivers of each collecting step of 3000 nodes in groups of 7."""
    made = generate("wrht:group_size=7,variant=published", "all_reduce", fabric("terarack:nodes=3000"))
    return [len(np.unique(made.step(i).dst)) for i in range(made.num_steps // 2)]


@claim("wrht", "W7")
def representatives() -> list[int]:
    """Nodes that exchange in the middle step."""
    shapes = (
        ("nodes=1024", 129),
        ("nodes=1024", 65),
        ("nodes=1000,wavelengths=4", 9),
        ("nodes=4093,wavelengths=16", 33),
    )
    return [_representatives(shape, size) for shape, size in shapes]


def _representatives(shape: str, group_size: int) -> int:
    """Nodes that exchange in the middle step."""
    made = generate(f"wrht:group_size={group_size}", "all_reduce", fabric(f"terarack:{shape}"))
    return len(np.unique(made.step(made.num_steps // 2).src))


@claim("wrht", "W8", 2, 4, 8, 16, 22, 32)
@claim("wrht", "W8o", 3, 5, 11, 15, 31)
def exchange_wavelengths(*num_nodes: int) -> list[int]:
    """Wavelengths in which each number of nodes all send to each other."""
    return [_exchange(r) for r in num_nodes]


@claim("wrht", "W9")
def steps_in_all() -> list[int]:
    """Steps with and without an exchange on the last level."""
    return [steps_of(f"nodes={n}") for n in (1024, 3072)]


@claim("wrht", "W11")
def hierarchical_ring_steps() -> list[int]:
    """Steps of H-Ring, groups of 5, on 64 and on 4 wavelengths; the smaller is verified."""
    _verified("nodes=64,wavelengths=4", H_RING)
    return [steps_of(f"nodes=1024,wavelengths={w}", H_RING) for w in (64, 4)]


@claim("wrht", "W13")
def table_1() -> int:
    """Steps of WRHT, verified."""
    return _verified("nodes=1024,wavelengths=64").schedule.num_steps


@claim("wrht", "W14")
def lemma_1() -> list[int]:
    """Steps of verified schedules for the paper's two examples and six other (N, w)."""
    pairs = ((15, 2), (1024, 64), (1024, 4), (1024, 16), (1024, 256), (1021, 8), (4096, 16), (15, 64))
    return [_verified(f"nodes={n},wavelengths={w}").schedule.num_steps for n, w in pairs]


@claim("wrht", "W15")
def theorem_1() -> Found:
    """Time for BEiT-L [s]; steps, and those of lemma 1."""
    return found(_times("nodes=1024", "wrht")[0], steps=steps_of("nodes=1024"), printed=2 * ceil_log(129, 1024))


@claim("wrht", "W16")
def longest_lightpath() -> list[int]:
    """Segments of the longest circuit of a collection for (N, m)."""
    longest = []
    for nodes, size in ((1024, 32), (4096, 16), (4096, 64), (64, 64)):
        plan = _verified(f"nodes={nodes}", f"wrht:group_size={size},variant=published")
        rounds = (plan.rounds(i)[0] for i in range(plan.schedule.num_steps))
        longest.append(max(int(circuits.num_hops().max()) for circuits in rounds))
    return longest


@claim("wrht", "W20")
def figure_4_ratio() -> Found:
    """Time of m = 129 over time of m = 17; every step takes the same time, so this is the ratio of steps."""
    short, long = (steps_of("nodes=1024", f"wrht:group_size={m}") for m in (129, 17))
    nodes = _representatives("nodes=1024", 17)
    facts = {"short": short, "long": long, "by_formula": 2 * ceil_log(17, 1024)}
    return found(short / long, **facts, representatives=nodes, wavelengths=_exchange(nodes))


@claim("wrht", "W21")
def figure_4_shape() -> list[int]:
    """Whether the time falls from each m to the next, m = 17, 33, 65, 129: 1 it falls, 0 it stays."""
    times = np.array([_times("nodes=1024", f"wrht:group_size={m}")[0] for m in (17, 33, 65, 129)])
    return [int(fell) for fell in np.diff(times) < 0]


@claim("wrht", "W22", "W22", FIGURE_5)
@claim("wrht", "W27", "W27", FIGURE_6)
def against_ring(id: str, figure: tuple[str, ...]) -> Found:
    """Reduction against Ring [%], fitted; and the additional gradients with which the printed one results [%]."""
    printed = printed_claims("wrht")[id]["published"]
    scale = argument_of(lambda s: -reduction(figure, "ring", *FITTED, s), -printed, 0.9, 1.1, tolerance=1e-5)
    return found(reduction(figure, "ring", *FITTED), more=100 * (scale - 1))


@claim("wrht", "W22l")
def figure_5_ring_literal() -> Found:
    """Reduction against Ring [%], as printed; and the fitted rate over the printed one."""
    fitted, printed = (fabric(f"terarack:{rate}").rate_bits_per_s for rate, _ in (FITTED, LITERAL))
    return found(reduction(FIGURE_5, "ring", *LITERAL), times=fitted / printed)


@claim("wrht", "W24", FIGURE_5)
@claim("wrht", "W29", FIGURE_6)
def against_tree(figure: tuple[str, ...]) -> Found:
    """Reduction against BT [%], fitted; and the steps of all points of the figure in sum."""
    steps, tree_steps = (sum(steps_of(shape, a) for shape in figure) for a in (FITTED[1], "tree"))
    return found(reduction(figure, "tree", *FITTED), steps=steps, tree_steps=tree_steps)


@claim("wrht", "W24l", FIGURE_5)
@claim("wrht", "W29l", FIGURE_6)
def against_tree_literal(figure: tuple[str, ...]) -> Found:
    """Reduction against BT [%], as printed; and the steps of each point by the printed formula and as described."""
    by_formula, described = (
        ", ".join(str(steps_of(shape, algorithm)) for shape in figure) for algorithm in (FITTED[1], LITERAL[1])
    )
    return found(reduction(figure, "tree", *LITERAL), by_formula=by_formula, described=described)


@claim("wrht", "W26")
def figure_5_flat_rivals() -> list[int]:
    """Whether the time of Ring, H-Ring and BT falls from each w to the next: 1 it falls, 0 it stays."""
    rivals = ("ring", H_RING, "tree")
    times = np.array([[_times(shape, rival)[0] for shape in FIGURE_5] for rival in rivals])
    return [int(fell) for fell in (np.diff(times) < 0).ravel()]


@claim("wrht", "W30")
def lowest_everywhere() -> Found:
    """Points of figure 6 where Ring is faster than WRHT, fitted."""
    names, (rate, algorithm) = ("BEiT", "VGG16", "AlexNet", "ResNet50"), FITTED
    slower = []
    for shape in FIGURE_6:
        ours, ring = (_times(f"{shape},{rate}", a) for a in (algorithm, "ring"))
        slower += [f"{name} {shape.split(',')[0]}" for name, a, b in zip(names, ours, ring, strict=True) if a > b]
    return found(slower, steps=steps_of(FIGURE_6[0], algorithm), described=steps_of(FIGURE_6[0]))


@claim("wrht", "W40")
def torus_and_mesh() -> bool:
    """Whether on n x n nodes rows collect, one node of each row goes on in a single column, and the rows broadcast."""
    return all(
        _rows_first(f"shape={n}x{n},wavelengths=4{kind}", m)
        for n, m, kind in product((4, 9, 16), (2, 3, 4), ("", ",wrap=no"))
    )


def _rows_first(shape: str, group_size: int) -> bool:
    """Whether a verified all-reduce is that, with all transfers of the column between nodes of one column."""
    where = fabric(f"terarack_torus:{shape}")
    plan = lower(where, generate(f"wrht:group_size={group_size}", "all_reduce", where))
    verify(plan).raise_if_bad()
    columns = where.dimensions[1]
    in_row = []
    for step in map(plan.schedule.step, range(plan.schedule.num_steps)):
        ends = np.concatenate([step.src, step.dst])
        in_row.append(bool((step.src // columns == step.dst // columns).all()))
        if not in_row[-1] and len(np.unique(ends % columns)) > 1:
            return False
    down = in_row.index(False)
    return down > 0 and in_row == [True] * down + [False] * (len(in_row) - 2 * down) + [True] * down


@claim("wrht", "W41")
def steps_on_ramp() -> Found:
    """Whether the steps for a ring are right on a RAMP of as many nodes."""
    where = fabric("ramp", groups=4, racks=4, wavelengths=4)
    schedule = generate("wrht", "all_reduce", fabric("terarack:nodes=64,wavelengths=4"))
    plans = lower(where, schedule), lower(where, generate("ramp", "all_reduce", where))
    ours_s, ramp_s = (profile(plan, assumptions("common")).timeline(10**8).total_s for plan in plans)
    return found(all(verify(plan).ok for plan in plans), steps=schedule.num_steps, ratio=ours_s / ramp_s)


@claim("wrht", "W42")
def groups_of_a_hybrid_job() -> Found:
    """Whether all tensor groups at once, and all data groups at once, have a right plan on one ring."""
    ring, ranks = fabric("terarack:nodes=64,wavelengths=64"), np.arange(64).reshape(8, 8)
    parts = groups(ring, ranks), groups(ring, ranks.T)
    tensor, data = (lower(part, generate("wrht", "all_reduce", part)) for part in parts)
    steps = {"tensor_steps": tensor.schedule.num_steps, "data_steps": data.schedule.num_steps}
    return found(verify(tensor).ok and verify(data).ok, **steps)


@claim("wrht", "W1", "nodes=15", "tree")
@claim("wrht", "W10", "nodes=1024", "ring")
@claim("wrht", "W12", "nodes=1024", "tree")
@cache
def steps_of(shape: str, algorithm: str = "wrht") -> int:
    """Steps of an all-reduce on a TeraRack."""
    return generate(algorithm, "all_reduce", fabric(f"terarack:{shape}")).num_steps


def _verified(shape: str, algorithm: str = "wrht") -> CircuitPlan:
    where = fabric(f"terarack:{shape}")
    plan = lower(where, generate(algorithm, "all_reduce", where))
    verify(plan).raise_if_bad()
    return plan


def _wavelengths(plan: CircuitPlan) -> list[int]:
    """Wavelengths used in each step."""
    steps = (plan.rounds(i)[0] for i in range(plan.schedule.num_steps))
    return [len(np.unique(circuits.wavelength_lo)) for circuits in steps]


def _exchange(num_nodes: int) -> int:
    return _wavelengths(_verified(f"nodes={num_nodes},wavelengths=128"))[0]


@cache
def _times(shape: str, algorithm: str, scale: float = 1.0) -> list[float]:
    """Time of each of the four models, gradients scaled by a factor [s]."""
    return [_profile(shape, algorithm).timeline(round(scale * p * BYTES), bounded=False).total_s for p in PARAMETERS]


@cache
def _profile(shape: str, algorithm: str) -> Profile:
    plan = compile(f"terarack:{shape}", "all_reduce", 0, algorithm=algorithm)
    return profile(plan.circuits, assumptions("wrht"))


@claim("wrht", "W23", FIGURE_5, H_RING, *FITTED)
@claim("wrht", "W27l", FIGURE_6, "ring", *LITERAL)
@claim("wrht", "W28", FIGURE_6, f"{H_RING},distribution=pipeline", *FITTED)
@claim("wrht", "W28w", FIGURE_6, H_RING, *FITTED)
def reduction(shapes: tuple[str, ...], rival: str, rate: str, algorithm: str, scale: float = 1.0) -> float:
    """Reduction of the sum of all bars of a figure against the rival's [%].

    H-Ring has the steps for m <= w, as m = 5 and w = 64 have it, or with its pipeline those for m > w.

    Args:
        shapes: of the ring, one per group of bars.
        rival: algorithm.
        rate: of a wavelength, as a parameter of the fabric.
        algorithm: WRHT.
        scale: factor on the gradients.
    """
    ours, theirs = (sum(sum(_times(f"{shape},{rate}", a, scale)) for shape in shapes) for a in (algorithm, rival))
    return 100 * (1 - ours / theirs)
