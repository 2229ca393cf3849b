"""Programme files: what is read is what was written, and damage is refused with the place."""

import json

import polars as pl
import pytest

import opticcl
from opticcl.errors import OutputError, PlanFileError
from opticcl.formats import programme_file
from opticcl.formats.plan_file import read_plan_file
from opticcl.formats.programme_file import KEY, plan_digest, read_programme_file, write_programme_file

SPECIFICATIONS = ["terarack:nodes=6", "oddl:shape=3x2", "ramp:groups=2,racks=2,wavelengths=2", "lightpath:shape=2x4"]


@pytest.fixture(scope="module")
def plan():
    """A plan whose circuits change."""
    return opticcl.compile("lightpath:shape=2x4", "all_reduce", "1 MB", algorithm="halving_doubling")


def columns_of(programme):
    """Everything that a file holds."""
    record = programme.record()
    return {
        **record,
        "assumptions": {k: v if isinstance(v, float) else str(v) for k, v in record["assumptions"].items()},
    }


@pytest.mark.parametrize("suffix", [".parquet", ".json", ".csv"])
@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_what_is_written_is_read(specification, suffix, tmp_path):
    """By several engines; all tables are equal."""
    plan = opticcl.compile(specification, "all_reduce", "10 KB", algorithm="ring")
    for engine in ("closed_form", "device"):
        written = plan.programme(engine)
        path = tmp_path / f"times{suffix}"
        rows = write_programme_file(path, plan.circuits, written)
        read = read_programme_file(path, plan.circuits)
        assert columns_of(read) == columns_of(written)
        assert rows == sum(len(getattr(written, table)) for table in programme_file.TABLES)


@pytest.mark.parametrize("algorithm", ["ring", "halving_doubling", "lumorph", "mesh"])
def test_a_plan_file_is_the_same_plan(algorithm, tmp_path):
    """So that the programme of a compiled plan times its plan file."""
    plan = opticcl.compile("lightpath:shape=2x4", "all_reduce", "1 MB", algorithm=algorithm)
    plan.save(tmp_path / "plan.parquet")
    assert plan_digest(read_plan_file(tmp_path / "plan.parquet").plan) == plan_digest(plan.circuits)


def test_another_plan_is_refused(plan, tmp_path):
    """By its digest."""
    path = tmp_path / "times.parquet"
    write_programme_file(path, plan.circuits, plan.programme())
    other = opticcl.compile("lightpath:shape=2x4", "all_reduce", "1 MB", algorithm="ring")
    with pytest.raises(PlanFileError, match="is the programme of another plan"):
        read_programme_file(path, other.circuits)


def damaged(path, plan, change):
    """A JSON file of which a part was changed."""
    write_programme_file(path, plan.circuits, plan.programme())
    whole = json.loads(path.read_text("utf-8"))
    change(whole)
    path.write_text(json.dumps(whole), "utf-8")
    return path


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda w: w["header"].update(version=9), "is version 9, this program reads 1 to 1"),
        (lambda w: w["header"].update(format="plan"), "is a 'plan' file, not 'opticcl-programme'"),
        (lambda w: w["header"].update(size_bytes=-1), "size_bytes=-1 is none of 0 to"),
        (lambda w: w["header"].pop("plan"), "missing required field `plan`"),
        (lambda w: w["tables"].pop("data"), "table 'data' must have the columns step, transfer"),
        (lambda w: w["tables"]["data"].pop("step"), "table 'data' must have the columns step, transfer"),
        (lambda w: w["tables"]["data"]["step"].__setitem__(0, None), "data row 0: step is empty"),
        (lambda w: w["tables"]["circuits"]["start_s"].__setitem__(1, None), "circuits row 1: start_s is empty"),
        (
            lambda w: w["tables"]["circuits"]["row"].__setitem__(1, 2**40),
            "circuits row 1: row=1099511627776 is out of range",
        ),
        (lambda w: w["tables"]["circuits"]["row"].__setitem__(1, "x"), "table 'circuits': "),
        (
            lambda w: w["tables"]["circuits"]["start_s"].__setitem__(1, "x"),
            "table 'circuits': row 1: start_s=x is not a number",
        ),
        (lambda w: w["tables"]["circuits"]["row"].pop(), "table 'circuits': "),
        (lambda w: w.pop("tables"), "is JSON, but not an object of header and tables"),
    ],
)
def test_damage_is_named(plan, tmp_path, change, reason):
    """Header, table, column and row."""
    with pytest.raises(PlanFileError, match=reason):
        read_programme_file(damaged(tmp_path / "times.json", plan, change), plan.circuits)


