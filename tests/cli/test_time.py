"""`simulate --programme` and `verify --time`."""

import json

import pytest

TERARACK = ("-f", "terarack:nodes=8", "-c", "broadcast", "-a", "ring", "-s", "1KB")


@pytest.mark.parametrize("suffix", [".parquet", ".json", ".csv"])
def test_a_programme_is_written_and_judged(opticcl, answer, tmp_path, suffix):
    """The total is that of the simulation."""
    path = tmp_path / f"times{suffix}"
    done = opticcl("simulate", *TERARACK, "--engine", "device", "--programme", path)
    assert done.returncode == 0, done.stderr
    assert f"programme: {path}, " in done.stdout
    simulated, _ = answer("simulate", *TERARACK, "--engine", "device")
    verdict, code = answer("verify", *TERARACK, "--time", path)
    assert (code, verdict["ok"], verdict["changes"]) == (0, True, 14)
    assert verdict["total_s"] == pytest.approx(simulated["total_s"], rel=1e-9)
    assert opticcl("verify", *TERARACK, "--time", path).stdout.splitlines()[2].startswith("times verified: 56 circuits")


def test_an_unlawful_programme_is_exit_code_1(opticcl, answer, tmp_path):
    """With law, step, place and what is missing."""
    path = tmp_path / "times.json"
    opticcl("simulate", *TERARACK, "--assumptions", "published", "--programme", path)
    whole = json.loads(path.read_text("utf-8"))
    whole["tables"]["circuits"]["start_s"][0] = 0.0
    path.write_text(json.dumps(whole), "utf-8")
    verdict, code = answer("verify", *TERARACK, "--time", path)
    assert code == 1
    (violation,) = verdict["violations"]
    assert (violation["law"], violation["step"]) == ("unset_at_start", 0)
    assert violation["missing_s"] == pytest.approx(25.025e-6)  # until its light has passed
    assert "unset_at_start: step 0" in opticcl("verify", *TERARACK, "--time", path).stdout


@pytest.mark.parametrize(
    ("table", "column", "value", "reason"),
    [
        ("circuits", "start_s", -1.0, "circuits row 0: start_s=-1.0 is not a time"),
        ("circuits", "row", 7, "circuits row 0: step 0 has no circuit 7"),
        ("devices", "device", 10**6, "devices row 0: kind=0, device=1000000; there are"),
        ("data", "transfer", 3, "data row 0: step 0 has no transfer 3"),
    ],
)
def test_rows_that_the_plan_does_not_have_are_exit_code_2(opticcl, tmp_path, table, column, value, reason):
    """The table and the row are named."""
    path = tmp_path / "times.json"
    opticcl("simulate", *TERARACK, "--programme", path)
    whole = json.loads(path.read_text("utf-8"))
    whole["tables"][table][column][0] = value
    path.write_text(json.dumps(whole), "utf-8")
    done = opticcl("verify", *TERARACK, "--time", path)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_has_no_programme_is_refused(opticcl, tmp_path):
    """A packet network, a schedule without circuits, a file of another kind."""
    done = opticcl("simulate", "-f", "torus:shape=2x2", "--programme", tmp_path / "times.json")
    assert done.returncode == 2
    assert "packets share the links of torus" in done.stderr
    opticcl("compile", "-f", "torus:shape=2x2", "-s", "1MB", "-a", "ring", "-o", tmp_path / "plan.xml")
    done = opticcl("verify", tmp_path / "plan.xml", "--time", tmp_path / "times.json")
    assert done.returncode == 2
    assert "has no circuits" in done.stderr
    done = opticcl("simulate", *TERARACK, "--programme", tmp_path / "times.txt")
    assert done.returncode == 2


def test_a_start_that_stands(opticcl, answer, tmp_path):
    """The last circuits of a plan file: no change is charged, and the judge takes them from that file."""
    plan, path, other = (tmp_path / name for name in ("before.parquet", "times.parquet", "other.parquet"))
    ring = ("-f", "terarack:nodes=8", "-c", "all_gather", "-a", "ring", "-s", "1KB")
    opticcl("compile", *ring, "-o", plan)
    opticcl("compile", *TERARACK, "-o", other)
    times, _ = answer("simulate", *ring, "--start", plan, "--programme", path)
    assert times["reconfiguration_s"] == 0
    assert answer("verify", *ring, "--time", path, "--start", plan)[0]["ok"]
    assert answer("verify", *ring, "--time", path)[0]["ok"]
    wrong, code = answer("verify", *ring, "--time", path, "--start", other)
    assert code == 1
    assert "unset_at_start" in {one["law"] for one in wrong["violations"]}


def test_wrong_starts_are_refused(opticcl, tmp_path):
    """Beside initial=..., without --time, of another machine."""
    plan = tmp_path / "before.parquet"
    opticcl("compile", *TERARACK, "-o", plan)
    for command, words in (
        (("simulate", *TERARACK, "--start", plan, "--assume", "initial=warm"), "initial=warm is given too"),
        (("verify", *TERARACK, "--start", plan), "give --time FILE too"),
        (("simulate", "-f", "terarack:nodes=9", "--start", plan), "the start is of terarack with 8 nodes"),
        (("simulate", *TERARACK, "--start", tmp_path / "none.parquet"), "none.parquet"),
    ):
        done = opticcl(*command)
        assert done.returncode == 2
        assert words in done.stderr
