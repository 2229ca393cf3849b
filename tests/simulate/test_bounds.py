"""Lower bounds: by hand, by brute force on small instances, by name, and never above a time."""

from dataclasses import replace
from functools import cache
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.strategies import fabrics

import opticcl
from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.collective import COLLECTIVES, Request, collective
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics import fabric, job
from opticcl.ir.capacity import thresholds
from opticcl.schedule import all_variants, generate
from opticcl.simulate import lower_bound, simulate
from opticcl.simulate._ring_trees import ring_tree_lengths

DEFAULT = assumptions("published")
TRANSFER_ALONE = assumptions("published", initial="warm", control="none", compute="none")


def bound(where, name, size, assumed=DEFAULT, **options):
    """Lower bound of a collective on a fabric."""
    where = fabric(where) if isinstance(where, str) else where
    return lower_bound(Request(name).on(where.num_nodes, where.num_nodes), where, size, assumed, **options)


# --- what the bounds were asked to become ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "name", "algorithm", "size", "gap", "by"),
    [
        ("terarack:nodes=1024", "all_to_all", "wrht:group_size=47", 100_000_000, 2.08, "bisection of the ring"),
        (
            "sipac:radix=2,levels=9",
            "barrier",
            "dissemination",
            0,
            1.0,
            "9 dependent steps (circuits to the farthest node)",
        ),
        ("oddl:shape=32x32", "broadcast", "halving_doubling", 100_000_000, 18.08, "ports of a node"),
        ("lightpath:shape=8x8,waveguides=1", "all_to_all", "mesh", 100_000_000, 2.22, "cut above row 4"),
        ("terarack:nodes=64,rings=2", "all_to_all", "wavelength_exchange", 100_000_000, 1.059, "bisection of the ring"),
        (
            "terarack_torus:shape=8x4,wavelengths=2",
            "all_to_all",
            "by_dimension",
            10**8,
            1.509,
            "bisection of the columns",
        ),
        (
            "terarack_torus:shape=4x8,wavelengths=2,wrap=no",
            "all_to_all",
            "by_dimension",
            10**8,
            1.511,
            "bisection of the rows",
        ),
        ("sip_ring:nodes=32,wavelengths=2", "all_to_all", "by_dimension", 10**8, 2.605, "bisection of the ring"),
        (
            "sip_ring:nodes=32,wavelengths=2,directions=2",
            "all_to_all",
            "by_dimension",
            10**8,
            1.482,
            "bisection of the ring",
        ),
        ("torus:shape=8x8", "barrier", "lumorph:radix=8", 0, 1.0, "latency of the longest path"),
        ("fat_tree:nodes=64", "barrier", "mesh", 0, 1.0, "latency of the longest path"),
        ("superpod:nodes=32", "all_gather", "lumorph:radix=8", 10**9, 1.778, "cut of 24 nodes from nodes 0 to 7"),
    ],
)
def test_time_over_bound(where, name, algorithm, size, gap, by):
    """Once 289, 9, 20, 7.9, and no bound at all: what is left is the algorithm's."""
    timeline = opticcl.compile(where, name, size, algorithm=algorithm).simulate(assumptions="published")
    assert timeline.gap == pytest.approx(gap, rel=5e-3)
    assert timeline.bound_by == by


def test_servers_tell_each_other_of_all():
    """Four servers behind cards of 1.6 Tb/s each: six passings of 1 GB from one to another, 7.5 ms and 510 ns of latency."""
    law = assumptions("published", compute="none")
    timeline = opticcl.compile("superpod:nodes=32", "all_reduce", 10**9, algorithm="ring").simulate(assumptions=law)
    assert timeline.bound_by == "cut of 24 nodes from nodes 0 to 7"
    assert timeline.lower_bound_s == pytest.approx(6 * 8e9 / (4 * 1.6e12), rel=1e-3)