def test_what_is_no_programme_is_refused(plan, tmp_path, monkeypatch):
    """Other files, other tables, too many rows."""
    path = tmp_path / "times.parquet"
    with pytest.raises(PlanFileError, match="there is no such file"):
        read_programme_file(path, plan.circuits)
    path.write_bytes(b"PAR1")
    with pytest.raises(PlanFileError, match="cannot be read as a programme"):
        read_programme_file(path, plan.circuits)
    plan.save(path)
    with pytest.raises(PlanFileError, match="without the header of a programme"):
        read_programme_file(path, plan.circuits)
    with pytest.raises(PlanFileError, match="a programme file ends in"):
        read_programme_file(tmp_path / "times.txt", plan.circuits)
    write_programme_file(path, plan.circuits, plan.programme())
    header = pl.read_parquet_metadata(path)[KEY]
    rows = pl.read_parquet(path)
    odd = rows.with_columns(table=pl.when(pl.int_range(pl.len()) == 3).then(pl.lit("light")).otherwise("table"))
    for frame, reason in (
        (odd, "row 3: table='light' is none of runs, circuits, data, devices, control"),
        (rows.drop("arrived_s"), "column 'arrived_s' is missing"),
        (rows.with_columns(pl.col("row").cast(pl.Float64)), "circuits: column 'row' holds Float64, not int32"),
    ):
        frame.lazy().sink_parquet(path, metadata={KEY: header})
        with pytest.raises(PlanFileError, match=reason):
            read_programme_file(path, plan.circuits)
    monkeypatch.setattr(programme_file, "MOST_ROWS", 5)
    with pytest.raises(PlanFileError, match="rows are more than 5"):
        read_programme_file(path, plan.circuits)
    with pytest.raises(OutputError, match="rows are more than 5"):
        write_programme_file(path, plan.circuits, plan.programme())
    with pytest.raises(OutputError, match="a programme file ends in"):
        write_programme_file(tmp_path / "times.txt", plan.circuits, plan.programme())


def in_csv(folder, plan, file, change):
    """A folder of CSV of which a file was changed."""
    write_programme_file(folder, plan.circuits, plan.programme())
    text = (folder / file).read_text("utf-8")
    (folder / file).write_text(change(text), "utf-8")
    return folder


@pytest.mark.parametrize(
    ("file", "change", "reason"),
    [
        ("header.json", lambda text: text.replace('"version":1', '"version":9'), "is version 9"),
        ("header.json", lambda text: "[" * 5000, "its header is not opticcl-programme"),
        ("header.json", lambda text: " " * 2**21, "is larger than 1,048,576 bytes"),
        (
            "data.csv",
            lambda text: text.replace("arrived_s", "arrived"),
            "data.csv: its first line is 'step,transfer,arrived,",
        ),
        ("data.csv", lambda text: "", "data.csv: its first line is ''"),
        ("circuits.csv", lambda text: text.replace("\n0,0,0,", "\n0,0,x,", 1), "circuits.csv: could not parse"),
        ("circuits.csv", lambda text: text.replace("\n0,0,0,", "\n,0,0,", 1), "circuits row 0: step is empty"),
        (
            "circuits.csv",
            lambda text: text.replace("\n0,0,0,", f"\n{2**40},0,0,", 1),
            f"circuits row 0: step={2**40} is out",
        ),
        ("devices.csv", lambda text: text + "1,2,3\n", "devices row"),
    ],
)
def test_damage_in_csv_is_named(plan, tmp_path, file, change, reason):
    """File, column and row."""
    with pytest.raises(PlanFileError, match=reason):
        read_programme_file(in_csv(tmp_path / "times.csv", plan, file, change), plan.circuits)


def test_folders_of_csv(plan, tmp_path, monkeypatch):
    """One with other files is not replaced; a missing file, a file in place of the folder and too many rows are refused."""
    path, times = tmp_path / "times.csv", plan.programme()
    for _ in range(2):  # the second replaces the first
        write_programme_file(path, plan.circuits, times)
    assert [p.name for p in tmp_path.iterdir()] == ["times.csv"]
    assert len(list(path.iterdir())) == 1 + len(programme_file.TABLES)
    (path / "control.csv").unlink()
    with pytest.raises(PlanFileError, match=r"control\.csv: there is no such file"):
        read_programme_file(path, plan.circuits)
    write_programme_file(path, plan.circuits, times)
    (path / "notes.txt").write_text("mine", "utf-8")
    with pytest.raises(OutputError, match=r"holds other files, such as notes\.txt"):
        write_programme_file(path, plan.circuits, times)
    assert (path / "notes.txt").read_text("utf-8") == "mine"
    (tmp_path / "file.csv").write_text("", "utf-8")
    with pytest.raises(OutputError, match="it is not a directory"):
        write_programme_file(tmp_path / "file.csv", plan.circuits, times)
    with pytest.raises(PlanFileError, match="is a directory; this is a file"):
        read_programme_file(tmp_path / "file.csv", plan.circuits)
    with pytest.raises(OutputError, match="cannot write"):
        write_programme_file(tmp_path / "absent" / "times.csv", plan.circuits, times)
    monkeypatch.setattr(programme_file, "MOST_ROWS", 5)
    with pytest.raises(PlanFileError, match="more than 5 rows"):
        read_programme_file(path, plan.circuits)
