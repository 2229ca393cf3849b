"""Lower bounds form by form: against definitions that are written down again, and by small numbers."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from tests.altered import altered
from tests.collectives import nothing_required

from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.fabrics import fabric, job
from opticcl.ir import Collective, Op, Schedule, Transfers
from opticcl.ir.capacity import Cut
from opticcl.simulate import bounds, class_bounds, lower_bound, schedule_facts
from opticcl.simulate.bounds import least_transfer_s, moved_share
from opticcl.simulate.latency import path_latency

WARM = assumptions("published", initial="warm", control="none", compute="none")


def bound(where, name, size, assumed=WARM, root=0, shift=1, **options):
    """Lower bound of a collective on a fabric."""
    where = fabric(where) if isinstance(where, str) else where
    wanted = Request(name, root, shift).on(where.num_nodes, where.num_nodes)
    return lower_bound(wanted, where, size, assumed, **options)


def parts_of(name, n, root, shift):
    """Parts of the message that a collective moves: (ranks that have it, ranks that need it, share)."""
    every, block = range(n), 1 / n
    return {
        "all_to_all": [({i}, {j}, block) for i in every for j in every],
        "all_gather": [({i}, set(every), block) for i in every],
        "scatter": [({root}, {i}, block) for i in every],
        "gather": [({i}, {root}, block) for i in every],
        "broadcast": [({root}, set(every), 1)],
        "send_recv": [({i}, {(i + shift) % n}, block) for i in every],
        "reduce_scatter": [({i}, {j}, block) for i in every for j in every],
        "all_reduce": [({i}, set(every), 1) for i in every],
        "reduce": [({i}, {root}, 1) for i in every],
        "barrier": [],
    }[name]


SUMS = ("all_reduce", "reduce", "reduce_scatter")


def crossing(name, n, root, shift, inside, beyond):
    """Share of the message that goes from some ranks to the others: of sums, one result for those that need it there."""
    crosses = {}
    for number, (have, need, share) in enumerate(parts_of(name, n, root, shift)):
        if have & inside and not have & beyond and need & beyond:
            crosses[frozenset(need) if name in SUMS else number] = share
    return sum(crosses.values())


@pytest.mark.parametrize("inside", [{0}, {1, 2}, {0, 3, 4}, {0, 1, 2, 3, 4}, set()])
def test_what_crosses_a_cut(inside):
    """Of five ranks, in each direction, from and to each root and at each distance."""
    n, beyond = 5, set(range(5)) - inside
    cut = Cut("a cut", np.isin(np.arange(n), list(inside)), 1.0, 1.0)
    for name, root, shift in product(bounds._shares(n), (0, 2), (1, 3)):
        found = bounds._crossing(Request(name, root, shift).on(n, n), cut)
        assert found == pytest.approx(
            (crossing(name, n, root, shift, inside, beyond), crossing(name, n, root, shift, beyond, inside))
        )


def test_what_one_rank_must_send_or_receive():
    """By the parts above; and of a collective of one's own, what it lacks of what it needs."""
    for name in bounds._shares(5):
        most = 0
        for rank in range(5):
            others = set(range(5)) - {rank}
            sent, received = crossing(name, 5, 2, 1, {rank}, others), crossing(name, 5, 2, 1, others, {rank})
            most = max(most, sent, received, (sent + received) * (name == "all_reduce") * 4 / 5)
        assert moved_share(Request(name, 2).on(5, 5)) == pytest.approx(most)
        assert moved_share(Request(name).on(1, 1)) == 0
    assert moved_share(Request("all_gather").on(2, 2)) == 1 / 2
    before = np.array([[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 1]], bool)  # rank, chunk
    after = np.array([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [0, 0, 0, 1, 1]], bool)
    for reduces, due in ((False, 2 / 5), (True, 2 / 5)):
        own = Collective("own", 3, 5, reduces, lambda r, c: before[r, c], lambda r, c: after[r, c])
        assert moved_share(own) == due
    sums = Collective("own", 3, 5, True, lambda r, c: before[r, c], lambda r, c: before[r, c])
    assert moved_share(sums) == 1 / 5  # chunk 1 alone has a contribution elsewhere
    where = fabric("ideal:nodes=3")
    assert lower_bound(sums, where, 10**6, WARM).seconds == pytest.approx(where.latency_s + 8e6 / 5 / 400e9)
    parts, ring = assumptions("common"), fabric("torus:shape=3")
    by_packets = [lower_bound(sums, ring, 10**6, parts, overlap=overlap) for overlap in (True, False)]
    assert by_packets[0] == by_packets[1]  # which ranks need something of which others is not followed
    still = Collective("own", 3, 5, False, lambda r, c: after[r, c], lambda r, c: after[r, c])
    assert lower_bound(still, where, 10**6, WARM) == bounds.LowerBound(0.0, "nothing to send")
    assert lower_bound(nothing_required(3, 5), where, 10**6, WARM).seconds == 0