@pytest.mark.parametrize("size", [10_000, 1_000_000])
def test_the_longest_path_and_the_busiest_link_of_a_step(size):
    """In closed form one follows the other, exactly so on a ring of packets; flows overlap."""
    plan = opticcl.compile("torus:shape=8", "all_to_all", size, algorithm="mesh")
    closed, flow = plan.simulate(), plan.simulate(engine="flow")
    assert closed.total_s == pytest.approx(closed.lower_bound_s, rel=1e-12)
    assert flow.lower_bound_s < flow.total_s < closed.lower_bound_s


# --- by hand --------------------------------------------------------------------------------------------------------------


def test_a_cold_start_takes_one_change_more():
    """On change; where every step is charged, so many changes as there are dependent steps."""
    where = fabric("terarack:nodes=16,wavelengths=2")
    cold, warm = (bound(where, "all_reduce", 1000, assumptions("published", initial=i)) for i in ("cold", "warm"))
    every = bound(where, "all_reduce", 1000, assumptions("wrht"))
    assert cold.name == "one change of circuits"
    assert cold.seconds - warm.seconds == pytest.approx(where.reconfiguration_s)
    assert every.name == "changes of circuits"
    assert every.seconds - warm.seconds == pytest.approx(
        2 * where.reconfiguration_s, rel=0.01
    )  # 16 nodes, 4 partners in a step


def test_one_control_exchange_in_every_step():
    """Of ODDL: two exchanges through one switch, in each of the steps that three nodes and one partner need."""
    where = fabric("oddl:shape=3")
    charged, free = (
        bound(where, "barrier", 0, assumptions("published", initial="warm", control=c)) for c in ("charged", "none")
    )
    assert charged.seconds - free.seconds == pytest.approx(2 * 2 * where.control_switch_delay)
    assert charged.name == "control exchanges"


def least_exchange_that_joins(where):
    """Two times the delay of the fewest control switches with which pairs of one line join all nodes, pair by pair."""
    control = {
        (a, b): where.control_s(np.array([a]), np.array([b])) for a, b in combinations(range(where.num_nodes), 2)
    }
    linked = [pair for pair in control if where.linked(np.array([pair[0]]), np.array([pair[1]]))[0]]
    group = list(range(where.num_nodes))
    for a, b in sorted(linked, key=control.get):
        group = [group[a] if one == group[b] else one for one in group]
        if len(set(group)) == 1:
            return control[a, b]
    raise AssertionError("not joined")


@pytest.mark.parametrize("shape", ["8", "2x4", "4x2", "2x2x2", "3x2"])
@pytest.mark.parametrize("radix", [2, 4, 8])
@pytest.mark.parametrize("charge", ["on_change", "every_step"])
def test_circuits_that_join_all_nodes_wait_for_a_far_exchange(shape, radix, charge):
    """Under each kind of charge, once, beside the shortest one of the other steps."""
    where = fabric(f"oddl:shape={shape},control_radix={radix}")
    charged, free = (
        bound(where, "broadcast", 0, assumptions("published", control=c, control_charge=charge)).seconds
        for c in ("charged", "none")
    )
    shortest = where.shortest_control_s
    others = round((charged - free - least_exchange_that_joins(where)) / shortest, 9)
    assert others == 0 if charge == "on_change" else others >= 0 and others == int(others)
    far = assumptions("published", initial="warm", control_charge="on_change")
    assert bound(where, "broadcast", 0, far).seconds == pytest.approx(
        bound(where, "broadcast", 0, replace(far, control="none")).seconds
    )


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_what_comes_from_half_a_ring_away_passes_its_fibres(n):
    """In any number of steps over segments in any order; every pair by relaxation, each segment with a latency of its own."""
    where = fabric(f"terarack:nodes={n}")
    each_s = np.random.default_rng(n).integers(1, 20, 2 * n).astype(float)
    least = np.where(np.eye(n), 0.0, np.inf)
    for _ in range(n):
        for i in range(n):
            j = (i + 1) % n
            least[:, j] = np.minimum(least[:, j], least[:, i] + each_s[i])
            least[:, i] = np.minimum(least[:, i], least[:, j] + each_s[n + i])
    for node in range(n):
        there, back = where.shortest_paths_s(node, lambda hops: each_s[hops])
        assert there == pytest.approx(least[node])
        assert back == pytest.approx(least[:, node])


