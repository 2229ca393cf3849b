"""Plans as files: written whole, read back, judged; damaged ones refused in one line, changed ones by their rule."""

import contextlib
import json
import os
import re
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.small_systems import SYSTEMS

import opticcl
from opticcl.collective import custom_collective
from opticcl.errors import OpticclError, OutputError, ParameterError, PlanFileError, VerificationError
from opticcl.formats import plan_write
from opticcl.formats.device_tables import instructions_of_node
from opticcl.formats.plan_file import write_plan_file
from opticcl.ir import CircuitPlan, Circuits, Op, Schedule, Transfers
from opticcl.plans.plan import read

ENDINGS = ("parquet", "csv", "json")


def plan_of(system, size="1MB"):
    """A small plan of a system."""
    fabric, algorithm = SYSTEMS[system]
    return opticcl.compile(fabric, "all_reduce", size, algorithm=algorithm)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_what_is_written_comes_back(system, ending, tmp_path):
    """Every transfer, circuit and path, and the time that follows from them."""
    plan = plan_of(system)
    written = plan.save(tmp_path / f"plan.{ending}")
    again = opticcl.load(tmp_path / f"plan.{ending}")
    assert again.simulate(assumptions="published").total_s == pytest.approx(
        plan.simulate(assumptions="published").total_s
    )
    assert again.algorithm == plan.algorithm
    repeated = sum(len(steps) - 1 for steps in again.schedule.step_classes())
    assert written == again.verify().circuits - repeated * 8 * (system == "ideal")  # the ring is a run
    for i in range(plan.schedule.num_steps):
        for one, other in zip(plan.circuits.rounds(i), again.circuits.rounds(i), strict=True):
            for column in (
                "src",
                "dst",
                "port",
                "wavelength_lo",
                "wavelength_n",
                "hops",
                "hop_offsets",
                "wavelength_step",
            ):
                assert np.array_equal(getattr(one, column), getattr(other, column)), column


def test_a_plan_file_runs(tmp_path):
    """What was loaded adds real numbers."""
    plan_of("sipac").save(tmp_path / "plan.parquet")
    data = np.arange(16 * 7).reshape(16, 7)
    assert all((r == data.sum(axis=0)).all() for r in opticcl.load(tmp_path / "plan.parquet").execute(data))


@pytest.mark.parametrize("ending", ENDINGS)
def test_owners_and_jobs_come_back(ending, tmp_path):
    """A reduce-scatter with chunks in digit order, and a job on part of a machine."""
    fabric = opticcl.fabric("lightpath", shape=(4, 4))
    plan = opticcl.compile(fabric, "reduce_scatter", "1MB", algorithm="lumorph")
    plan.save(tmp_path / f"a.{ending}")
    assert opticcl.load(tmp_path / f"a.{ending}").verify().ok
    part = opticcl.compile(fabric, "all_reduce", "1MB", algorithm="tree", nodes=[9, 2, 14, 5])
    part.save(tmp_path / f"b.{ending}")
    again = opticcl.load(tmp_path / f"b.{ending}")
    assert again.verify().ok
    assert again.schedule.collective.num_ranks == 4


def test_one_node_has_an_empty_plan_file(tmp_path):
    """N = 1 writes a header and no rows."""
    plan = opticcl.compile("ideal:nodes=1", "all_reduce", "1MB")
    for ending in ENDINGS:
        assert plan.save(tmp_path / f"one.{ending}") == 0
        assert opticcl.load(tmp_path / f"one.{ending}").simulate(assumptions="published").total_s == 0


def apart(path):
    """A plan some of whose transfers carry every third chunk, as a file."""
    plan = opticcl.compile("lightpath:shape=3x3", "all_reduce", "9 KB", algorithm="de_bruijn:steps=4")
    plan.save(path)
    return plan


@pytest.mark.parametrize("ending", ENDINGS)
def test_chunks_that_are_no_neighbours_come_back(ending, tmp_path):
    """In a column that other files do not have; programs that do not know it refuse the version."""
    path = tmp_path / f"plan.{ending}"
    plan = apart(path)
    again = opticcl.load(path)
    for i in range(plan.schedule.num_steps):
        one, other = plan.schedule.step(i), again.schedule.step(i)
        assert (one.chunk_step is None) == (other.chunk_step is None) == (i != 3)
        assert i != 3 or np.array_equal(one.chunk_step, other.chunk_step)
    assert b'"version": 3' in path.read_bytes()
    plan_of("ideal").save(path)
    assert b"chunk_step" not in path.read_bytes()
    assert b'"version": 3' not in path.read_bytes()


