"""Directories of device tables: what is written comes back, whole or not at all; damaged ones are refused in one line."""

import json
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import opticcl
from opticcl.errors import OutputError, ParameterError, PlanFileError, UnsupportedError
from opticcl.formats import table_files
from opticcl.formats.table_files import read_tables
from opticcl.optics.values import optics
from opticcl.plans.tables import TableMaker, TablePart
from opticcl.verify.tables.devices import check_tables

FILES = {"settings.parquet", "data.parquet", "settings.csv", "data.csv", "devices.json", "README.txt"}


@pytest.fixture(scope="module")
def maker():
    """Of an all_reduce on eight nodes."""
    return TableMaker(opticcl.compile("terarack:nodes=8,wavelengths=4", "all_reduce", "10 KB", algorithm="wrht"))


@pytest.fixture
def folder(maker, tmp_path):
    """Written tables."""
    maker.write(tmp_path / "tables")
    return tmp_path / "tables"


def edited(folder, change):
    """Change the header."""
    header = json.loads((folder / "devices.json").read_text())
    change(header)
    (folder / "devices.json").write_text(json.dumps(header))


@pytest.mark.parametrize(
    "fabric", ["ramp:groups=2,racks=2,wavelengths=4", "oddl:shape=2x4", "sipac:radix=4,levels=2,wavelengths=8"]
)
def test_what_is_written_comes_back(fabric, tmp_path):
    """Every row of both tables."""
    maker = TableMaker(opticcl.compile(fabric, "all_to_all", "10 KB"))
    settings, data = maker.write(tmp_path / "new")
    made, read = maker.tables(), read_tables(tmp_path / "new")
    assert (settings, data) == (len(made.settings), len(made.data))
    assert read.settings == made.settings
    assert read.data == made.data
    assert (read.fabric, read.collective, read.total_s, read.whole) == (
        made.fabric,
        made.collective,
        made.total_s,
        True,
    )
    own = {"nic.bin"} if fabric.startswith("ramp") else set()
    assert {path.name for path in (tmp_path / "new").iterdir()} == FILES | own


def numbers_of(row, group, num_wavelengths):
    """(index, value) pairs of settings.parquet that a row of settings.csv may stand for, by docs/tables.md."""
    wavelength, given, taken = row["wavelength"], row["input"], row["output"]
    if group.kind == "wss":
        ends = ((given, taken), (group.n_in + taken, given))
        return [(end * num_wavelengths + wavelength, value) for end, value in ends]
    if "tunes" in group.parameters:
        return [(0, -1 if row["state"] == "dark" else wavelength * (num_wavelengths + 1) + row["wavelengths"])]
    by_kind = {
        "laser": (0, -1 if row["state"] == "dark" else wavelength),
        "filter": (0, -1 if row["state"] == "dark" else wavelength),
        "gate": (0, int(row["state"] == "on")),
        "ringbank": (wavelength, int(row["state"] == "on")),
        "mzi": (0, taken),
        "select": (0, given),
        "control": (0, row["from_node"]),
    }
    return [by_kind[group.kind]]


@pytest.mark.parametrize(
    "fabric",
    [
        "ramp:groups=2,racks=2,wavelengths=4", "ramp:groups=2,racks=2,wavelengths=4,subnet=route_switch", "oddl:shape=2x2",
        "terarack:nodes=8,wavelengths=4", "lightpath:shape=2x2,waveguides=4",
        "lightpath:shape=2x2,waveguides=4,switch_unit=waveguide", "sipac:radix=2,levels=2,wavelengths=2",
    ],
)  # fmt: skip
def test_csv_has_the_settings_in_names(fabric, tmp_path, monkeypatch):
    """Each row stands for that of the other file, whose devices it names; written in several parts."""
    monkeypatch.setattr("opticcl.formats.table_files.BATCH", 7)
    maker = TableMaker(opticcl.compile(fabric, "all_reduce", "10 KB"))
    maker.write(tmp_path / "new")
    groups = {group.name: group for group in maker.netlist.groups}
    files = {
        name: [frame(tmp_path / "new" / f"{name}.{suffix}").to_dicts() for suffix, frame in READ]
        for name in ("settings", "data")
    }
    for text, numbers in zip(*files["settings"], strict=True):
        group = groups[numbers["device"]]
        assert (numbers["index"], numbers["value"]) in numbers_of(text, group, maker.netlist.num_wavelengths)
    for text, numbers in (pair for pairs in files.values() for pair in zip(*pairs, strict=True)):
        shared = text.keys() & numbers.keys() - {"slot"}
        assert {name: text[name] for name in shared} == {name: numbers[name] for name in shared}
        node_of = groups[numbers["device"]].node_of
        assert text["node"] == (None if node_of is None else node_of(np.array([numbers["number"]]))[0])
    assert all(
        text["slot"] == (None if row["slot"] < 0 else row["slot"]) for text, row in zip(*files["settings"], strict=True)
    )
    shown = (tmp_path / "new" / "README.txt").read_text()
    for name in ("settings", "data"):
        with (tmp_path / "new" / f"{name}.csv").open() as file:
            assert all(f"\n  {column} " in shown for column in file.readline().strip().split(","))