def test_a_send_to_oneself_takes_no_time():
    """Round a ring of four; another collective with that shift does."""
    assert bound("ideal:nodes=4", "send_recv", 10**6, shift=4).seconds == 0
    assert bound("ideal:nodes=4", "send_recv", 10**6, shift=5).seconds > 0
    assert bound("ideal:nodes=4", "all_gather", 10**6, shift=4).seconds > 0
    for name, shift, due in (("send_recv", 4, 0), ("send_recv", 1, 1 / 4), ("all_gather", 4, 3 / 4), ("barrier", 1, 0)):
        wanted = Request(name, 0, shift).on(4, 4)
        assert least_transfer_s(wanted, fabric("ideal:nodes=4"), 10**6, WARM) == pytest.approx(due * 8e6 / 400e9)
    assert least_transfer_s(nothing_required(4, 4), fabric("ideal:nodes=4"), 10**6, WARM) == 0
    ring = fabric("terarack:nodes=64")
    across = 64 / 4 * 8e6 / (2 * ring.double_ring_bits_per_s)
    assert least_transfer_s(Request("all_to_all").on(64, 64), ring, 10**6, WARM) == pytest.approx(across)


@pytest.mark.parametrize("starts", ["steps", "data", "devices"])
@pytest.mark.parametrize("initial", ["cold", "warm"])
@pytest.mark.parametrize("order", ["before_setting", "beside_setting"])
def test_what_a_start_and_a_step_are_charged(starts, initial, order):
    """A change of 5 s and an exchange of 7 s: every step, or once from a cold start; by devices, every step is free."""
    where = SimpleNamespace(reconfiguration_s=5.0, shortest_control_s=7.0)
    for setting, control in product(["on_change", "every_step"], repeat=2):
        assumed = assumptions(
            "common", reconfiguration_charge=setting, control_charge=control, initial=initial, control_order=order
        )
        exchange_s = 7.0 if order == "before_setting" else 2.0
        due = []
        for charge, seconds in ((setting, 5.0), (control, exchange_s)):
            every = charge == "every_step" and starts != "devices"
            due += [0.0 if every or initial == "warm" else seconds, seconds if every else 0.0]
        assert bounds._charge(where, assumed, starts) == tuple(due)
    quick = SimpleNamespace(reconfiguration_s=9.0, shortest_control_s=7.0)
    beside = assumptions("common", control_order="beside_setting")
    assert bounds._charge(quick, beside, starts).control_first_s == 0