@pytest.mark.parametrize(("value", "rule"), [(1, "contribution_missing"), (0, "chunk_unknown"), (4, "chunk_unknown")])
def test_a_changed_distance_of_chunks_is_refused(value, rule, tmp_path):
    """By the judge, not by the reader."""
    path = tmp_path / "plan.csv"
    apart(path)
    lines = path.read_text("utf-8").splitlines()
    cells = lines[-1].split(",")
    at = lines[1].split(",").index("chunk_step")
    assert cells[at] == "3"
    cells[at] = str(value)
    path.write_text("\n".join([*lines[:-1], ",".join(cells)]) + "\n", "utf-8")
    assert rule in {v.rule for v in read(path).verify().violations}


# --- changed by hand ----------------------------------------------------------------------------------------------------


def change(tmp_path, system, row, column, value):
    """Write a CSV plan file, change one cell as a person would, and return the rules that the judge finds broken."""
    path = tmp_path / "plan.csv"
    plan_of(system).save(path, listed=True)
    lines = path.read_text("utf-8").splitlines()
    names = lines[1].split(",")
    cells = lines[2 + row].split(",")
    before = cells[names.index(column)]
    cells[names.index(column)] = str(value(before) if callable(value) else value)
    assert cells[names.index(column)] != before
    lines[2 + row] = ",".join(cells)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    with pytest.raises(VerificationError):
        opticcl.load(path)
    return {v.rule for v in read(path).verify().violations}


@pytest.mark.parametrize(
    ("system", "row", "column", "value", "rule"),
    [
        ("ramp", 0, "port", lambda p: (int(p) + 1) % 4, "transmitter_shared"),
        ("ramp", 0, "wavelength_lo", lambda w: (int(w) + 1) % 8, "wavelength_unheard"),
        ("ramp", 0, "path", "3 3", "path_broken"),
        ("ramp", 0, "path", "3", "path_broken"),
        ("ramp", 5, "port", 99, "port_unknown"),
        ("ramp", 5, "dst", 999, "rank_unknown"),
        ("ramp", 5, "op", 0, "contribution_missing"),
        ("ramp", 5, "op", 9, "operation_unknown"),
        ("ramp", 5, "op", -1, "operation_unknown"),
        ("ramp", 5, "op", 2, "operation_wrong"),
        ("sipac", 1, "wavelength_step", 3, "wavelength_unknown"),
        ("ramp", 5, "chunk_n", 0, "chunk_unknown"),
        ("ramp", 5, "chunk_lo", lambda c: (int(c) + 32) % 128, "contribution_missing"),
        ("ramp", 5, "parts", 2, "size_wrong"),
        ("terarack", 1, "wavelength_lo", 1, "wavelength_clash"),
        ("terarack", 1, "wavelength_lo", 2, "wavelength_unknown"),
        ("terarack", 0, "path", "0", "path_broken"),
        ("sipac", 0, "wavelength_lo", lambda w: int(w) + 1, "wavelength_unheard"),
        ("sipac", 0, "wavelength_step", 0, "wavelength_unknown"),
        ("oddl", 9, "wavelength_lo", lambda w: 1 - int(w), "switch_reset"),
        ("ideal", 0, "chunk_lo", lambda c: (int(c) + 1) % 8, "contribution_missing"),
    ],
)
def test_a_changed_cell_is_refused_by_its_rule(tmp_path, system, row, column, value, rule):
    """One cell changed by hand, and the judge names what that breaks."""
    assert rule in change(tmp_path, system, row, column, value)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("gpus", "a plan of MSCCL\\+\\+: give the XML of MSCCL-tools"),
        ("msccl_type", "of MSCCL-tools: give a topology to --fabric network:file="),
        ("TopologyParams", "an input of TE-CCL: give the schedule"),
        ("traceEvents", "a trace of a job: give it to opticcl trace"),
    ],
)
def test_other_files_in_json_are_named(tmp_path, key, said):
    """With what to do with them."""
    (tmp_path / "plan.json").write_text(f'{{"{key}": []}}')
    with pytest.raises(PlanFileError, match=f"not an object of header and columns; it is {said}"):
        read(tmp_path / "plan.json")


