"""The judge of device tables on machines of two to four nodes: exact words, rows and times of what it refuses, and edges."""

import dataclasses
from functools import cache

import numpy as np
import pytest

import opticcl
from opticcl.errors import ParameterError
from opticcl.ir.programme import DeviceTable
from opticcl.plans.tables import TableMaker
from opticcl.verify.tables.devices import check_tables

SYSTEMS = {
    "oddl": "oddl:shape=2",
    "terarack": "terarack:nodes=3,wavelengths=2",
    "ramp": "ramp:groups=2,racks=1,wavelengths=2",
}


@cache
def tables_of(system):
    """Of an all_gather of 1 KB."""
    return TableMaker(opticcl.compile(SYSTEMS[system], "all_gather", "1 KB")).tables()


def changed(tables, settings=(), data=(), **header):
    """The tables with other values: (column, row, value)."""

    def with_values(rows, changes):
        columns = {name: getattr(rows, name).copy() for name in rows.KINDS}
        for name, row, value in changes:
            columns[name][row] = value
        return type(rows)(**columns)

    both = {"settings": with_values(tables.settings, settings), "data": with_values(tables.data, data)}
    return dataclasses.replace(tables, **both, **header)


def with_row(tables, **values):
    """The tables with one more row of settings, as the first one but for some values."""
    s = tables.settings
    one = DeviceTable.of(**{name: [values.get(name, getattr(s, name)[0])] for name in s.KINDS})
    more = DeviceTable.joined([s, one])
    return dataclasses.replace(tables, settings=more)


def found(tables):
    """Violations by rule."""
    return {one.rule: one for one in check_tables(tables).violations}


@pytest.mark.parametrize("system", SYSTEMS)
def test_notes(system):
    """A right verdict says what was followed, a wrong one what was not."""
    tables = tables_of(system)
    verdict = check_tables(tables)
    assert verdict.ok
    assert verdict.notes == (f"all_gather of {tables.collective.num_ranks} ranks: every chunk followed",)
    wrong = check_tables(changed(tables, data=[("ready_s", np.flatnonzero(~tables.data.sends)[0], 0.0)]))
    assert [one.rule for one in wrong.violations] == ["ready_early"]
    assert wrong.notes == ("what arrives was not added up, since light or settings are wrong",)


def test_progress_and_moments():
    """One call for each time at which light is followed; what does not change is followed again."""
    seen = []
    tables = tables_of("ramp")
    verdict = check_tables(tables, progress=lambda *given: seen.append(given))
    assert verdict.moments == len(seen) == len(np.unique(tables.data.from_s))
    assert seen[0][0] == "follow the light"


@pytest.mark.parametrize(("later", "clash"), [(4e-6, True), (4.95e-6, True), (5e-6, False), (6e-6, False)])
def test_changes_of_a_device_follow_each_other(later, clash):
    """The next one begins no earlier than the one before is done."""
    tables = tables_of("oddl")
    before = with_row(tables, kind=1, device=0, index=0, setting=0, begin_s=1e-5 - later)
    assert ("setting_clash" in found(before)) == clash
    if clash:
        one = found(before)["setting_clash"]
        assert one.at_s == pytest.approx(1e-5)
        assert one.where.startswith("laser:0")
        assert one.expected.startswith("one change at a time; the one to 0 is done at ")
        assert (one.found, one.count) == ("a change to 1", 1)


def test_two_changes_at_once_of_what_takes_no_time():
    """A device has one setting at a time, whatever the order of the rows; RAMP's take no time at all."""
    tables = tables_of("ramp")
    twice = with_row(tables, setting=0)
    assert found(twice)["setting_clash"].count == 1
    s = twice.settings
    assert found(dataclasses.replace(twice, settings=s.take(np.arange(len(s))[::-1])))["setting_clash"].count == 1


def test_rows_of_data_follow_each_other():
    """In the order of their times, and each in a slot of RAMP."""
    tables = tables_of("ramp")
    d = tables.data
    assert "off_slot" in found(changed(tables, data=[("from_s", slice(None), d.from_s + tables.fabric.slot_s / 3)]))
    reverse = d.take(np.arange(len(d))[::-1])
    assert check_tables(dataclasses.replace(tables, data=reverse)).ok