def test_without_barriers_steps_overlap():
    """ODDL, four nodes on one switch: two steps until all know of all, of 5 us each if they are set; data of 3 us or 24 us.
    A message waits for its gap once."""
    where = fabric("oddl:shape=4")
    step_s, rate = where.reconfiguration_s, where.node_rate_bits_per_s
    every = assumptions("oddl", control="none")
    for size in (10**4, 10**6):
        moved_s = 3 / 4 * 8 * size / rate
        for starts, due_s in (("steps", 2 * step_s + moved_s), ("data", max(2 * step_s, step_s + moved_s))):
            assert bound(where, "all_gather", size, every, starts=starts).seconds == pytest.approx(due_s)
        assert bound(where, "all_gather", size, every, starts="devices").seconds == pytest.approx(step_s + moved_s)
    slow = assumptions(
        "common", endpoint=1e-3, transceiver=0, fibre=0, message_gap=1e-5, initial="warm", control="none"
    )
    moved_s = 3 / 4 * 8e4 / rate
    assert bound(where, "all_gather", 10**4, slow, starts="data").seconds == pytest.approx(2e-3)
    assert bound(where, "all_gather", 10**4, slow, starts="devices").seconds == pytest.approx(1.01e-3 + moved_s)
    ideal = fabric("ideal:nodes=5")
    slow = assumptions("common", endpoint="1 ms", transceiver=0, fibre=0, hop=0, server_hop=0, message_gap="1 us")
    for size in (10**4, 10**9):
        moved_s = 4 / 5 * 8 * size / ideal.node_rate_bits_per_s
        assert bound(ideal, "gather", size, slow, starts="data").seconds == pytest.approx(1.001e-3 + moved_s)


def test_steps_that_overlap_are_chosen_so():
    """LIGHTPATH, two lasers: contributions of 8/3 m in two steps, or of m in three, by the longer of steps and data; one
    message waits for its gap beside data."""
    where = fabric("lightpath:shape=3x3,lasers=2")
    size = 10**7
    m = 8 * size / where.node_rate_bits_per_s
    none = {"transceiver": 0, "fibre": 0, "waveguide": 0, "initial": "warm", "control": "none"}
    for scale, due in (
        (2.0, 1.5 + 8 / 6),
        (1.0, 3),
    ):  # steps of 1 and messages of 0.5, in units of m x scale
        unit = m * scale
        assumed = assumptions("common", endpoint=unit, message_gap=unit / 2, **none)
        found = bound(where, "reduce", size, assumed, starts="data").seconds
        assert found == pytest.approx(unit * due, rel=1e-4)


@pytest.mark.parametrize("where", ["oddl:shape=2x3", "sipac:radices=2x3", "oddl:shape=2x2x2"])
def test_steps_to_the_farthest_node(where):
    """One for each coordinate that differs, from the root, or between the ends of a send."""
    where = fabric(where)
    n = where.num_nodes
    axes = [axis.coordinate for axis in where.axes(np.arange(n))]
    step_s = 1e-3
    slow = assumptions("common", endpoint=step_s, transceiver=0, fibre=0, message_gap=0, initial="warm", control="none")

    def steps(**more):
        return round(bound(where, size=0, assumed=slow, **more).seconds / step_s)

    for shift in range(1, n):
        assert steps(name="send_recv", shift=shift) == sum(int(c[shift] != c[0]) for c in axes)
        assert steps(name="send_recv", shift=shift + n) == steps(name="send_recv", shift=shift)
    for root in (0, n - 1):
        assert steps(name="broadcast", root=root) >= len(axes)
    far = bound(where, "gather", 0, slow)
    assert far.name == f"{len(axes)} dependent steps (circuits to the farthest node)"


def test_names_of_steps():
    """Neighbours alone, and partners that one can have at once."""
    slow = assumptions("common", endpoint=1.0, initial="warm")
    assert bound("oddl:shape=2", "barrier", 0, slow).name == "1 dependent step (latency)"
    assert bound("oddl:shape=4", "barrier", 0, slow).name == "2 dependent steps (1 partner at once)"
    assert bound("oddl:shape=2x2", "barrier", 0, slow).name == "2 dependent steps (circuits to the farthest node)"
    for name in (
        "all_reduce",
        "all_gather",
        "all_to_all",
        "reduce_scatter",
        "reduce",
        "gather",
        "broadcast",
        "scatter",
    ):
        assert bound("oddl:shape=4", name, 0, slow).name.startswith("2 dependent steps")
    for where, due_s in (("ideal:nodes=8", 1e-6), ("ramp:groups=2,racks=1,wavelengths=2", 2.8e-6), ("oddl:shape=2", 0)):
        assert bound(where, "barrier", 0).seconds == pytest.approx(due_s)
        assert bound(where, "all_to_all", 0).seconds == pytest.approx(due_s)
    in_line = assumptions(WARM, rounds="in_line")
    assert bound("ramp:groups=2,racks=1,wavelengths=2", "barrier", 0, in_line).seconds == pytest.approx(1.4e-6)