def test_a_missing_row_is_a_missing_contribution(tmp_path):
    """A circuit that nobody lights."""
    path = tmp_path / "plan.csv"
    plan_of("terarack").save(path)
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join(lines[:2] + lines[3:]) + "\n", "utf-8")
    assert {v.rule for v in read(path).verify().violations} == {"contribution_missing"}


def test_rounds_run_together_overfill_a_waveguide(tmp_path):
    """Two rounds of a step written as one."""
    path = tmp_path / "plan.csv"
    plan_of("lightpath").save(path)
    frame = pl.read_csv(path, skip_lines=1)
    header = path.read_text("utf-8").splitlines()[0]
    together = frame.with_columns(pl.lit(0).alias("round"))
    path.write_text(header + "\n" + together.write_csv(), "utf-8")
    assert "waveguide_overfull" in {v.rule for v in read(path).verify().violations}


def test_rows_of_a_transfer_may_stand_apart(tmp_path):
    """Another program may write rows of a round in any order."""
    path = tmp_path / "plan.parquet"
    plan = plan_of("ramp")
    plan.save(path)
    header = pl.read_parquet_metadata(path)["opticcl"]
    frame = pl.read_parquet(path)
    mixed = frame.sample(fraction=1, shuffle=True, seed=1).sort("step", "round", maintain_order=True)
    mixed.write_parquet(path, metadata={"opticcl": header})
    again = opticcl.load(path)
    assert again.simulate(assumptions="published").total_s == pytest.approx(
        plan.simulate(assumptions="published").total_s
    )
    assert again.verify().transfers == plan.verify().transfers


def test_transfers_keep_their_numbers(tmp_path):
    """Whatever the order of the rows: rounds of a step carry transfers out of their order, and rows are shuffled."""
    plan = plan_of("ramp")
    plan.save(path := tmp_path / "plan.parquet")
    header, frame = pl.read_parquet_metadata(path)["opticcl"], pl.read_parquet(path)
    mixed = frame.sample(fraction=1, shuffle=True, seed=1).sort("step", "round", maintain_order=True)
    mixed.write_parquet(path, metadata={"opticcl": header})
    again = opticcl.load(path)
    for step in range(plan.schedule.num_steps):
        assert again.schedule.step(step).src.tolist() == plan.schedule.step(step).src.tolist()
        assert again.schedule.step(step).dst.tolist() == plan.schedule.step(step).dst.tolist()
        rows = mixed.filter(pl.col("step") == step)
        for number, circuits in enumerate(again.circuits.rounds(step)):
            assert circuits.transfer.tolist() == rows.filter(pl.col("round") == number)["transfer"].to_list()


def test_numbers_of_transfers_of_another_program(tmp_path):
    """Gaps are closed; of one number with several contents each is a transfer, in the order of their first rows."""
    opticcl.compile("ideal:nodes=4", "broadcast", "1 MB", algorithm="mesh").save(path := tmp_path / "plan.json")
    whole = json.loads(path.read_text("utf-8"))
    dst = whole["columns"]["dst"] = whole["columns"]["dst"][::-1]
    for numbers, order in (([7, 2, 9], [1, 0, 2]), ([5, 5, 2], [2, 0, 1]), ([5, 5, 5], [0, 1, 2])):
        whole["columns"]["transfer"] = numbers
        path.write_text(json.dumps(whole), "utf-8")
        assert read(path).schedule.step(0).dst.tolist() == [dst[row] for row in order]
    dst[2] = dst[0]
    path.write_text(json.dumps(whole), "utf-8")
    assert read(path).schedule.step(0).dst.tolist() == dst[:2]


# --- damaged or foreign -------------------------------------------------------------------------------------------------