@pytest.mark.parametrize("column", ["until_s", "ready_s"])
def test_the_total_is_the_last_event(column):
    """The last bit that leaves, or the last data that is ready."""
    tables = tables_of("oddl")
    last = max(tables.data.until_s.max(), tables.data.ready_s.max())
    assert check_tables(dataclasses.replace(tables, total_s=last)).ok
    wrong = found(changed(tables, data=[("ready_s", 0, 3 * last)]))["total_too_small"]
    assert wrong.at_s == 3 * last
    none = changed(tables, data=[(column, slice(None), tables.data.from_s)], total_s=tables.data.from_s.max())
    assert "total_too_small" in found(none)


NO_TIME = dict.fromkeys(("from_s", "until_s", "ready_s"), "is not a time from 0 on")
WORDS = {**NO_TIME, "begin_s": "from_s=.* is not a time from 0 on", "device": "does not exist"}


@pytest.mark.parametrize(
    ("system", "table", "column", "lowest", "highest"),
    [
        ("oddl", "settings", "index", 0, 3),
        ("oddl", "settings", "device", 0, 0),
        ("ramp", "settings", "begin_s", 0.0, 1e300),
        ("ramp", "data", "wavelength", 0, 1),
        ("ramp", "data", "op", None, 3),
        ("ramp", "data", "chunk_lo", 0, 3),
        ("ramp", "data", "chunk_n", 1, 4),
        ("ramp", "data", "parts", 1, 4),
        ("ramp", "data", "shares", 1, 1 << 20),
        ("ramp", "data", "share", 0, 1 << 20),
        ("ramp", "data", "from_s", 0.0, 1e300),
        ("ramp", "data", "until_s", 0.0, 1e300),
        ("ramp", "data", "ready_s", 0.0, 1e300),
    ],
)
def test_lowest_and_highest_values(system, table, column, lowest, highest):
    """The row is named; values at the edge are not refused as values."""
    tables = tables_of(system)
    expected = rf"^{table} row 1: .*" + WORDS.get(column, rf"{column}=")
    beyond = [] if lowest is None else [lowest - 1]
    beyond += [np.nan, np.inf] if highest == 1e300 else [highest + 1]
    for value in beyond:
        with pytest.raises(ParameterError, match=expected):
            check_tables(changed(tables, **{table: [(column, 1, value)]}))
    for value in (lowest, highest):
        said = "" if value is None else refusal(changed(tables, **{table: [(column, 1, value)]}))
        assert not any(words in said for words in (f"{column}={value} is none", f"{column}={value};", *WORDS.values()))


def refusal(tables):
    """What is said where tables are not judged at all."""
    try:
        check_tables(tables)
    except ParameterError as error:
        return str(error)
    return ""


NODE_0, BEHIND = "photodiode:0 (node 0 NIC 0 wavelength 0), wavelength 0", "transmitter:1 (node 1 NIC 0), wavelength 0"
STRAY, DARK = "photodiode of node 0 NIC 0 wavelength 0", "darkness"
CHUNK = f"chunk 1 of {BEHIND}"