def test_slots_carry_their_payload():
    """RAMP: 950 of 1,000 bytes; a slot a step where there are bytes at all; three nodes are met by two ports in two slots."""
    where = fabric("ramp:groups=2,racks=1,wavelengths=2")
    for name, share in (("all_gather", 3 / 4), ("all_reduce", 3 / 2)):
        steps = bound(where, name, 0).seconds / where.latency_s
        assert steps == pytest.approx(round(steps))
        moved_s = share * 8e9 / (where.node_rate_bits_per_s * 0.95)
        assert bound(where, name, 10**9).seconds == pytest.approx(steps * where.latency_s + moved_s, rel=1e-4)
    tiny = bound(where, "broadcast", 1).seconds
    assert tiny == pytest.approx(round(tiny / where.latency_s) * (where.latency_s + where.slot_s))
    block = 10**4 / 4
    slots = np.ceil(2 * 3 * block / (2 * (950 + block)))
    by_hand = where.latency_s + max(slots * where.slot_s, 3 / 4 * 8e4 / (where.node_rate_bits_per_s * 0.95))
    assert bound(where, "all_to_all", 10**4, assumptions(WARM, rounds="in_line")).seconds == pytest.approx(by_hand)
    wide = fabric("ramp:groups=4,racks=1,wavelengths=4")
    forms = dict(_forms(wide, "all_to_all", 4 * 10**4).of_any_number())
    assert forms["slots of direct and relayed blocks"] == pytest.approx(6 * 20e-9)  # 30 x 2,500 / (4 x 3,450) = 5.4
    for block, slots in ((1900, 5), (1930, 6)):  # 5 and 5.03
        forms = dict(_forms(wide, "all_to_all", 16 * block).of_any_number())
        assert forms["slots of direct and relayed blocks"] == pytest.approx(slots * 20e-9)
    many = fabric("ramp:groups=2,racks=1,wavelengths=2,transceivers_per_group=2")  # four ports for three partners
    forms = dict(_forms(many, "all_to_all", 4 * 10**3).of_any_number())
    assert forms["slots of direct and relayed blocks"] == pytest.approx(2 * 20e-9)  # 6 x 1,000 / (3 x 1,950) = 1.03


def _forms(where, name, size, assumed=WARM, *, in_line=False, barriers=True):
    charge = bounds._charge(where, assumed, "steps")
    n = where.num_nodes
    return bounds._Forms(
        Request(name).on(n, n), where, bounds._reach(where), size, charge, in_line=in_line, barriers=barriers
    )


def test_slots_until_all_know_of_all():
    """Played: in every slot a rank hears on each port what its sender knew when it sent."""
    for n, ports, late in product((2, 5, 54), (1, 3), (1, 2, 7)):
        known, slot = {0: 1}, 0
        while known[slot] < n:
            slot += 1
            known[slot] = known[slot - 1] + (ports * known[slot - late] if slot >= late else 0)
        assert bounds._slots_until_known.__wrapped__(n, ports, late) == slot


def test_distance_on_the_ring():
    """TeraRack, six nodes, 1 ms a step: in two steps a tree of six segments gathers, five more segments spread the sums."""
    where = fabric("terarack:nodes=6")
    slow = assumptions(
        "common", endpoint=1e-3, transceiver=0, fibre=0, message_gap=0, hop=0, initial="warm", control="none"
    )
    rate = where.double_ring_bits_per_s
    found = bound(where, "all_reduce", 10**9, slow)
    assert found.name == "distance on the ring"
    assert found.seconds == pytest.approx(2e-3 + (6 + 5) * 8e9 / (2 * 6 * rate), rel=1e-6)
    forms = dict(_forms(where, "all_gather", 10**9).of(np.arange(1, 5)))
    assert forms["distance on the ring"] == pytest.approx(np.array([9, 6, 5, 5]) * 8e9 / (12 * rate))
    assert "distance on the ring" not in dict(_forms(where, "all_to_all", 10**9).of(np.arange(1, 3)))
    chain = bound("terarack:nodes=16", "all_gather", 10**9)  # eight steps: no segment twice
    assert chain.seconds == pytest.approx(15 / 16 * 8e9 / where.node_rate_bits_per_s, rel=1e-6)