def edit_header(path, **fields):
    """Change fields of a CSV plan file's header."""
    lines = path.read_text("utf-8").splitlines()
    header = json.loads(lines[0][2:]) | fields
    lines[0] = "# " + json.dumps(header)
    path.write_text("\n".join(lines) + "\n", "utf-8")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"version": 6}, "version 6"),
        ({"version": 0}, "version=0"),
        ({"format": "schedule"}, "schedule"),
        ({"fabric": "rampp"}, "did you mean 'ramp'"),
        ({"fabric": "terarack:nodes=15,wavelengths=2,colour=red"}, "colour"),
        ({"fabric": "terarack:nodes=16"}, "15 ranks on 16 nodes"),
        ({"num_steps": 2}, "step 2 is none of 0 to 1"),
        ({"num_steps": 2_000_000_000}, "num_steps=2,000,000,000, but a file of"),
        ({"size_bytes": 2**61}, "2**60"),
        (
            {"collective": {"name": "all_reduce", "num_ranks": 15, "num_chunks": 2_000_000_000}},
            "num_chunks=2,000,000,000",
        ),
        (
            {"collective": {"name": "all_reduce", "num_ranks": 2_000_000_000, "num_chunks": 1}},
            "num_ranks=2,000,000,000",
        ),
        ({"fabric": "ideal:nodes=2000000000", "nodes": list(range(15))}, "more than 4,194,304 nodes"),
        ({"num_steps": -1}, "negative"),
        ({"size_bytes": "much"}, "size_bytes"),
        ({"extra": 1}, "extra"),
        ({"nodes": [0, 0]}, "twice"),
        ({"nodes": [99]}, "no node 99"),
        ({"collective": {"name": "all_reduce", "num_ranks": 15}}, "num_chunks"),
        ({"collective": {"name": "all_rebuke", "num_ranks": 15, "num_chunks": 1}}, "all_rebuke"),
        ({"collective": {"name": "all_gather", "num_ranks": 15, "num_chunks": 15, "owner": "AAAA"}}, "header"),
    ],
)
def test_a_wrong_header_is_refused(tmp_path, fields, words):
    """Versions from the future, other formats, fabrics and collectives that do not exist."""
    path = tmp_path / "plan.csv"
    plan_of("terarack").save(path)
    edit_header(path, **fields)
    with pytest.raises(PlanFileError) as caught:
        read(path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda f: f.drop("port"), "'port' is missing"),
        (lambda f: f.with_columns(pl.lit("red").alias("wavelength_lo")), "wavelength_lo"),
        (lambda f: f.with_columns(pl.lit(1.5).alias("dst")), "dst"),
        (lambda f: f.with_columns(pl.lit(2**40).alias("src")), "src=1099511627776"),
        (
            lambda f: f.with_columns(
                pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise(pl.col("dst")).alias("dst")
            ),
            "row 3",
        ),
        (lambda f: f.reverse(), "comes late"),
        (lambda f: f.with_columns(pl.lit(-1).alias("round")), "round -1 is negative"),
        (
            lambda f: f.with_columns((pl.col("transfer") - 3 * (pl.int_range(pl.len()) == 1)).alias("transfer")),
            "row 1: transfer -2 is negative",
        ),
        (lambda f: f.with_columns(pl.lit(0).alias("path")), "'path' holds Int32, not lists of whole numbers"),
        (
            lambda f: f.with_columns(pl.lit(["a"]).alias("path")),
            "'path' holds List(String), not lists of whole numbers",
        ),
        (lambda f: f.with_columns(pl.lit("a").alias("port")), "'port' holds String, not whole numbers"),
        (lambda f: f.with_columns(pl.lit("far").alias("chunk_step")), "'chunk_step' holds String, not whole numbers"),
        (lambda f: f.with_columns(pl.lit(None, pl.List(pl.Null)).alias("path")), "path_broken"),
    ],
)
def test_wrong_columns_are_refused(tmp_path, edit, words):
    """Missing columns, wrong types, numbers out of all range, empty cells, rows out of order."""
    path = tmp_path / "plan.parquet"
    plan_of("terarack").save(path)
    header = pl.read_parquet_metadata(path)["opticcl"]
    edit(pl.read_parquet(path)).write_parquet(path, metadata={"opticcl": header})
    with pytest.raises((PlanFileError, VerificationError)) as caught:
        opticcl.load(path)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda c: c.update(src="text"), "column 'src' is not a list of its values"),
        (lambda c: c["src"].pop(), "'step' has 30 rows, but 'src' has 29"),
        (lambda c: c["step"].pop(), "'step' has 29 rows, but 'round' has 30"),
        (lambda c: c["dst"].__setitem__(2, 1.5), "row 2: dst=1.5 is not a whole number of 64 bits"),
        (lambda c: c["op"].__setitem__(3, 2**70), f"row 3: op={2**70} is not a whole number of 64 bits"),
        (lambda c: c["port"].__setitem__(1, "\x1b[31m"), r"row 1: port=\x1b[31m is not a whole number"),
        (
            lambda c: c["op"].__setitem__(slice(2, 4), [None, 2**63]),
            f"row 3: op={2**63} is not a whole number of 64 bits",
        ),
        (lambda c: c["op"].__setitem__(3, -(2**63) - 1), f"row 3: op={-(2**63) - 1} is not a whole number of 64 bits"),
        (lambda c: c["path"].__setitem__(4, 5), "row 4: path=5 is not a list of whole numbers"),
        (lambda c: c["path"].__setitem__(4, {}), "row 4: path={} is not a list of whole numbers"),
        (lambda c: c["path"].__setitem__(4, [0, "a"]), "row 4: path=[0, 'a'] is not a list of whole numbers"),
    ],
)
def test_wrong_cells_of_a_json_file_are_named(tmp_path, edit, words):
    """By row, column and value."""
    path = tmp_path / "plan.json"
    plan_of("terarack").save(path)
    whole = json.loads(path.read_text("utf-8"))
    edit(whole["columns"])
    path.write_text(json.dumps(whole), "utf-8")
    with pytest.raises(PlanFileError, match=re.escape(words)):
        read(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_empty_file_is_called_empty(tmp_path, ending):
    """Whichever suffix it has."""
    (tmp_path / f"plan.{ending}").touch()
    with pytest.raises(PlanFileError, match="is empty"):
        read(tmp_path / f"plan.{ending}")


@pytest.mark.parametrize("ending", ENDINGS)
def test_truncated_files_are_refused(tmp_path, ending):
    """Cut anywhere: one line, or a plan file that the judge refuses."""
    path = tmp_path / f"plan.{ending}"
    plan_of("terarack").save(path)
    whole = path.read_bytes()
    for share in (0, 0.01, 0.3, 0.6, 0.9, 0.999):
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(OpticclError):
            opticcl.load(path)


def test_panics_of_a_reader_are_one_line(tmp_path, monkeypatch, capfd):
    """What it prints before it raises is dropped, what is printed before and after is not."""

    def panic(path):
        os.write(2, b"thread panicked at line 585\nstack backtrace\n")
        raise pl.exceptions.PanicException("called unwrap")

    path = tmp_path / "plan.parquet"
    plan_of("terarack").save(path)
    monkeypatch.setattr(pl, "scan_parquet", panic)
    os.write(2, b"before\n")
    with pytest.raises(
        PlanFileError, match=r"plan.parquet: cannot be read as a plan file: its reader cannot make sense of it$"
    ):
        read(path)
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "before\nafter\n"


@examples(60, suppress=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_flipped_bytes_never_give_a_traceback(tmp_path, data):
    """Whatever is in the file, an error of ours or a verdict comes out."""
    ending = data.draw(st.sampled_from(ENDINGS))
    path = tmp_path / f"plan.{ending}"
    plan_of("terarack").save(path)
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(raw))
    with contextlib.suppress(OpticclError):
        opticcl.load(path)


NO_PLAN = "is JSON, but not an object of header and columns$"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", b"", "a plan file ends in .parquet, .csv, .json"),
        ("a.parquet", b"PAR1", "cannot be read as a plan file: "),
        ("a.csv", b"x,y\n1,2\n", "its first line is not a header of a plan file, which begins with '# '"),
        ("a.csv", b"# {}\nstep,round\n0,0\n", "column 'transfer' is missing"),
        *(("a.json", text, NO_PLAN) for text in (b"[1]", b"{}", b"5", b'["header", "columns"]')),
        ("a.json", b'{"header": {}, "columns": []}', NO_PLAN),
    ],
)
def test_foreign_files_are_refused(tmp_path, name, content, said):
    """Files of other kinds; nothing is left open."""
    (tmp_path / name).write_bytes(content)
    free = []
    for _ in range(2):
        with pytest.raises(PlanFileError, match=said):
            read(tmp_path / name)
        free.append(os.dup(0))  # the first number that is free
        os.close(free[-1])
    assert free[0] == free[1]


