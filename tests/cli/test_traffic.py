"""`opticcl machine traffic` as a user types it."""

import json

import pytest

SMALL = ("-f", "ramp:groups=2,racks=2,wavelengths=4", "--slots", "300")


def test_a_load_is_carried_and_judged(answer):
    """Rows, totals, notes and assumptions; every slot verified; offered = sent + pending."""
    found, code = answer("machine", "traffic", *SMALL, "--load", "0.5", "--verify", "--skew", "1", "--skew", "3")
    assert code == 0
    assert found.keys() >= {"ok", "rows", "totals", "notes", "assumptions"}
    assert [row["skew"] for row in found["rows"]] == [1, 3]
    row = found["rows"][0]
    assert (row["answer"], row["verdict"]["violations"]) == ("carried", [])
    assert row["offered_cells"] == row["sent_cells"] + row["pending_cells"]
    assert 140e-9 <= row["delay_mean_s"] <= row["delay_p99_s"] <= row["delay_p999_s"]
    assert row["delay_mean_s_half_width"] > 0
    assert found["totals"]["violations"] == 0
    assert found["assumptions"]["cell_bytes"] == pytest.approx(950)
    assert found["assumptions"]["slot_s"] == 20e-9


def test_an_inadmissible_load_names_its_channel(answer, opticcl):
    """Exit code 1, the channel and the largest load; nothing is simulated."""
    options = (*SMALL, "--load", "0.9", "--skew", "6", "--placement", "group", "--between-racks", "0")
    found, code = answer("machine", "traffic", *options)
    assert code == 1
    row = found["rows"][0]
    assert row["answer"] == "inadmissible"
    assert row["limited_by"].startswith("channel (g_src=0, g_dst=0")
    assert 0 < row["largest_load"] < 0.9
    assert "delay_mean_s" not in row
    assert "the largest load is" in " ".join(opticcl("machine", "traffic", *options).stdout.split())


def test_the_delay_of_an_unstable_load_is_not_reported(answer):
    """Two hops carry at most half of the ports."""
    found, code = answer("machine", "traffic", *SMALL, "--scheduler", "cyclic:hops=2", "--load", "0.8")
    row = found["rows"][0]
    assert (code, row["answer"], row["delay_p99_s"]) == (1, "unstable", None)
    assert row["backlog_slope_cells_per_slot"] > 0
    assert "backlog grows" in found["notes"][0]


@pytest.mark.parametrize("reserve", [(), ("--reserve", "planes=1")])
def test_a_plan_beside_it_slows_both_down(answer, opticcl, tmp_path, reserve):
    """Both slow-downs; plan and traffic are judged together."""
    plan = tmp_path / "plan.parquet"
    assert opticcl("compile", "-f", SMALL[1], "-a", "ramp", "-s", "1MB", "-o", plan).returncode == 0
    found, code = answer("machine", "traffic", *SMALL, "--load", "0.3", "--verify", "--beside", plan, *reserve)
    assert code == 0
    assert found["rows"][0]["verdict"]["ok"]
    assert found["rows"][0]["slow_down"] > 1
    assert found["beside"]["slow_down"] > 1


def test_files(opticcl, tmp_path):
    """A picture, a table, a record; tables at 80 and 160 columns."""
    files = [tmp_path / name for name in ("t.svg", "t.csv", "t.json")]
    outs = [word for path in files for word in ("-o", path)]
    options = (*SMALL, "--load", "0.3", "--load", "0.6", "--scheduler", "native", "--scheduler", "cyclic:hops=2")
    done = opticcl("machine", "traffic", *options, *outs)
    assert done.returncode == 1
    picture = files[0].read_text("utf-8")
    assert picture.startswith("<svg")
    assert "mathdefault" not in picture
    assert len(files[1].read_text("utf-8").splitlines()) == 5
    assert len(json.loads(files[2].read_text("utf-8"))["rows"]) == 4


@pytest.mark.parametrize("columns", ["80", "160"])
def test_tables_fit(opticcl, monkeypatch, columns):
    """No line is wider than the terminal."""
    monkeypatch.setenv("COLUMNS", columns)
    done = opticcl("machine", "traffic", *SMALL, "--load", "0.5")
    assert done.returncode == 0
    assert "carried" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= int(columns)


def test_fabrics_without_slots_and_plans_of_others_are_refused(opticcl, tmp_path):
    """The nearest valid value is named."""
    done = opticcl("machine", "traffic", "-f", "torus:shape=2x2")
    assert (done.returncode, "give a ramp" in done.stderr) == (2, True)
    done = opticcl("machine", "traffic", "-f", "ramp:groups=2,racks=2,wavelengths=4,slot=0")
    assert (done.returncode, "slot=20ns" in done.stderr) == (2, True)
    plan = tmp_path / "plan.parquet"
    opticcl("compile", "-f", "ramp:groups=2,racks=1,wavelengths=4", "-a", "ramp", "-s", "1MB", "-o", plan)
    done = opticcl("machine", "traffic", *SMALL, "--beside", plan)
    assert (done.returncode, "racks=1" in done.stderr) == (2, True)
    plan = tmp_path / "same.parquet"
    opticcl("compile", "-f", SMALL[1], "-a", "ramp", "-s", "1MB", "-o", plan)
    for wrong, says in (
        ("slots=7", "not 1 to 6"),
        ("planes=0", "not 1 to 2"),
        ("lasers=1", "neither slots"),
        ("3", "is not"),
    ):
        done = opticcl("machine", "traffic", *SMALL, "--beside", plan, "--reserve", wrong)
        assert (done.returncode, says in done.stderr) == (2, True), done.stderr