def test_contributions_of_rooted_collectives():
    """LIGHTPATH, nine tiles of two lasers: a reduce gathers eight contributions, by steps of three; so spreads a broadcast."""
    where = fabric("lightpath:shape=3x3,lasers=2")
    rate = where.node_rate_bits_per_s
    steps = np.arange(1, 6)
    due = 8 * 8e6 / (np.minimum(9, 3.0 ** (steps - 1)) * rate)
    for name, wanted in (
        ("all_reduce", True),
        ("reduce", True),
        ("broadcast", True),
        ("all_gather", False),
        ("gather", False),
    ):
        forms = dict(_forms(where, name, 10**6).of(steps))
        assert ("contributions" in forms) is wanted
        if wanted:
            assert forms["contributions"] == pytest.approx(due)
    at_once = dict(_forms(where, "reduce", 10**6, in_line=True).of(steps))["contributions"]
    assert at_once == pytest.approx(8 * 8e6 / (np.array([1, 9, 9, 9, 9]) * rate))
    for lasers, wanted in ((7, True), (8, False)):  # to all others in one step, a broadcast needs no relays
        forms = dict(_forms(fabric(f"lightpath:shape=3x3,lasers={lasers}"), "broadcast", 10**6).of(steps))
        assert ("contributions" in forms) is wanted


def test_blocks_that_are_relayed():
    """LIGHTPATH, nine tiles of two lasers: two partners a step, others by a change each two or by two moves."""
    where = fabric("lightpath:shape=3x3,lasers=2")
    block_s = 8e6 / 9 / where.node_rate_bits_per_s
    steps = np.arange(1, 8)
    standing = (16 - 2) * block_s
    for more, met in (
        ({}, np.minimum(8, 2 * steps)),
        ({"barriers": False}, np.full(7, 8)),
        ({"in_line": True}, np.full(7, 8)),
    ):
        change_s = 0.0 if more.get("in_line") else where.reconfiguration_s
        changed = (met - 2) / 2 * change_s + (16 - met) * block_s
        forms = dict(_forms(where, "all_to_all", 10**6, **more).of(steps))
        assert forms["blocks that are relayed"] == pytest.approx(np.minimum(changed, standing))
    every = dict(_forms(where, "all_to_all", 10**6, assumptions("lumorph")).of(steps))
    assert every["blocks that are relayed"] == pytest.approx((16 - np.minimum(8, 2 * steps)) * block_s)
    for other, name in (
        ("lightpath:shape=3x3,lasers=2", "all_gather"),
        ("oddl:shape=3x3", "all_to_all"),
        ("torus:shape=3x3", "all_to_all"),
    ):
        assert "blocks that are relayed" not in dict(_forms(fabric(other), name, 10**6).of(steps))


def test_more_steps_than_are_tried_are_bounded_by_the_last(monkeypatch):
    """LIGHTPATH, twelve tiles of one laser: a step for each partner, or as many as are tried."""
    where = fabric("lightpath:shape=3x4,lasers=1")
    size, step_s, change_s = 10**8, 1e-4, where.reconfiguration_s
    slow = assumptions(WARM, latency="parts", endpoint=step_s, transceiver=0, waveguide=0, message_gap=0)
    block_s = 8 * size / 12 / where.node_rate_bits_per_s
    for most, steps in ((4096, 11), (1, 5), (2, 6)):
        monkeypatch.setattr(bounds, "MOST_STEPS", most)
        found = bound(where, "all_to_all", size, slow).seconds
        assert found == pytest.approx(steps * step_s + 10 * change_s + 11 * block_s, rel=1e-6)