def test_tables_without_a_header_or_a_path_are_refused(tmp_path):
    """Parquet files of other programs, and rows whose circuits take no way."""
    plan_of("ideal").save(path := tmp_path / "plan.csv")
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([lines[0], *(line.rpartition(",")[0] for line in lines[1:])]), "utf-8")
    with pytest.raises(PlanFileError, match="column 'path' is missing"):
        read(path)
    pl.DataFrame({"step": [0]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(PlanFileError, match="is a Parquet file without the header of a plan"):
        read(tmp_path / "a.parquet")


def test_columns_without_rows(tmp_path):
    """Whatever stands in none of them, they are of whole numbers."""
    opticcl.compile("ideal:nodes=1", "all_reduce", "1MB").save(path := tmp_path / "one.csv")
    header, names = path.read_text("utf-8").splitlines()
    path.write_text(f"{header}\n{names},chunk_step,waveguide\n", "utf-8")
    assert opticcl.load(path).verify().ok


def test_absent_files_are_refused(tmp_path):
    """No file, and a directory, which is called one."""
    with pytest.raises(PlanFileError, match="there is no such file"):
        read(tmp_path / "absent.csv")
    (tmp_path / "plan.csv").mkdir()
    for path in (tmp_path / "plan.csv", tmp_path):
        with pytest.raises(PlanFileError, match="is a directory"):
            read(path)


@pytest.mark.parametrize("name", ["num_steps", "num_chunks"])
def test_a_claim_of_the_header_allocates_nothing(tmp_path, name):
    """A file of a few kilobytes that claims two thousand million steps or chunks."""
    path = tmp_path / "plan.csv"
    plan_of("terarack").save(path)
    header = json.loads(path.read_text("utf-8").splitlines()[0][2:])
    wrong = {**header["collective"], "num_chunks": 2_000_000_000}
    edit_header(path, **({"num_steps": 2_000_000_000} if name == "num_steps" else {"collective": wrong}))
    tracemalloc.start()
    try:
        with pytest.raises(PlanFileError, match=name):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_steps_are_at_most_rows(tmp_path):
    """Every step has a circuit."""
    path = tmp_path / "plan.csv"
    rows = plan_of("terarack").save(path)
    edit_header(path, num_steps=rows + 1)
    with pytest.raises(PlanFileError, match=f"num_steps={rows + 1}, but a file of {rows} circuits has at most {rows}"):
        read(path)


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    """Far more chunks than circuits."""
    held = np.zeros((100_000, 4), bool)
    held[:, 0] = True
    plan = plan_of("ideal")
    idle = Schedule("idle", custom_collective("nothing", held, held, False), 0, plan.schedule.step)
    huge = CircuitPlan(opticcl.fabric("ideal:nodes=4"), idle, plan.circuits.rounds)
    with pytest.raises(PlanFileError, match="num_chunks=100,000"):
        write_plan_file(tmp_path / "plan.csv", huge, 1, "idle")
    assert not list(tmp_path.iterdir())


def idle_plan(before, after, reduces):
    """A plan without steps of a custom collective, on as many nodes as it has ranks."""
    own = custom_collective("mine", np.array(before, bool), np.array(after, bool), reduces)
    return CircuitPlan(
        opticcl.fabric(f"ideal:nodes={own.num_ranks}"), Schedule("idle", own, 0, [].__getitem__), [].__getitem__
    )


@pytest.mark.parametrize("reduces", [False, True])
@pytest.mark.parametrize(("num_ranks", "num_chunks"), [(1, 1), (3, 8), (5, 3), (2, 1)])
def test_tables_of_a_custom_collective_come_back(tmp_path, num_ranks, num_chunks, reduces):
    """Which rank holds which chunk before and after, whatever their number."""
    draw = np.random.default_rng(num_ranks)
    ranks, chunks = np.arange(num_ranks), np.arange(num_chunks)[:, None]
    before, after = draw.random((2, num_chunks, num_ranks)) < 0.5
    before |= ranks == chunks % num_ranks
    path = tmp_path / "custom.csv"
    write_plan_file(path, idle_plan(before, after, reduces), 8, "idle")
    found = read(path).schedule.collective
    assert (found.name, found.reduces, found.num_ranks, found.num_chunks) == ("mine", reduces, num_ranks, num_chunks)
    for held, due in ((found.before, before), (found.after, after)):
        assert np.array_equal(np.broadcast_to(held(ranks, chunks), due.shape), due)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"before": None}, "tables of 1 to 67,108,864 bits before and after"),
        ({"after": None}, "tables of 1 to 67,108,864 bits before and after"),
        ({"num_chunks": 0}, "tables of 1 to"),
        ({"num_ranks": 0}, "tables of 1 to"),
        ({"num_chunks": 4}, "not one bit for each chunk and rank"),
        ({"num_chunks": 9}, "not one bit for each chunk and rank"),
        ({"before": "AAAA"}, "header: "),
    ],
)
def test_wrong_tables_of_a_custom_collective_are_refused(tmp_path, changed, words):
    """With the header; 24 bits are three bytes."""
    path = tmp_path / "plan.csv"
    held = [[True, False, True]] * 8
    write_plan_file(path, idle_plan(held, held, False), 8, "idle")
    named = json.loads(path.read_text("utf-8").splitlines()[0][2:])["collective"]
    edit_header(path, collective=named | changed)
    with pytest.raises(PlanFileError, match=words):
        read(path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"header":' + "[" * 100_000, '{"a":' * 100_000])
def test_deep_nesting_is_refused(tmp_path, text):
    """In the file and in a header."""
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "a.csv").write_text("# " + text + "\nstep\n0\n")
    for name in ("a.json", "a.csv"):
        with pytest.raises(PlanFileError) as caught:
            read(tmp_path / name)
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_a_byte_order_mark_is_accepted(tmp_path, ending):
    """As some editors write it."""
    path = tmp_path / f"plan.{ending}"
    plan_of("terarack").save(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert opticcl.load(path).verify().ok


def test_files_under_the_former_name_are_read(tmp_path):
    """The format was called opticcl-programme."""
    path = tmp_path / "plan.csv"
    plan_of("terarack").save(path)
    edit_header(path, format="opticcl-programme")
    assert opticcl.load(path).verify().ok


def test_suffixes_may_be_upper_case(tmp_path):
    """Of the file that is written and read."""
    plan_of("terarack").save(tmp_path / "plan.CSV")
    assert opticcl.load(tmp_path / "plan.CSV").verify().ok


@pytest.mark.parametrize("field", ["algorithm", "opticcl", "fabric", "format"])
def test_names_of_a_file_cannot_control_the_terminal(tmp_path, field):
    """Escape bytes in the header reach neither a plan's text nor an error's."""
    path = tmp_path / "plan.csv"
    plan_of("terarack").save(path)
    edit_header(path, **{field: "evil\x1b[31m\x07"})
    try:
        shown = str(read(path))
    except PlanFileError as error:
        shown = str(error)
    assert shown.isprintable()


def test_a_small_rate_comes_back(tmp_path):
    """Numbers of a header are in SI units, however small."""
    fabric = opticcl.fabric("ideal", nodes=4, rate=800.0)
    opticcl.compile(fabric, "all_reduce", 1000, algorithm="ring").save(tmp_path / "plan.csv")
    assert opticcl.load(tmp_path / "plan.csv").fabric == fabric


def test_what_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    """Another ending, a folder that is not there, too many circuits."""
    plan = plan_of("ideal")
    for path in (tmp_path / "plan.txt", tmp_path / "no" / "plan.csv"):
        with pytest.raises(OutputError):
            plan.save(path)
    monkeypatch.setitem(plan_write.MOST_ROWS, ".parquet", 15)
    with pytest.raises(OutputError, match="16 circuits are more than 15"):
        plan.save(tmp_path / "huge.parquet")
    assert not list(tmp_path.iterdir())


# --- one node's part ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS)
def test_instructions_add_up(system):
    """Over all nodes, what is sent is what is received, and it is what the transfers carry."""
    plan = plan_of(system, size=128 * 15 * 1000)
    n = plan.fabric.num_nodes
    rows = [row for node in range(n) for row in instructions_of_node(plan.circuits, plan.size_bytes, node)]
    sent = sum(row["bytes"] for row in rows if row["action"] == "send")
    received = sum(row["bytes"] for row in rows if row["action"] == "receive")
    chunk = plan.size_bytes / plan.schedule.collective.num_chunks
    carried = sum(plan.schedule.step(i).size_chunks().sum() for i in range(plan.schedule.num_steps)) * chunk
    assert sent == pytest.approx(received) == pytest.approx(carried)


def test_slots_hold_the_payload():
    """RAMP: 950 bytes a slot of 20 ns."""
    plan = plan_of("ramp", size="1MB")
    rows = instructions_of_node(plan.circuits, plan.size_bytes, 3)
    assert all((row["slots"] - 1) * 950 < row["bytes"] <= row["slots"] * 950 for row in rows)


def test_instructions_of_a_node_by_hand():
    """A transfer of two circuits, one to the node and an idle one; slots of 950 bytes are begun for less than one."""
    fabric = opticcl.fabric("ramp:groups=2,racks=2,wavelengths=4")
    assert fabric.slot_payload_bytes == pytest.approx(950)
    every = np.ones((8, 16), bool)
    step = Transfers.of([0, 2], [1, 0], [1, 5], [2, 1], [Op.REDUCE, Op.COPY], chunk_step=[3, 1])
    circuits = Circuits.of(
        [-1, 0, 0, 1], [0, 0, 0, 2], [2, 1, 1, 0], port=[0, 1, 2, 3], wavelength_lo=[0, 4, 0, 1], wavelength_n=[1, 1, 3, 2],
        path=(np.array([7, 8, 9]), np.array([0, 0, 1, 3, 3])), wavelength_step=2, waveguide=[4, 5, 6, -1],
    )  # fmt: skip
    schedule = Schedule("own", custom_collective("mine", every, every, True), 1, lambda i: step)
    plan = CircuitPlan(fabric, schedule, lambda i: (circuits,))
    rows = instructions_of_node(plan, 8 * 5700, 0)
    sent = {"step": 0, "round": 0, "action": "send", "peer": 1, "op": "reduce", "chunks": [1, 4], "chunk_step": 3}
    sent |= {"first_slot": 0, "slots": 3}
    assert rows == [
        sent | {"bytes": 2850, "port": 1, "wavelengths": [4], "path": [7], "waveguide": 5},
        sent | {"bytes": 8550, "port": 2, "wavelengths": [0, 2, 4], "path": [8, 9], "waveguide": 6},
        {"step": 0, "round": 0, "action": "receive", "peer": 2, "op": "copy", "chunks": [5, 5], "bytes": 5700, "port": 3,
         "wavelengths": [1, 3], "path": [], "waveguide": -1, "first_slot": 0, "slots": 3},
    ]  # fmt: skip
    assert instructions_of_node(plan, 8 * 5700, 0, max_rows=2) == rows[:2]
    assert [row["slots"] for row in instructions_of_node(plan, 8 * 5701, 0)] == [4, 4, 4]
    assert instructions_of_node(plan, 8, 15) == []
    whole = replace(plan, schedule=replace(schedule, step=lambda i: replace(step, chunk_step=None)))
    found = instructions_of_node(whole, 8, 0)
    assert [row["chunks"] for row in found] == [[1, 2], [1, 2], [5, 5]]
    assert not any("chunk_step" in row for row in found)
    with pytest.raises(ParameterError, match="-1 is not a node of ramp; try 0 to 15"):
        instructions_of_node(plan, 8, -1)


@pytest.mark.parametrize("system", ["ramp:groups=2,racks=2,wavelengths=2", "terarack:nodes=6"])
def test_times_of_instructions_are_those_of_the_programme(system):
    """Of every circuit, in the order of the steps; of steps that a run repeats too."""
    plan = opticcl.compile(system, "all_reduce", "10 KB", algorithm="ring")
    programme, found = plan.programme(), []
    for node in range(plan.fabric.num_nodes):
        rows = instructions_of_node(plan.circuits, plan.size_bytes, node, programme=programme)
        assert ("first_slot" in rows[0]) == (plan.fabric.name == "ramp")
        for row in rows:
            assert "first_slot" not in row or row["first_slot"] == round(row["from_s"] / plan.fabric.slot_s)
            if row["action"] == "send":
                found.append((row["step"], row["from_s"], row["end_s"]))
    ends = {step: max(end for one, _, end in found if one == step) for step, _, _ in found}
    assert all(end > begin >= ends.get(step - 1, 0) - 1e-12 for step, begin, end in found)
    assert 0 < max(ends.values()) <= programme.total_s + 1e-12


def test_unknown_nodes_are_refused():
    """One line with the allowed ones."""
    with pytest.raises(ParameterError, match="0 to 7"):
        instructions_of_node(plan_of("ideal").circuits, 8, 8)


def test_the_schema_page_names_every_column():
    """docs/files.md is the contract."""
    from opticcl.formats.plan_header import CHUNK_STEP, COLUMNS

    text = (Path(__file__).parents[2] / "docs/files.md").read_text("utf-8")
    assert all(f"`{name}`" in text for name in (*COLUMNS, CHUNK_STEP, "path"))
