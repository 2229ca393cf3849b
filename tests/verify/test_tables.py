"""Device tables judged alone: those of the five systems are right, and each rule refuses a mutant by name."""

import dataclasses
import re

import numpy as np
import pytest

import opticcl
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir.programme import DeviceTable
from opticcl.ir.tables import DataRows
from opticcl.optics.emulator import Emulator
from opticcl.optics.rounds import lanes_of, needed_settings, round_settings
from opticcl.optics.values import optics
from opticcl.plans.tables import TableMaker, TablePart
from opticcl.verify.light.budget import check_budget
from opticcl.verify.tables.devices import DeviceStates, check_tables, match_data

SYSTEMS = {
    "ramp": ("ramp:groups=2,racks=2,wavelengths=4", "ramp"),
    "ramp_planes": ("ramp:groups=2,racks=2,wavelengths=2,transceivers_per_group=2", "ring"),
    "ramp_tuned": ("ramp:groups=2,racks=2,wavelengths=4,subnet=route_broadcast", "ramp"),
    "ramp_crossbar": ("ramp:groups=2,racks=2,wavelengths=4,subnet=route_switch", "ramp"),
    "sipac": ("sipac:radix=4,levels=2,wavelengths=8", "auto"),
    "terarack": ("terarack:nodes=8,wavelengths=4", "wrht"),
    "torus": ("terarack_torus:shape=2x3,wavelengths=3,wrap=false", "auto"),
    "oddl": ("oddl:shape=2x4", "auto"),
    "lightpath": ("lightpath:shape=3x3", "auto"),
    "lightpath_apart": ("lightpath:shape=3x3", "de_bruijn:steps=4"),
    "ocs": ("ocs:nodes=9,planes=2", "balanced_digits:sides=3x3,shifts=3x1"),
    "ocs_held": ("ocs:nodes=8,planes=2", "digit_shifts:cuts=1x5,shifts=1x2x1"),
    "ocs_any": ("ocs:nodes=10,planes=2,forwarding=any", "held_graph:along=paths"),
}


def tables_of(system, collective="all_reduce", size="100 KB"):
    """Tables of a small plan."""
    fabric, algorithm = SYSTEMS[system]
    algorithm = algorithm if collective == "all_reduce" else "auto"
    return TableMaker(opticcl.compile(fabric, collective, size, algorithm=algorithm)).tables()


def changed(tables, settings=None, data=None, **header):
    """The tables with other values: {column: (rows, values)}."""

    def with_values(rows, changes):
        columns = {name: getattr(rows, name).copy() for name in rows.KINDS}
        for name, (at, value) in (changes or {}).items():
            columns[name][at] = value
        return type(rows)(**columns)

    return dataclasses.replace(
        tables, settings=with_values(tables.settings, settings), data=with_values(tables.data, data), **header
    )


def rules(tables):
    """Names of the rules that tables break."""
    return {one.rule for one in check_tables(tables).violations}