def test_a_large_ring_takes_the_light_round_half_of_it():
    """65,536 nodes: half of 32,768 fibres more than a nearest neighbour, and the change."""
    found = bound("terarack:nodes=65536", "all_reduce", 1000, assumptions("common"))
    assert found.name == "latency of the longest path"
    near = bound("terarack:nodes=64", "all_reduce", 1000, assumptions("common"))
    assert found.seconds > near.seconds + 32_000 * 4e-9


def test_wavelengths_to_one_partner_are_no_partners():
    """A NIC of ODDL bonds its wavelengths towards one partner."""
    seconds = [bound(f"oddl:shape=5,wavelengths={w}", "barrier", 0, assumptions("oddl")).seconds for w in (3, 6)]
    assert seconds[0] == seconds[1] > 0


def test_channels_that_lead_back_carry_nothing():
    """SiPAC's published channels: one of r groups leads back to its sender."""
    published, retuned = (
        bound(f"sipac:radix=4,levels=2,wavelengths=12,channels={c}", "all_gather", 10**9, TRANSFER_ALONE).seconds - 2e-6
        for c in ("published", "retuned")
    )
    assert published / retuned == pytest.approx(4 / 3)


def test_every_direction_carries_its_own_blocks():
    """All-to-all on 2 x 8 of ODDL: two NICs a column lead to 2, 4 and 1 others, 1, 2 and 3 hops away."""
    where = fabric("oddl:shape=2x8")
    found = bound(where, "all_to_all", 10**9, TRANSFER_ALONE)
    assert found.name == "routes of dimension 1, set once a job"
    hops = 2 * (2 * 1 + 4 * 2 + 1 * 3)  # to both nodes of a column
    assert found.seconds == pytest.approx(hops / 16 * 8e9 / (where.lasers_per_port * where.nic_rate))


def test_slots_of_direct_and_relayed_blocks():
    """RAMP, 54 nodes, 1 KB: 2 x 53 blocks of 18.5 bytes, direct ones a slot each."""
    where = fabric("ramp:groups=3,racks=3,wavelengths=6")
    block = 1000 / 54
    slots = np.ceil(2 * 53 * block / (where.ports_per_node * (where.slot_payload_bytes + block)))
    found = bound(where, "all_to_all", 1000, TRANSFER_ALONE)
    assert found.seconds >= where.latency_s + slots * where.slot_s


def test_rounds_in_line_have_any_number_of_partners():
    """RAMP: apart, two steps of 27 partners until 54 nodes know of all; in line one, and the slots of a direct exchange."""
    where = fabric("ramp:groups=3,racks=3,wavelengths=6,transceivers_per_group=9")
    apart, in_line = (
        bound(where, "all_gather", 54, assumptions("published", rounds=r, compute="none")) for r in ("apart", "in_line")
    )
    assert apart.seconds == pytest.approx(2 * (where.latency_s + where.slot_s))
    slots = np.ceil(53 / 27)
    assert in_line.seconds == pytest.approx(where.latency_s + slots * where.slot_s)
    assert in_line.name == "slots until all know of all"


def test_contributions_that_an_all_reduce_collects():
    """LIGHTPATH, 16 x 16: in two steps each byte brings at most 17 of the 255 contributions, in three more than 255."""
    where = fabric("lightpath:shape=16x16")
    rate, alpha = where.node_rate_bits_per_s, where.latency_s
    for size in (10**5, 10**6):
        by_steps = [2 * alpha + 255 / 17 * 8 * size / rate, 3 * alpha + 2 * 255 / 256 * 8 * size / rate]
        assert bound(where, "all_reduce", size, TRANSFER_ALONE).seconds == pytest.approx(min(by_steps))
    assert bound(where, "all_reduce", 10**4, TRANSFER_ALONE).name.startswith("2 dependent steps")