@pytest.mark.parametrize(
    ("group", "index", "value", "said"),
    [
        ({"kind": "wss", "n_in": 2, "per_wavelength": True}, 3, 1, {"wavelength": 0, "input": 1, "output": 1}),
        ({"kind": "wss", "n_in": 2, "per_wavelength": True}, 8, 0, {"wavelength": 2, "input": 0, "output": 0}),
        ({"kind": "matrix", "n_in": 2}, 1, 3, {"input": 1, "output": 3}),
        ({"kind": "matrix", "n_in": 2}, 2, -1, {"input": -1, "output": 0}),
        ({"kind": "laser"}, 0, 2, {"wavelength": 2}),
        ({"kind": "filter"}, 0, 0, {"wavelength": 0}),
        ({"kind": "filter"}, 0, -1, {"state": "dark"}),
        ({"kind": "gate"}, 0, 1, {"state": "on"}),
        ({"kind": "ringbank", "per_wavelength": True}, 2, 0, {"wavelength": 2, "state": "off"}),
        ({"kind": "relay"}, 2, 1, {"wavelength": 2, "output": 1}),
        ({"kind": "mzi"}, 0, 1, {"output": 1}),
        ({"kind": "select"}, 0, 1, {"input": 1}),
        ({"parameters": {"tunes": 1}}, 0, 9, {"wavelength": 2, "wavelengths": 1}),
        ({"parameters": {"tunes": 1}}, 0, 0, {"wavelength": 0, "wavelengths": 0}),
        ({"parameters": {"tunes": 1}}, 0, -1, {"wavelength": 0, "wavelengths": 0, "state": "dark"}),
        ({"parameters": {"receives": 1}}, 0, 7, {"from_node": 7}),
        ({}, 0, 7, {"setting": 7}),
    ],
)
def test_what_settings_mean(tmp_path, group, index, value, said):
    """Of each kind of device on a machine of three wavelengths, by hand."""
    about = {"name": "part", "kind": "own", "n_in": 1, "per_wavelength": False, "parameters": {}, "node_of": None}
    machine = SimpleNamespace(num_wavelengths=3, groups=[SimpleNamespace(**about | group)])
    cells = {"from_s": 0.5, "slot": -1, "device": "part", "number": 4, "index": index, "value": value}
    pl.DataFrame([cells]).write_parquet(tmp_path / "settings.parquet")
    table_files.write_csv(tmp_path / "settings.parquet", machine, 5)
    names, *rows = (tmp_path / "settings.csv").read_text().splitlines()
    due = {"from_s": 0.5, "device": "part", "number": 4} | said
    assert rows == [",".join(str(due.get(name, "")) for name in names.split(","))]