def test_cuts_bind_where_they_carry_little():
    """Half of a ring, which every second block of an all_to_all leaves; a cut that nothing can pass tells nothing."""
    ring = fabric("terarack:nodes=64")
    found = bound(ring, "all_to_all", 10**9)
    assert found.name == "bisection of the ring"
    assert found.seconds == pytest.approx(64 / 4 * 8e9 / (2 * ring.double_ring_bits_per_s), rel=1e-6)
    m, inside = 8e7 / 300e9, np.arange(9) < 4
    narrow = altered(
        fabric("lightpath:shape=3x3,lasers=2"), cuts=lambda self, nodes: [Cut("narrow", inside, 1e11, 1e11)]
    )
    slow = assumptions(WARM, latency="parts", endpoint=m, transceiver=0, waveguide=0, message_gap=0)
    assert bound(narrow, "reduce", 10**7, slow).seconds == pytest.approx(2 * m + 3 * m)  # contributions: 8/3 m, 8/9 m
    inside = np.arange(4) < 2
    torn = altered(
        fabric("ideal:nodes=4"), cuts=lambda self, nodes: [Cut("torn", inside, 0.0, 1e9), Cut("torn", inside, 1e9, 0.0)]
    )
    assert dict(_forms(torn, "all_gather", 10**6).of_any_number())["torn"] == pytest.approx(8e6 / 2 / 1e9)
    assert dict(_forms(torn, "barrier", 0).of_any_number()) == {"ports of a node": 0}