@pytest.mark.parametrize(
    ("kept", "data", "expected"),
    [
        ((), [("chunk_lo", 3, 0)], ("chunks_differ", NODE_0, "chunk 0", CHUNK)),
        ((), [("parts", 3, 2)], ("chunks_differ", NODE_0, "chunk 1", CHUNK)),
        ((), [("shares", 3, 2)], ("chunks_differ", NODE_0, "share 0 of 2 of chunk 1", CHUNK)),
        (
            (),
            [("shares", [1, 3], 2), ("share", 3, 1)],
            ("chunks_differ", NODE_0, "share 1 of 2 of chunk 1", f"share 0 of 2 of {CHUNK}"),
        ),
        (
            (),
            [("chunk_lo", 3, 0), ("chunk_n", 3, 2)],
            ("chunks_differ", NODE_0, "chunks 0 to 1", CHUNK),
        ),
        (
            (),
            [("until_s", 3, 2e-5), ("ready_s", 3, 3e-5)],
            ("window_differs", NODE_0, "light from 15 us to 20 us", "light from 15 us to 15.05 us"),
        ),
        ((3,), [], ("light_stray", STRAY, "no data", CHUNK)),
        ((1,), [], ("light_missing", NODE_0, "chunk 1, its light alone", DARK)),
    ],
)
def test_light_that_does_not_fit_its_row(kept, data, expected):
    """Two nodes that send each other one chunk: of each rule where, what is expected, what is found, and once."""
    tables = tables_of("oddl")
    tables = changed(tables, data=data, total_s=1.0)
    rows = tables.data.take(~np.isin(np.arange(4), kept))
    (one,) = check_tables(dataclasses.replace(tables, data=rows)).violations
    assert (one.rule, one.where, one.expected, one.found) == expected
    assert (one.at_s, one.count) == (tables.data.from_s[0], 1)


@pytest.mark.parametrize(
    ("changes", "rule", "where", "expected", "got"),
    [
        ([("setting", 4, 0)], "control_wrong", "laser:0", 1, "setting 0"),
        ([("setting", 6, 0)], "control_wrong", "receiver:0", 1, "setting 0"),
        ([("begin_s", 4, 1.1e-5)], "setting_late", "laser:0", 1, "a change from -1"),
        ([("begin_s", 7, 1.1e-5)], "setting_late", "receiver:1", 0, "a change from -1"),
        ([("begin_s", 7, 1.0), ("begin_s", 6, 1.0)], "control_wrong", "receiver:1", 0, "setting -1"),
    ],
)
def test_controls_that_are_not_as_the_data_needs(changes, rule, where, expected, got):
    """Lasers and receivers of two nodes."""
    one = found(changed(tables_of("oddl"), settings=changes))[rule]
    assert (one.where.split(" ")[0], one.expected, one.found) == (where, f"setting {expected}", got)
    assert one.count == len(changes)


def test_light_on_another_wavelength():
    """Its wavelength is named, and what was expected."""
    (one,) = check_tables(changed(tables_of("terarack"), data=[("wavelength", 13, 0)])).violations
    assert (one.rule, one.expected, one.found, one.count) == (
        "light_wrong", "a signal on wavelength 0", "wavelength 1", 1
    )  # fmt: skip
    assert one.where == "photodiode:11 (node 2 port 1 wavelength 1), wavelength 0"


@pytest.mark.parametrize(
    ("rule", "kept", "data"),
    [
        ("light_stray", (2, 3), []),
        ("light_missing", (0, 1), []),
        ("chunks_differ", (), [("parts", [2, 3], 2)]),
        ("window_differs", (), [("until_s", [2, 3], 2e-5), ("ready_s", [2, 3], 3e-5)]),
    ],
)
def test_rows_that_break_one_rule_at_once(rule, kept, data):
    """Both nodes are counted."""
    tables = changed(tables_of("oddl"), data=data, total_s=1.0)
    rows = tables.data.take(~np.isin(np.arange(4), kept))
    assert found(dataclasses.replace(tables, data=rows))[rule].count == 2


@pytest.mark.parametrize(
    ("table", "changes", "says"),
    [
        ("data", [("chunk_lo", 2, 1), ("chunk_n", 2, 2)], "data row 2: ends beyond the 2 chunks"),
        ("data", [("share", 2, 1)], "data row 2: has a share beyond its shares"),
        ("data", [("until_s", 2, 0.0)], "data row 2: has until_s before from_s"),
        ("data", [("op", 2, 2)], "data row 2: op=2 is none of the operations of all_gather"),
        ("settings", [("setting", 4, -2)], "settings row 4: value=-2; laser has"),
        ("settings", [("setting", 4, (1 << 40) + 1)], f"settings row 4: value={(1 << 40) + 1}; laser has"),
        ("settings", [("setting", 4, 1 << 40)], ""),
        *(
            ("settings", [("kind", 5, group)], f"settings row 5: {name} has no states that can be set")
            for group, name in ((0, "transmitter"), (3, "fibre_up"), (7, "photodiode"))
        ),
    ],
)
def test_rows_that_no_machine_has(table, changes, says):
    """The row and what it says; the largest setting of a control is one."""
    said = refusal(changed(tables_of("oddl"), **{table: changes}))
    assert says in said
    assert bool(says) == bool(said)