def test_more_partners_cost_changes_of_circuits():
    """LIGHTPATH, 256 tiles of 16 lasers: 239 blocks move twice, or a laser changes its partner for each."""
    where = fabric("lightpath:shape=16x16,waveguides=10000")
    found = bound(where, "all_to_all", 10**6, TRANSFER_ALONE)
    twice = (2 * 255 - 16) * 1e6 / 256 * 8 / where.node_rate_bits_per_s
    assert found.name == "blocks that are relayed"
    assert found.seconds == pytest.approx(2 * where.latency_s + twice)


def test_a_job_has_its_own_bound():
    """Tiles in two corners of a wafer share one cut; nodes in one line of ODDL use one NIC."""
    line = job(fabric("oddl:shape=4x4"), range(4))
    both = fabric("oddl:shape=4x4")
    share = (3 / 4) / (15 / 16)
    seconds = [bound(where, "all_gather", 10**9, TRANSFER_ALONE).seconds for where in (line, both)]
    assert seconds[0] / seconds[1] == pytest.approx(2 * share)


@pytest.mark.parametrize("where", ["torus:shape=5x4", "fat_tree:nodes=20", "dragonfly:nodes=20"])
def test_a_barrier_on_packets_takes_the_longest_path(where):
    """By the routes of the fabric, which are shortest there."""
    where = fabric(where)
    n = where.num_nodes
    src, dst = (column.ravel() for column in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
    apart = src != dst
    hops, ends = where.route(src[apart], dst[apart])
    owner = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    routed = np.bincount(owner, where.hop_latency_s(hops))
    found = bound(where, "barrier", 0)
    assert 0 < found.seconds <= routed.max() * (1 + 1e-9)
    assert found.seconds == pytest.approx(routed[src[apart] == 0].max())


# --- by brute force ---------------------------------------------------------------------------------------------------------


def least_tree(n, levels):
    """Least length of all trees into position 0 of a ring that have at most so many levels."""
    apart = [[min((i - j) % n, (j - i) % n) for j in range(n)] for i in range(n)]
    best = np.inf
    for parent in product(range(n), repeat=n - 1):
        length = sum(apart[i + 1][p] for i, p in enumerate(parent))
        if length < best and all(reaches_root(i + 1, parent, levels) for i in range(n - 1)):
            best = length
    return best


def reaches_root(node, parent, levels):
    """Whether the root is at most so many steps away."""
    for _ in range(levels):
        node = parent[node - 1]
        if not node:
            return True
    return False


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_trees_round_a_ring(n):
    """Equal to the best of all trees."""
    lengths = ring_tree_lengths(n)
    for levels in range(1, n):
        assert lengths[min(levels, len(lengths)) - 1] == least_tree(n, levels)


@pytest.mark.parametrize("n", [17, 40])
def test_trees_of_any_convex_or_other_shape(n):
    """The same by trying every place of every branch and of its root."""
    near, far = n // 2, n - 1 - n // 2
    side = [0] + [10**6] * near
    for length in ring_tree_lengths(n):
        branch = [10**6] + [min(side[a] + a + 1 + side[m - 1 - a] for a in range(m)) for m in range(1, near + 1)]
        side = [0]
        for m in range(1, near + 1):
            side.append(min(side[y] + y + branch[m - y] for y in range(m)))
        assert length == side[near] + side[far]


def test_trees_round_a_large_ring():
    """By the table of a ring of 1,024: length over 1,023."""
    lengths = ring_tree_lengths(1024) / 1023
    assert [round(float(lengths[t - 1]), 2) for t in (1, 2, 3, 8, 64)] == [256.25, 15.09, 6.82, 3.03, 1.87]
    assert (np.diff(lengths) <= 0).all()


def test_levels_beyond_the_last_have_the_least_length():
    """A ring of 65,536 positions has more levels than are computed; 4,096 has all of them."""
    lengths = ring_tree_lengths(65536)
    assert 3 < len(lengths) < 1000
    assert lengths[0] == 2 * (32767 * 32768 / 2) + 32768  # from every position on each side, and from the one opposite
    assert lengths[-1] == 65535
    assert len(ring_tree_lengths(4096)) == 2048


@cache
def least_traffic(contributions, compute):
    """Memory traffic of the sums that join contributions of one chunk: over all trees of sums [chunks]."""
    if contributions == 1:
        return 0
    return min(
        sum(least_traffic(part, compute) for part in parts)
        + (len(parts) + 1 if compute == "fused" else 3 * (len(parts) - 1))
        for parts in parts_of(contributions)
        if len(parts) > 1
    )


def parts_of(number, most=None):
    """Ways to write a number as a sum of positive numbers."""
    if not number:
        yield ()
    for first in range(1, min(number, most or number) + 1):
        for rest in parts_of(number - first, first):
            yield (first, *rest)


@pytest.mark.parametrize("compute", ["fused", "chain", "none"])
@pytest.mark.parametrize("name", ["all_reduce", "reduce_scatter", "reduce", "all_gather"])
def test_sums_take_time_in_closed_form(name, compute):
    """On eight nodes: the best tree of sums, spread over all nodes; none where nothing is added, or where arrivals overlap."""
    assumed = assumptions("published", compute=compute, memory_bytes_per_s=1e12)
    without = assumptions("published", compute="none", memory_bytes_per_s=1e12)
    size = 80_000_000
    added = (
        bound("oddl:shape=2x4", name, size, assumed, overlap=False).seconds
        - bound("oddl:shape=2x4", name, size, without, overlap=False).seconds
    )
    chunks = 0 if compute == "none" or name == "all_gather" else least_traffic(8, compute)
    assert added == pytest.approx(chunks * size / 8 / 1e12, abs=1e-15)
    assert bound("oddl:shape=2x4", name, size, assumed) == bound("oddl:shape=2x4", name, size, without)


def fewest_rounds(n):
    """Rounds until all ranks know of all, if each sends to one and receives from one a round: over all pairings."""
    states, rounds = {tuple(1 << i for i in range(n))}, 0
    full = (1 << n) - 1
    while all(any(known != full for known in state) for state in states):
        states = {
            tuple(state[i] | state[sender] for i, sender in enumerate(senders))
            for state in states
            for senders in permutations(range(n))  # a rank that sends to itself is idle
        }
        rounds += 1
    return rounds


@pytest.mark.parametrize("n", [2, 3, 4])
def test_steps_until_all_know_of_all(n):
    """One partner a step, as a NIC of ODDL."""
    found = bound(f"oddl:shape={n}", "barrier", 0, assumptions("oddl", control="none"))
    assert round(found.seconds / fabric("oddl").reconfiguration_s) == fewest_rounds(n)


MACHINES = (
    "terarack:nodes=7,wavelengths=2", "terarack:nodes=6,rings=2,wavelengths=3", "terarack_torus:shape=3x4,wavelengths=2",
    "terarack_torus:shape=2x3,wrap=False", "sip_ring:nodes=7", "sip_ring:nodes=8,directions=2,wavelengths=3",
    "lightpath:shape=3x3,waveguides=1", "lightpath:shape=4x4,dead_tiles=5,dead_waveguides=0-1:30",
    "lightpath:shape=2x5,lasers=3,switch_unit=waveguide,waveguides=2",
)  # fmt: skip


@pytest.mark.parametrize("where", MACHINES)
def test_no_round_sends_more_across_a_cut_than_it_can_carry(where):
    """Light of every algorithm, counted circuit by circuit."""
    where = fabric(where)
    nodes = where.machine_nodes(np.arange(where.num_nodes))
    cuts = list(where.cuts(nodes))
    assert cuts
    for algorithm in all_variants(Request("all_to_all"), where)[:4] + all_variants(Request("all_reduce"), where)[:4]:
        for name in ("all_to_all", "all_reduce"):
            try:
                plan = lower(where, generate(algorithm, Request(name), where))
            except UnsupportedError:
                continue
            for steps in plan.schedule.step_classes():
                for circuits in plan.rounds(steps.start):
                    rate = circuits.wavelength_n * where.rate_bits_per_s
                    for cut in cuts:
                        inside = np.zeros(where.num_machine_nodes, bool)
                        inside[nodes] = cut.inside
                        out = inside[circuits.src] & ~inside[circuits.dst]
                        back = ~inside[circuits.src] & inside[circuits.dst]
                        assert rate[out].sum() <= cut.out_bits_per_s * (1 + 1e-9)
                        assert rate[back].sum() <= cut.in_bits_per_s * (1 + 1e-9)


@pytest.mark.parametrize(
    "where", ["torus:shape=4x3", "leaf_spine:nodes=7,nodes_per_leaf=2,spines=1", "superpod:nodes=16"]
)
def test_a_cut_of_links_is_a_cut(where):
    """Every path from one side to the other passes its links: without them no node beyond is reached."""
    network = fabric(where).network
    first = fabric(where).num_nodes // 2
    out, back = network.leaving(np.arange(first))
    rate = np.concatenate([np.full(r.count, r.capacity) for r in network.resources])
    sides = product([False, True], repeat=min(network.num_vertices - network.num_nodes, 10))
    least = np.inf
    for choice in sides:
        inside = np.zeros(network.num_vertices, bool)
        inside[:first] = True
        inside[network.num_nodes : network.num_nodes + len(choice)] = choice
        least = min(least, rate[inside[network.tail] & ~inside[network.head]].sum())
    assert least <= out <= 2 * least
    assert out == back


def test_thresholds_divide_coordinates():
    """Always some on both sides."""
    assert thresholds(np.arange(9)) == [1, 2, 4, 6, 8]
    assert thresholds(np.array([4])) == []


# --- never above a time -----------------------------------------------------------------------------------------------------

SPECIAL = (
    *MACHINES,
    "oddl:shape=3x5",
    "oddl:shape=2x3x4,wavelengths=3",
    "sipac:radices=2x3x4",
    "sipac:radix=3,levels=2,channels=retuned",
    "sipac:radix=3,levels=2,channels=ring",
    "ramp:groups=2,racks=2,wavelengths=4",
    "ramp:groups=3,racks=2,wavelengths=3,subnet=route_switch",
    "ramp:groups=2,racks=1,wavelengths=4,slot=0s",
    "torus:shape=2x3x2",
    "topoopt:nodes=12,degree=3",
    "ocs:nodes=8,planes=2,control=1us",
)
COMMON = assumptions("common")
CHANGED = (
    assumptions("common", rounds="apart", control_order="beside_setting"),
    assumptions("common", initial="warm", endpoint=0),
    assumptions("common", reconfiguration_charge="every_step"),
    assumptions("common", endpoint=0, transceiver=0, fibre=0, message_gap="1 us"),
)
CELLS = "max_events=10000"
ENGINES = (
    "closed_form",
    "device",
    "flow",
    "flow:mode=asynchronous",
    f"packet:{CELLS}",
    f"packet:mode=asynchronous,{CELLS}",
)


@st.composite
def cases(draw):
    """Any collective by any algorithm on a fabric or a part of one."""
    where = draw(st.one_of(fabrics(17), st.sampled_from(SPECIAL).map(fabric)).filter(lambda f: f.num_nodes > 1))
    if draw(st.booleans()) and where.num_nodes > 3:
        nodes = where.machine_nodes(np.arange(where.num_nodes)).tolist()
        where = job(where, draw(st.permutations(nodes))[: draw(st.integers(2, len(nodes) - 1))])
    wanted = Request(draw(st.sampled_from(list(COLLECTIVES))), draw(st.integers(0, where.num_nodes - 1)))
    algorithms = all_variants(wanted, where)
    return where, wanted, draw(st.sampled_from(algorithms)) if algorithms else None


@examples(80)
@given(
    cases(), st.sampled_from([0, 1, 1000, 10**5, 10**7, 10**9]),
    st.sampled_from([DEFAULT, TRANSFER_ALONE, COMMON, *CHANGED, *map(assumptions, ("wrht", "oddl"))]), st.sampled_from(ENGINES),
)  # fmt: skip
def test_no_time_is_below_its_bound(case, size, assumed, engine):
    """Every engine refuses such a time by itself (BoundError)."""
    where, wanted, algorithm = case
    if algorithm is None:
        return
    try:
        plan = lower(where, generate(algorithm, wanted, where))
        timeline = simulate(plan, size, assumed, engine=engine).timeline
    except (UnsupportedError, ParameterError):  # no circuits, or more events than allowed
        return
    assert timeline.total_s >= timeline.lower_bound_s * (1 - 1e-9)
    assert timeline.bound_by


def test_bounds_are_in_every_record():
    """Of a timeline, and of the rows of a comparison."""
    record = opticcl.compile("torus:shape=4x4", "all_gather", "1 MB", algorithm="ring").simulate().record()
    assert record["gap"] == pytest.approx(record["total_s"] / record["lower_bound_s"])
    row = opticcl.compare(["torus"], "all_gather", "1 MB", nodes=16).frame().row(0, named=True)
    assert row["gap"] >= 1
    assert row["bound_by"]


def test_messages_of_a_node():
    """A barrier in one step sends to all others; where a message takes longer than a step, in as many steps as bits of N."""
    assumed = assumptions(
        "common", endpoint=0, transceiver=0, fibre=0, waveguide=0, hop=0, server_hop=0, message_gap="1 us"
    )
    assert bound("ideal:nodes=64", "barrier", 0, assumed).seconds == pytest.approx(6e-6)
    dissemination = opticcl.compile("ideal:nodes=64", "barrier", 0, algorithm="dissemination")
    assert dissemination.simulate(assumptions=assumed).total_s == pytest.approx(6e-6)
    assert bound("ideal:nodes=64", "gather", 0, assumed).seconds == pytest.approx(1e-6)
    slow = assumptions("common", endpoint="1 ms", transceiver=0, fibre=0, hop=0, server_hop=0)
    assert bound("ideal:nodes=64", "barrier", 0, slow).seconds == pytest.approx(1e-3 + 63 * 5e-9)
    mesh = opticcl.compile("ideal:nodes=64", "barrier", 0, algorithm="mesh")
    assert mesh.simulate(assumptions=slow).total_s == pytest.approx(1e-3 + 63 * 5e-9)
    assert mesh.simulate("flow:mode=asynchronous", assumptions=slow).gap == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("gap_us", [0.5, 4, 5, 6, 40])
def test_messages_of_an_all_to_all(gap_us):
    """Equal to the best of all graphs of 4 nodes: a message a partner, and as many as steps to the farthest node."""
    pairs, block_us, best = list(permutations(range(4), 2)), 5.0, np.inf
    for chosen in product((False, True), repeat=len(pairs)):
        far = np.full((4, 4), np.inf)
        far[np.arange(4), np.arange(4)] = 0
        for (src, dst), linked in zip(pairs, chosen, strict=True):
            far[src, dst] = 1 if linked else np.inf
        partners = (far == 1).sum(axis=1).max()
        for middle in range(4):
            far = np.minimum(far, far[:, middle, None] + far[middle])
        if np.isfinite(far).all():
            best = min(best, gap_us * max(partners, far.max()) + block_us * far.sum() / 4)
    assumed = assumptions("common", endpoint=0, transceiver=0, fibre=0, hop=0, message_gap=f"{gap_us} us")
    assert bound("ideal:nodes=4", "all_to_all", 10**6, assumed, overlap=False).seconds * 1e6 == pytest.approx(best)


def test_nothing_to_send_takes_no_time():
    """One rank alone, and a send to oneself."""
    assert bound("ideal:nodes=1", "all_reduce", 10**6).seconds == 0
    alone = collective("send_recv", 4, 4)
    assert lower_bound(alone, fabric("ideal:nodes=4"), 10**6, DEFAULT).seconds > 0