def test_the_text_beside_the_tables(folder):
    """A part for files, columns and devices each: names in a column, and their texts beside them."""
    text = (folder / "README.txt").read_text()
    parts = text.rstrip("\n").split("\n\n")
    assert parts[0].startswith("Device tables of all_reduce of 10 KB by ")
    assert parts[1] == "All times are seconds in the clock of the sender; counting begins at 0."
    assert parts[2::2] == ["Files", "Columns of settings.csv", "Columns of data.csv", "Devices"]
    heads = [(folder / name).read_text().partition("\n")[0].split(",") for name in ("settings.csv", "data.csv")]
    devices = [one["device"] for one in json.loads((folder / "devices.json").read_text())["devices"]]
    names = [sorted(FILES - {"README.txt"}), *map(sorted, heads), sorted(devices)]
    for due, part in zip(names, parts[3::2], strict=True):
        wide = max(map(len, due))
        rows = [line for line in part.split("\n") if line[2] != " "]
        assert sorted(line.split()[0] for line in rows) == due
        assert all(line[:2] == "  " and line[wide + 2 : wide + 4] == "  " and line[wide + 4] != " " for line in rows)
        more = [line for line in part.split("\n") if line[2] == " "]
        assert all(line[: wide + 4].isspace() and line[wide + 4] != " " for line in more)
        assert max(map(len, part.split("\n"))) <= 100


READ = (("csv", lambda path: pl.read_csv(path, infer_schema_length=None)), ("parquet", pl.read_parquet))


def test_total_is_that_of_the_simulation(maker):
    """Tables and closed form have one clock."""
    assert maker.tables().total_s == pytest.approx(maker.plan.simulate().total_s, rel=1e-9)