@pytest.mark.parametrize("collective", ["all_reduce", "all_to_all"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_tables_of_a_plan_are_right(system, collective):
    """Light, data and times."""
    tables = tables_of(system, collective)
    verdict = check_tables(tables)
    assert verdict.ok, str(verdict)
    assert verdict.data == len(tables.data) > 0
    assert not any("change nothing" in note for note in verdict.notes)


@pytest.mark.parametrize("collective", ["broadcast", "reduce_scatter", "all_gather", "gather", "scatter"])
def test_other_collectives(collective):
    """Rooted ones, and those without sums."""
    plan = opticcl.compile("oddl:shape=2x4", collective, "10 KB")
    assert check_tables(TableMaker(plan).tables()).ok


def test_slots_hold_neighbouring_chunks():
    """Chunks that are no neighbours would leave one after the other, but not within slots of their own."""
    plan = opticcl.compile("ramp:groups=2,racks=2,wavelengths=4", "all_reduce", "1 MB", algorithm="de_bruijn:steps=4")
    with pytest.raises(UnsupportedError, match="in slots of ramp a transfer carries neighbouring chunks"):
        TableMaker(plan).tables()


def test_a_job_on_some_nodes():
    """Its ranks are not the nodes of the machine."""
    plan = opticcl.compile("ramp:groups=2,racks=2,wavelengths=4", "all_gather", "10 KB", nodes=[3, 9, 4, 12])
    verdict = check_tables(TableMaker(plan).tables())
    assert verdict.ok, str(verdict)


@pytest.mark.parametrize("system", SYSTEMS)
def test_replayed_tables_give_the_states_that_the_circuits_need(system):
    """Every device that a circuit of a round needs has its state as the round begins, in tables that were only replayed."""
    plan = opticcl.compile(SYSTEMS[system][0], "all_reduce", "100 KB", algorithm=SYSTEMS[system][1])
    tables = TableMaker(plan).tables()
    netlist = plan.fabric.netlist()
    devices = DeviceStates(netlist, tables)
    programme, data = plan.programme("closed_form"), (netlist.transmitter, netlist.photodiodes.name)
    emulator = Emulator(netlist)
    for step in range(plan.schedule.num_steps):
        for number, circuits in enumerate(plan.circuits.rounds(step)):
            begin_s = start_of(programme, step, number)
            devices.go_to(begin_s)
            assert np.array_equal(devices.old, devices.new)
            lanes = lanes_of(plan.fabric, circuits, plan.schedule.step(step))
            needed = round_settings(plan.fabric, netlist, circuits, lanes)
            replayed = emulator.load(devices.states(devices.old))
            for position, group in enumerate(netlist.groups):
                if group.name in data or "fixed" in group.parameters:
                    continue
                own = needed.kind == position
                held = dict(zip(*pairs(*replayed.held(position)), strict=True))
                parked = 0 if group.kind in ("gate", "ringbank") else -1
                for key, value in zip(*pairs(needed.device[own], needed.index[own], needed.setting[own]), strict=True):
                    assert held.get(key, parked) == value, (system, group.name, key)
    if any(group.once_per_job for group in netlist.groups):
        assert len(needed_settings(plan.fabric, netlist, circuits, True))


def pairs(number, index, value):
    """[(device, index)], [value]."""
    return list(zip(number.tolist(), index.tolist(), strict=True)), value.tolist()


def start_of(programme, step, number):
    """Start of the first light of a round, in steps that a programme may store once [s]."""
    runs, times = programme.runs, programme.circuits
    run = int(np.searchsorted(runs.first, step, "right") - 1)
    rows = (times.step == runs.first[run]) & (times.round == number)
    return float(times.start_s[rows].min() + (step - runs.first[run]) * runs.period_s[run])


# --- power ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS)
def test_power_is_that_of_the_plan(system):
    """The least margin and the circuits without enough light, of circuits that the settings make."""
    plan = opticcl.compile(SYSTEMS[system][0], "all_reduce", "100 KB", algorithm=SYSTEMS[system][1])
    tables, table = TableMaker(plan).tables(), plan.fabric.light_path.table
    for settings in ({}, {"launch": -40.0}):
        values = optics(table, "typical", settings)
        due, found = check_budget(plan.circuits, values), check_tables(tables, budget=values)
        assert found.budget == "typical"
        assert found.record()["checked"]["budget"] == "typical"
        (light,) = (note for note in found.notes if note.startswith("light: "))
        assert light.split(",")[0] == due.notes[0].split(",")[0]
        assert bool(found.violations) == bool(due.violations) == bool(settings)
        for one, other in zip(found.violations, due.violations, strict=False):
            assert (one.rule, one.expected, one.found) == ("light_does_not_close", other.expected, other.found)
            assert one.where.partition(" through ")[2] == other.where.partition(" through ")[2]
            assert one.at_s == tables.data.from_s.min()
    assert "power not judged" in str(check_tables(tables))
    assert "power not judged" not in str(found)
    with pytest.raises(ParameterError, match="preset literal has no "):
        check_tables(tables_of("lightpath"), budget=optics(tables_of("lightpath").fabric.light_path.table))


# --- mutants ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", ["terarack", "oddl", "lightpath"])
def test_a_setting_that_comes_late(system):
    """By a tenth of its setting time."""
    tables = tables_of(system)
    netlist = tables.fabric.netlist()
    moving = [p for p, group in enumerate(netlist.groups) if not group.once_per_job]
    rows = np.flatnonzero(np.isin(tables.settings.kind, moving) & (tables.settings.setting > 0))
    late = changed(tables, settings={"begin_s": (rows[:1], tables.settings.begin_s[rows[:1]] + 1e-6)})
    assert "setting_late" in rules(late)


def test_a_change_while_light_passes():
    """A gate of RAMP shuts in the middle of a slot."""
    tables = tables_of("ramp")
    s, d = tables.settings, tables.data
    gate = int(np.flatnonzero((s.setting == 1) & (s.begin_s == d.from_s.min()))[0])
    columns = {name: getattr(s, name)[[gate]] for name in s.KINDS}
    shut = DeviceTable.of(**{**columns, "begin_s": [d.until_s.min() / 2 + s.begin_s[gate] / 2], "setting": [0]})
    more = DeviceTable.joined([s, shut])
    assert {"light_missing", "off_slot"} <= rules(dataclasses.replace(tables, settings=more))


@pytest.mark.parametrize("system", ["ramp", "ramp_tuned", "ramp_crossbar", "terarack", "lightpath"])
def test_a_missing_change(system):
    """No single row of the first round can be left out without a difference."""
    tables = tables_of(system)
    s = tables.settings
    first = np.flatnonzero((s.begin_s == s.begin_s.min()) & (s.setting != 0))
    for row in first[:: max(len(first) // 5, 1)]:
        kept = s.take(np.arange(len(s)) != row)
        assert rules(dataclasses.replace(tables, settings=kept)) & {"light_missing", "light_wrong", "light_stray"}


def test_a_missing_change_of_a_switch_that_is_set_once():
    """ODDL."""
    tables = tables_of("oddl")
    netlist, s = tables.fabric.netlist(), tables.settings
    rows = [i for i in range(len(s)) if netlist.groups[int(s.kind[i])].once_per_job]
    for row in rows[::5]:
        assert "light_missing" in rules(dataclasses.replace(tables, settings=s.take(np.arange(len(s)) != row)))


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_wrong_wavelength(system):
    """Of a photodiode that listens, or of a transmitter."""
    tables = tables_of(system)
    d, w = tables.data, tables.fabric.netlist().num_wavelengths
    for sends in (True, False):
        row = np.flatnonzero(d.sends == sends)[:1]
        wrong = changed(tables, data={"wavelength": (row, (d.wavelength[row] + 1) % w)})
        assert rules(wrong) & {"light_wrong", "light_missing", "light_collided", "data_overlap"}


@pytest.mark.parametrize(
    ("group", "column", "change", "names"),
    [
        ("switch", "begin_s", lambda v: v + 1e-9, "setting_late"),
        ("switch", "begin_s", lambda v: v - 1e-6, "set_in_flight|setting_late|is not a time"),
        ("switch", "step", lambda v: v + 1, "off_slot"),
        ("switch", "kind", lambda v: v - 1, "fibre_up has no states"),
        ("switch", "device", lambda v: 1 - v, "setting_clash"),
        ("switch", "index", lambda v: v ^ 1, "setting_clash"),
        ("switch", "setting", lambda v: v ^ 1, "light_missing"),
        ("interface", "begin_s", lambda v: v + 1e-9, "setting_late|light_missing"),
        ("interface", "begin_s", lambda v: v - 1.1e-5, "light_missing|is not a time"),
        ("interface", "step", lambda v: v + 1, "off_slot"),
        ("interface", "kind", lambda v: v - 1, "fibre_down has no states"),
        ("interface", "device", lambda v: (v + 1) % 8, "light_missing|setting_clash"),
        ("interface", "index", lambda v: v ^ 1, "light_missing|setting_clash"),
        ("interface", "setting", lambda v: -1 if v >= 0 else 0, "light_missing"),
        ("data", "from_s", lambda v: v + 1e-9, "window_differs|light_missing|light_stray"),
        ("data", "until_s", lambda v: v + 1e-9, "window_differs|ready_early|ready_wrong"),
        ("data", "ready_s", lambda v: v + 1e-9, "ready_wrong"),
        ("data", "step", lambda v: v + 1, "chunks_differ"),
        ("data", "kind", lambda v: 1 - v, "but in ocs only"),
        ("data", "device", lambda v: (v + 2) % 16, "light_missing"),
        ("data", "wavelength", lambda v: v + 300, "light_missing"),
        ("data", "sends", np.logical_not, "but in ocs only"),
        ("data", "op", lambda v: 1 - v, "op_differs"),
        ("data", "chunk_lo", lambda v: v ^ 1, "chunks_differ|ends beyond the"),
        ("data", "chunk_n", lambda v: v + 1, "chunks_differ|ends beyond the"),
        ("data", "parts", lambda v: v + 1, "chunks_differ"),
        ("data", "share", lambda v: 1 - v, "chunks_differ|data_overlap"),
        ("data", "shares", lambda v: v + 1, "chunks_differ"),
    ],
)
def test_every_field_of_circuit_switches(group, column, change, names):
    """One row of the tables of an `ocs` is another, each of ten or so: the rule is named, or the row."""
    tables = tables_of("ocs_held")
    table = "data" if group == "data" else "settings"
    rows = getattr(tables, table)
    of_group = np.isin(rows.kind, [] if group == "data" else [tables.fabric.netlist().position[group]])
    which = np.flatnonzero(of_group | (group == "data"))
    for row in which[:: max(1, len(which) // 10)].tolist():
        value = change(getattr(rows, column)[row])
        wrong = changed(tables, total_s=2 * tables.total_s, **{table: {column: (row, value)}})
        assert re.search(names, named(wrong)), (row, named(wrong))


def named(tables):
    """Rules that tables break, or why they are not judged."""
    try:
        return ", ".join(rules(tables))
    except ParameterError as error:
        return str(error)


@pytest.mark.parametrize("system", ["ocs", "ocs_held", "ocs_any", "oddl", "sipac"])
def test_data_that_leave_faster_than_light_carries_them(system):
    """All rows last a tenth of their time."""
    tables = tables_of(system)
    d = tables.data
    faster = changed(tables, data={"until_s": (slice(None), d.from_s + (d.until_s - d.from_s) / 10)})
    one = next(one for one in check_tables(faster).violations if one.rule == "rate_exceeded")
    assert one.expected.startswith("at most ")


def test_interfaces_keep_to_their_plane():
    """Data that a node sends on by another plane are refused where it forwards on the same plane alone."""
    tables = tables_of("ocs_any")
    assert check_tables(tables).ok
    where = opticcl.fabric("ocs:nodes=10,planes=2")
    assert "light_missing" in rules(dataclasses.replace(tables, fabric=where))


@pytest.mark.parametrize("name", ["laser", "receiver"])
def test_a_wrong_partner(name):
    """ODDL's laser is tuned to other wavelengths, or its receiver to another node; or one of them is not set at all."""
    tables = tables_of("oddl")
    s = tables.settings
    rows = np.flatnonzero((s.kind == tables.fabric.netlist().position[name]) & (s.setting >= 0))
    for row in rows[:: max(len(rows) // 4, 1)]:
        assert rules(changed(tables, settings={"setting": ([row], s.setting[row] ^ 1)})) == {"control_wrong"}
        assert rules(dataclasses.replace(tables, settings=s.take(np.arange(len(s)) != row))) == {"control_wrong"}


def with_setting(tables, group, number, index, value, from_s, slot=-1):
    """The tables with one more change of a device."""
    s = tables.settings
    one = DeviceTable.of(
        begin_s=[from_s], step=[slot], kind=[tables.fabric.netlist().position[group]], device=[number], index=[index],
        setting=[value],
    )  # fmt: skip
    more = DeviceTable.joined([s, one])
    return dataclasses.replace(tables, settings=more)


def test_a_ring_that_begins_to_drop_what_passes():
    """TeraRack: the change begins while light passes and is done after it has gone."""
    tables = tables_of("terarack")
    d = tables.data
    ports, w = tables.fabric.ports_per_node, tables.fabric.wavelengths
    first = np.flatnonzero(d.sends & (d.from_s == d.from_s.min()))
    mates = match_data(tables)
    for row in first:
        receiver = np.flatnonzero(mates == row)[0]
        node, port = divmod(int(d.device[row]), ports)
        next_node = (node + 1 - 2 * (port % 2)) % tables.fabric.nodes
        if d.device[receiver] // w // ports != next_node:
            middle = (d.from_s[row] + d.until_s[row]) / 2
            passing = next_node * ports + port
            found = rules(with_setting(tables, "drop", passing, int(d.wavelength[row]), 1, middle))
            assert "set_in_flight" in found
            return
    raise AssertionError("no circuit passes a node")


def test_a_gate_that_lets_another_sender_in():
    """RAMP: a second open gate towards a subnet joins its light with what a receiver listens to."""
    tables = tables_of("ramp", "all_to_all")
    begin = float(tables.settings.begin_s.min())
    more = with_setting(tables, "tx_gate", 1, 0, 1, begin, round(begin / tables.fabric.slot_s))
    assert rules(more) == {"light_collided"}


def test_a_line_of_a_comb_without_data():
    """SiPAC: the transmitter sends nothing, and its comb shines on."""
    tables = tables_of("sipac")
    d = tables.data
    kept = d.take(np.arange(len(d)) != np.flatnonzero(d.sends)[0])
    assert "light_wrong" in rules(dataclasses.replace(tables, data=kept))


def test_light_that_goes_round():
    """LIGHTPATH: tiles 1, 4 and 3 hand the light of tile 0 on, and tile 0 sends it round again."""
    tables = tables_of("lightpath", "all_to_all")
    s, w, lines = tables.settings, tables.fabric.waveguides, tables.fabric.num_wavelengths
    east, west, south, north = (way * w for way in range(4))
    tile = tables.fabric.netlist().position["tile"]
    mine = np.flatnonzero(
        (s.kind == tile) & (s.device == 0) & (s.index >= 4 * w * lines) & (s.setting < east + w) & (s.setting >= 0)
    )
    row = mine[0]
    guide, line = int(s.setting[row]), int(s.index[row]) % lines
    loop = [(1, east, south), (4, south, west), (3, west, north), (0, north, east)]
    added = DeviceTable.of(
        begin_s=[float(s.begin_s[row])] * 4, kind=[tile] * 4, device=[number for number, _, _ in loop],
        index=[(into + guide) * lines + line for _, into, _ in loop], setting=[out + guide for _, _, out in loop],
    )  # fmt: skip
    before = np.isin(s.device * (1 << 30) + s.index, added.device * (1 << 30) + added.index) & (s.kind == tile)
    kept = s.take(~before)
    more = DeviceTable.joined([kept, added])
    found = check_tables(dataclasses.replace(tables, settings=more)).violations
    one = next(violation for violation in found if violation.rule == "light_circulating")
    assert (one.where, one.expected) == ("lightpath", "light that ends")
    assert one.found == "light that comes back to where it was"


def test_a_wrong_wavelength_of_a_laser():
    """The receiver of another device hears it."""
    tables = tables_of("ramp")
    s = tables.settings
    laser = tables.fabric.netlist().position["laser"]
    row = np.flatnonzero((s.kind == laser) & (s.setting >= 0))[:1]
    assert "light_missing" in rules(changed(tables, settings={"setting": (row, (s.setting[row] + 1) % 4)}))


@pytest.mark.parametrize("system", SYSTEMS)
def test_data_that_nobody_receives_and_data_that_nobody_sends(system):
    """A row of a receiver or of a transmitter is missing."""
    tables = tables_of(system)
    d = tables.data
    for sends, rule in ((False, "light_stray"), (True, None)):
        kept = d.take(np.arange(len(d)) != np.flatnonzero(d.sends == sends)[0])
        found = rules(dataclasses.replace(tables, data=kept))
        assert rule in found if rule else found & {"light_missing", "light_wrong"}


def test_data_that_overlaps():
    """Two rows of one transmitter, and of one photodiode."""
    tables = tables_of("oddl")
    d = tables.data
    for sends in (True, False):
        rows = np.flatnonzero(d.sends == sends)
        key = d.device[rows] * 8 + d.wavelength[rows]
        again = rows[np.flatnonzero(key == key[0])][:2]
        assert len(again) == 2
        assert "data_overlap" in rules(changed(tables, data={"until_s": (again[:1], d.from_s[again[1]] + 1e-9)}))


@pytest.mark.parametrize(
    ("rule", "column", "change"),
    [
        ("chunks_differ", "chunk_lo", lambda v: v ^ 1),
        ("chunks_differ", "chunk_n", lambda v: v + 1),
        ("window_differs", "until_s", lambda v: v * 1.5),
        ("window_differs", "from_s", lambda v: v + 1e-9),
        ("ready_early", "ready_s", lambda v: v * 0),
    ],
)
def test_rows_of_a_receiver_that_do_not_fit_the_light(rule, column, change):
    """Other chunks, other times."""
    tables = tables_of("sipac")
    d = tables.data
    fits = ~d.sends & (d.chunk_lo + d.chunk_n < tables.collective.num_chunks)
    row = np.flatnonzero(fits)[:1]
    values = {column: (row, change(getattr(d, column)[row]))}
    if column == "until_s":
        values["ready_s"] = (row, change(d.ready_s[row]))
    assert rule in rules(changed(tables, data=values))


def test_a_share_that_never_comes():
    """One wavelength of a transfer is neither sent nor received."""
    tables = tables_of("sipac")
    d = tables.data
    row = int(np.flatnonzero(~d.sends & (d.shares > 1))[0])
    sender = int(match_data(tables)[row])
    kept = d.take(~np.isin(np.arange(len(d)), [row, sender]))
    assert "share_missing" in rules(dataclasses.replace(tables, data=kept))


@pytest.mark.parametrize("collective", ["all_reduce", "all_to_all", "all_gather"])
def test_a_transfer_that_is_left_out(collective):
    """Light is clean and the result is wrong; the rank, the chunk and the contribution are named."""
    tables = tables_of("oddl", collective)
    d = tables.data
    row = int(np.flatnonzero(~d.sends & (d.from_s == d.from_s.max()))[0])
    mates = match_data(tables)
    same = ~d.sends & (d.from_s == d.from_s[row])
    gone = np.isin(np.arange(len(d)), np.concatenate([np.flatnonzero(same), mates[same]]))
    (found,) = check_tables(dataclasses.replace(tables, data=d.take(~gone))).violations
    assert found.rule == "data_wrong"
    assert "rank" in found.where


def test_an_operation_that_is_another():
    """Data that is stored in place of what was there, where it should be added."""
    tables = tables_of("terarack")
    d = tables.data
    adds = np.flatnonzero(~d.sends & (d.op == 1))
    mates = adds[(d.device[adds] // 8 == d.device[adds[0]] // 8) & (d.from_s[adds] == d.from_s[adds[0]])]
    assert rules(changed(tables, data={"op": (mates, 0)})) == {"data_wrong", "op_differs", "ready_wrong"}


def test_data_that_is_used_before_it_is_there():
    """It is ready only after the next send."""
    tables = tables_of("oddl")
    d = tables.data
    first = np.flatnonzero(~d.sends & (d.from_s == d.from_s.min()))
    late = changed(tables, data={"ready_s": (first, tables.total_s)})
    assert "data_wrong" in rules(late)


def test_data_that_is_overwritten_while_it_leaves():
    """Bytes of a ring that are stored at once, where their chunk is still being sent."""
    plan = opticcl.compile("oddl:shape=2x4", "broadcast", "10 KB")
    tables = TableMaker(plan).tables()
    d = tables.data
    mates = match_data(tables)
    last = int(np.flatnonzero(~d.sends)[np.argmax(d.from_s[~d.sends])])
    send = int(mates[last])
    earlier = np.flatnonzero(~d.sends & (d.ready_s <= d.from_s[send]) & (d.chunk_lo == d.chunk_lo[last]))
    late = changed(tables, data={"ready_s": (earlier, (d.from_s[send] + d.until_s[send]) / 2)})
    assert rules(late) & {"overwritten_before_sent"}


def test_rules_of_times():
    """Slots, the total, two changes at once, a second setting of what is set once."""
    ramp, oddl, terarack = tables_of("ramp"), tables_of("oddl"), tables_of("terarack")
    assert rules(changed(ramp, settings={"step": (slice(0, 1), 7_000)})) == {"off_slot"}
    assert rules(dataclasses.replace(ramp, total_s=ramp.total_s / 2)) == {"total_too_small"}
    s = oddl.settings
    once = [p for p, group in enumerate(oddl.fabric.netlist().groups) if group.once_per_job]
    row = np.flatnonzero(np.isin(s.kind, once))[:1]
    assert "set_again" in rules(changed(oddl, settings={"begin_s": (row, 1e-6)}))
    s = terarack.settings
    both = DeviceTable.joined([s, s.take([0])])
    both.setting[-1] = 1 - both.setting[0]
    assert "setting_clash" in rules(dataclasses.replace(terarack, settings=both))


def test_settings_that_change_nothing_are_counted():
    """They are harmless."""
    tables = tables_of("terarack")
    s = tables.settings
    again = DeviceTable.joined([s, s.take([0])])
    again.begin_s[-1] = tables.total_s
    again.setting[-1] = s.setting[(s.kind == s.kind[0]) & (s.device == s.device[0]) & (s.index == s.index[0])][-1]
    verdict = check_tables(dataclasses.replace(tables, settings=again))
    assert verdict.ok
    assert "1 row of settings change nothing" in verdict.notes


@pytest.mark.parametrize(
    ("table", "column", "value", "message"),
    [
        ("settings", "device", 1 << 20, "does not exist; laser has 0 to 31"),
        ("settings", "device", -1, "does not exist"),
        ("settings", "setting", 99, "value=99; laser has -1 to 3"),
        ("settings", "index", 1, "index=1; laser has 0 to 0"),
        ("settings", "begin_s", np.nan, "from_s=nan is not a time"),
        ("settings", "kind", 1, "modulator has no states"),
        ("data", "until_s", -1.0, "until_s=-1.0 is not a time"),
        ("data", "device", 1 << 40, "does not exist"),
        ("data", "wavelength", 4, "wavelength=4 is none of 0 to 3"),
        ("data", "chunk_n", 1 << 40, "is none of 1 to"),
        ("data", "share", 5, "has a share beyond its shares"),
        ("data", "op", 2, "op=2 is none of the operations of all_reduce"),
        ("data", "kind", 0, "laser sends, but in ramp only modulator does"),
    ],
)
def test_rows_of_what_the_machine_does_not_have(table, column, value, message):
    """The row, the column and what there is."""
    tables = tables_of("ramp")
    with pytest.raises(ParameterError, match=message):
        check_tables(changed(tables, **{table: {column: (slice(0, 1), value)}}))


def test_a_part_of_the_tables_is_not_judged():
    """Light needs all devices."""
    plan = opticcl.compile("oddl:shape=2x4", "all_reduce", "1 KB")
    part = TableMaker(plan, part=TablePart(nodes=(3,))).tables()
    assert {int(n) // 2 for n in part.data.device[part.data.sends]} == {3}
    with pytest.raises(ParameterError, match="a part of the devices"):
        check_tables(part)
    alone = TableMaker(plan, part=TablePart(devices=("laser",))).tables()
    assert len(alone.settings)
    assert not len(alone.data)


def test_empty_tables_carry_nothing():
    """And the collective is wrong."""
    tables = tables_of("sipac")
    assert rules(dataclasses.replace(tables, settings=DeviceTable.empty(), data=DataRows.empty())) == {"data_wrong"}