@pytest.mark.parametrize("where", ["torus:shape=5x2", "fat_tree:nodes=10", "topoopt:nodes=7,degree=1"])
def test_paths_of_packets(where):
    """From the root, to it, and between the ends of a send, with the gap of a message; by the routes of the fabric."""
    where = fabric(where)
    n = where.num_nodes
    src, dst = np.divmod(np.arange(n * n), n)
    apart = src != dst
    hops, ends = where.route(src[apart], dst[apart])
    late = assumptions("common", message_gap=1e-9)
    law = path_latency(where, late)
    owner = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    path_s = np.zeros((n, n))
    path_s[src[apart], dst[apart]] = law.base_s + np.bincount(owner, law.of_hops(hops))
    for root in (0, n // 2):
        for name, row in (("broadcast", path_s[root]), ("gather", path_s[:, root])):
            assert bound(where, name, 0, late, root=root).seconds == pytest.approx(row.max() + 1e-9, rel=1e-12)
    for shift in (1, 3, n + 3):
        due_s = path_s[0, shift % n] + 1e-9
        assert bound(where, "send_recv", 0, late, shift=shift).seconds == pytest.approx(due_s, rel=1e-12)
    overlapping, apart = (bound(where, "broadcast", 10**6, late, root=1, overlap=o).seconds for o in (True, False))
    assert overlapping > path_s[1].max() + 2e-9
    quickest_s = float(law.of_hops(np.arange(where.network.num_links)).min())
    assert overlapping < apart <= overlapping + path_s[1].max() - law.base_s - quickest_s + 1e-15


def test_paths_between_other_ranks_do_not_count():
    """On a ring of seven, nodes 0, 3 and 1: from and to the last of them it is two links at most, not three."""
    where = job(fabric("torus:shape=7"), [0, 3, 1])
    late = assumptions("common", message_gap=0, initial="warm")
    law = path_latency(where, late)
    hop_s = law.least_s - law.base_s
    for name in ("gather", "broadcast"):
        assert bound(where, name, 0, late, root=2).seconds == pytest.approx(law.base_s + 2 * hop_s)


def steps_of(where, pairs, assumed, *, sums=(), stands=False):
    """Bounds of steps in which pairs exchange two of four chunks."""

    def step(i):
        rows = np.array(pairs[i], int).reshape(-1, 2)
        return Transfers.of(*rows.T, 0, 2, Op.REDUCE if i in sums else Op.COPY)

    schedule = Schedule("by hand", nothing_required(where.num_nodes, 4), len(pairs), step, stands=stands)
    found = list(class_bounds(schedule, where, assumed))
    assert found == list(class_bounds(schedule, where, assumed, schedule_facts(schedule, where)))
    return found


@pytest.mark.parametrize(
    ("name", "more", "charged"),
    [
        ("common", {"message_gap": 1e-6}, True), ("published", {}, True), ("published", {"initial": "warm"}, False),
        ("oddl", {"control": "none"}, True), ("oddl", {"initial": "warm", "control": "none"}, True),
    ],
)  # fmt: skip
def test_steps_by_hand(name, more, charged):
    """LIGHTPATH, four tiles of one laser: changes of pairs, rounds of those with several partners, messages, sums."""
    where = fabric("lightpath:shape=2x2,lasers=1")
    assumed = assumptions(name, **more)
    late_s = path_latency(where, assumed).least_s
    gap_s, change_s = path_latency(where, assumed).message_gap_s, where.reconfiguration_s * charged
    moving_s, sum_s = 2 / 4 * 8 / where.node_rate_bits_per_s, (2 + 2 * 2) / 4 / assumed.memory_bytes_per_s
    sum_s *= assumed.compute != "none"
    once = late_s + gap_s
    pairs = [[(0, 1), (1, 0)], [], [(0, 2), (3, 1)], [(0, 2)], [(0, 1), (0, 2), (0, 3)], [(0, 1), (0, 2)], [(1, 0)]]
    found = steps_of(where, pairs, assumed, sums=[2])
    several = [late_s * n + gap_s * n + change_s * (n - 1) for n in (3, 2)]
    fixed = [once + change_s, 0, once + change_s, once, *several, once + change_s]
    assert [one.fixed_s for one in found] == pytest.approx(fixed)
    assert [one.moving_s for one in found] == pytest.approx(np.array([1, 0, 1, 1, 3, 2, 1]) * moving_s)
    assert [one.summing_s for one in found] == pytest.approx([0, 0, sum_s, 0, 0, 0, 0])
    beside = steps_of(where, pairs, assumed, stands=True)  # circuits are set before they are used, but the first
    assert [one.fixed_s for one in beside] == pytest.approx([fixed[0], 0, once, once, *several, once])
    first = steps_of(where, pairs[4:], assumed)
    assert first[0].fixed_s == pytest.approx(several[0] + change_s)


def test_wavelengths_of_all_links():
    """Ring of eight fibres of two wavelengths, pairs four apart: 8 x 4 links are two rounds of 16, of 5 us each."""
    where = fabric("sip_ring:nodes=8,wavelengths=2")
    assumed = assumptions("published")
    src = np.arange(8)
    far, near = ([(int(i), int((i + d) % 8)) for i in src] for d in (4, 2))
    found = steps_of(where, [far, near, far[:4]], assumed)
    late_s, change_s = path_latency(where, assumed).least_s, where.reconfiguration_s
    assert [one.fixed_s for one in found] == pytest.approx(
        [2 * late_s + 2 * change_s, late_s + change_s, late_s + change_s]
    )
    moved = np.array([max(2.0, 2 * 32 / 16), 2.0, 2.0]) / 4 * 8 / where.node_rate_bits_per_s
    assert [one.moving_s for one in found] == pytest.approx(moved)
    torus = fabric("torus:shape=3x3")
    assert steps_of(torus, [[(0, 4)]], assumed)[0].moving_s == pytest.approx(2 / 4 * 8 / torus.node_rate_bits_per_s)
    every = np.arange(9)
    far = [(int(i), int((i + 3) % 9 // 3 * 3 + (i + 1) % 3)) for i in every]  # two links away, on 36 links in all
    assert steps_of(torus, [far], assumed)[0].moving_s == pytest.approx(2 / 4 * 8 * 18 / 36 / 512e9)
    wide = fabric("lightpath:shape=2x2,lasers=2")
    (one,) = steps_of(wide, [[(0, 1), (0, 2), (0, 3)]], assumed)  # two of three partners at once
    assert one.fixed_s == pytest.approx(2 * wide.latency_s + 2 * wide.reconfiguration_s)
    in_line = fabric("ramp:groups=2,racks=1,wavelengths=2")
    for rounds, times in (("in_line", 1), ("apart", 2)):
        (one,) = steps_of(in_line, [[(1, 0), (2, 0), (3, 0)]], assumptions("published", rounds=rounds))
        assert one.fixed_s == pytest.approx(times * in_line.latency_s)