def test_nothing_half_written(maker, folder, tmp_path, monkeypatch):
    """A directory that has files is left alone; a failure leaves nothing behind."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(OutputError, match="holds other files"):
        maker.write(folder)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
    rows = maker.data

    def fails(progress):
        yield from list(rows(progress))[:1]
        raise ParameterError("stopped")

    monkeypatch.setattr(maker, "data", fails)
    with pytest.raises(ParameterError, match="stopped"):
        maker.write(tmp_path / "half")
    assert [path.name for path in tmp_path.iterdir()] == ["tables"]


def test_a_part(maker, tmp_path):
    """Some nodes, or some devices; the rest is the same."""
    part = TableMaker(maker.plan, part=TablePart((3, 5), ("add", "drop")))
    part.write(tmp_path / "part")
    read, whole = read_tables(tmp_path / "part"), maker.tables()
    assert not read.whole
    names = [group.name for group in maker.netlist.groups]
    kept = np.isin(whole.settings.kind, [names.index("add"), names.index("drop")])
    kept &= np.isin(whole.settings.device // maker.fabric.ports_per_node, [3, 5])
    assert read.settings == whole.settings.take(kept)
    assert len(read.settings)
    assert not len(read.data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.update(format="other"), "format='other'"),
        (lambda h: h.update(version=3), "version=3"),
        (lambda h: h.update(initial="hot"), "neither 'cold' nor 'warm'"),
        (lambda h: h.update(settings=1 << 40), "tables of up to 16,777,216"),
        (lambda h: h.update(data=3), "devices.json says 3"),
        (lambda h: h.update(total_s=-1.0), "total_s=-1.0"),
        (lambda h: h["plan"].update(fabric="terarack:nodes=9,wavelengths=4"), "8 ranks on 9 nodes"),
        (
            lambda h: h["plan"].update(fabric="terarack:nodes=8,wavelengths=5"),
            "tables of another fabric: 64 photodiode",
        ),
        (lambda h: h["plan"].update(fabric="ideal:nodes=8"), "no netlist"),
        (lambda h: h["plan"].update(fabric="nothing"), "nothing"),
        (lambda h: h["plan"]["collective"].update(num_ranks=1 << 40), "collective.num_ranks"),
        (lambda h: h["devices"][0].update(device="lamp"), "no devices 'lamp'; known: transmitter, add"),
        (lambda h: h.update(more=1), "unknown field"),
        (lambda h: h.pop("total_s"), "missing required field"),
    ],
)
def test_headers_that_are_wrong(folder, change, message):
    """The field, the value and what is allowed."""
    edited(folder, change)
    with pytest.raises(PlanFileError, match=message):
        read_tables(folder)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("settings", lambda f: f.drop("value"), "column 'value' is missing"),
        ("settings", lambda f: f.with_columns(pl.lit("lamp").alias("device")), "row 0: device='lamp' is none of"),
        ("settings", lambda f: f.with_columns(pl.lit(1.5).alias("number")), "column 'number' holds Float64"),
        ("settings", lambda f: f.with_columns(pl.lit(None, pl.Int64).alias("slot")), "row 0: slot is empty"),
        ("settings", lambda f: f.with_columns(pl.lit(5).alias("device")), "column 'device' holds Int32, not words"),
        ("data", lambda f: f.with_columns(pl.lit("emit").alias("action")), "action='emit' is none of send, receive"),
        ("data", lambda f: f.with_columns(pl.lit((1 << 64) - 1, pl.UInt64).alias("chunk_n")), "is out of range"),
    ],
)
def test_tables_that_are_wrong(folder, name, change, message):
    """The file, the row and the column."""
    path = folder / f"{name}.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    with pytest.raises(PlanFileError, match=message):
        read_tables(folder)


def test_tables_of_version_1(folder, maker):
    """They have no steps and state no assumptions: when received data is ready cannot be judged, and the verdict says so."""
    edited(folder, lambda header: header.update(version=1) or header.pop("assumptions"))
    path = folder / "data.parquet"
    pl.read_parquet(path).drop("step").write_parquet(path)
    read = read_tables(folder)
    assert read.assumptions is None
    assert set(read.data.step.tolist()) == {-1}
    for budget in (None, optics(read.fabric.light_path.table, "typical")):
        verdict = check_tables(read, budget=budget)
        assert verdict.ok, str(verdict)
        assert "ready_s of what is received was not judged: devices.json states no assumptions" in verdict.notes
    edited(folder, lambda header: header.update(version=2))
    with pytest.raises(PlanFileError, match="column 'step' is missing"):
        read_tables(folder)


def test_assumptions_that_are_wrong(folder):
    """They are those of times: a value that does not exist is refused, another one makes other times."""
    assert json.loads((folder / "devices.json").read_text())["assumptions"]["endpoint"] == 7e-7
    edited(folder, lambda header: header["assumptions"].update(endpoint=8e-7))
    (wrong,) = check_tables(read_tables(folder)).violations
    assert wrong.rule == "ready_wrong"
    edited(folder, lambda header: header["assumptions"].update(compute="slow"))
    with pytest.raises(ParameterError, match="compute: 'slow' is not one of"):
        check_tables(read_tables(folder))
    edited(folder, lambda header: header.update(assumptions={"latency": "published"}))
    assert {one.rule for one in check_tables(read_tables(folder)).violations} == {"ready_wrong"}


def test_files_that_are_no_tables(folder, tmp_path):
    """Another file, a damaged one, none."""
    with pytest.raises(PlanFileError, match="is not a directory of tables"):
        read_tables(tmp_path / "none")
    (folder / "data.parquet").write_bytes(b"PAR1")
    with pytest.raises(PlanFileError, match="cannot be read as a table"):
        read_tables(folder)
    (folder / "data.parquet").unlink()
    with pytest.raises(PlanFileError, match="there is no such file"):
        read_tables(folder)
    (folder / "devices.json").write_bytes(b"{")
    with pytest.raises(PlanFileError, match="is not opticcl-tables"):
        read_tables(folder)


def test_plans_without_tables(maker):
    """No light, no data, no such node or device, no time for settings."""
    with pytest.raises(UnsupportedError, match="netlists have"):
        TableMaker(opticcl.compile("ideal:nodes=4", "all_reduce", "1 KB"))
    with pytest.raises(UnsupportedError, match="0 bytes carries no data"):
        TableMaker(opticcl.compile("oddl:shape=2x4", "barrier", 0))
    with pytest.raises(ParameterError, match="--node: 99 is not a node of terarack; try 0 to 7"):
        TableMaker(maker.plan, part=TablePart((99,)))
    with pytest.raises(ParameterError, match="known: add, drop, transmitter, photodiode"):
        TableMaker(maker.plan, part=TablePart(devices=("lamp",)))
    warm = TableMaker(maker.plan, opticcl.assumptions.assumptions("common", initial="warm"))
    assert warm.tables().settings.begin_s.min() == 0
    assert warm.tables().total_s < maker.tables().total_s