@pytest.mark.parametrize(("op", "wrong"), [(0, False), (1, True), (2, False), (3, True)])
def test_operations_of_what_stays_apart(op, wrong):
    """Chunks of an all_to_all are never added."""
    tables = TableMaker(opticcl.compile("oddl:shape=2", "all_to_all", "1 KB")).tables()
    said = refusal(changed(tables, data=[("op", 0, op)]))
    assert (f"op={op} is none of the operations of all_to_all" in said) == wrong


def test_data_of_a_node_outside_of_the_job():
    """A job of two nodes of three."""
    tables = TableMaker(opticcl.compile("oddl:shape=3", "all_gather", "1 KB", nodes=[0, 1])).tables()
    assert refusal(changed(tables, data=[("device", 0, 2)])) == "data row 0: its device is on no node of the job"


def test_a_second_setting_of_what_is_set_once():
    """At the same time as the first; and a second change at a later time of what takes no time."""
    again = found(with_row(tables_of("oddl"), setting=0))
    assert again["set_again"].count == 1
    tables = tables_of("ramp")
    late = int(np.argmax(tables.settings.begin_s))
    row = {name: getattr(tables.settings, name)[late] for name in tables.settings.KINDS}
    assert row["begin_s"] > 0
    assert "setting_clash" in found(with_row(tables, **row))


def test_overlapping_data_is_named_with_its_times():
    """The second of two rows of a transmitter begins before the first has ended."""
    tables = tables_of("ramp")
    d = tables.data
    assert check_tables(tables_of("oddl")).moments == 1
    first = int(np.flatnonzero(d.sends)[0])
    second = int(np.flatnonzero(d.sends & (d.device == d.device[first]) & (d.from_s > d.from_s[first]))[0])
    one = found(changed(tables, data=[("until_s", first, d.until_s[second])]))["data_overlap"]
    assert (one.at_s, one.found, one.count) == (d.from_s[second], f"chunk {d.chunk_lo[second]}", 1)
    assert one.expected.endswith(f"the end of chunk {d.chunk_lo[first]}")


def test_a_late_ring_is_named():
    """The device that changes, from what to what, and what is not received meanwhile."""
    tables = tables_of("terarack")
    drop = int(np.flatnonzero((tables.settings.kind == 3) & (tables.settings.setting == 1))[-1])
    number = tables.settings.device[drop]
    one = found(changed(tables, settings=[("begin_s", drop, tables.settings.begin_s[drop] + 1e-6)]))["setting_late"]
    assert one.where.startswith(f"drop:{number} (")
    assert " index " in one.where
    assert one.found.startswith("a change from 0 to 1, one of 1: ")
    assert "its light alone" in one.found or "a signal" in one.found


def test_wavelengths_of_a_laser():
    """What ODDL's laser is set to names its first wavelength and how many there are: 1 and 1 of 2."""
    tables = TableMaker(opticcl.compile("oddl:shape=4", "all_to_all", "1 KB")).tables()
    d = tables.data
    row = int(np.flatnonzero(d.sends & (d.from_s == d.from_s.min()))[0])
    same = np.flatnonzero(d.sends & (d.from_s == d.from_s[row]) & (d.device == d.device[row]))
    one = found(changed(tables, data=[("wavelength", same, 1)]))["control_wrong"]
    assert one.where.startswith("laser:")
    assert one.expected == f"setting {1 * (2 + 1) + len(same)}"


def test_all_wavelengths_that_are_wrong_are_counted():
    """Photodiodes that listen to the other wavelength."""
    tables = tables_of("terarack")
    rows = np.flatnonzero(~tables.data.sends)[:4]
    wrong = changed(tables, data=[("wavelength", rows, 1 - tables.data.wavelength[rows])])
    assert found(wrong)["light_wrong"].count == 4
