"""`opticcl faults` as a user types it."""

import json

import pytest
from tests.docs.pages import EXAMPLES

TRACE = EXAMPLES / "faults.json"
SMALL = ("-f", "sipac:radix=2,levels=2,wavelengths=4", "-s", "1MB")


def test_rows_have_bound_restart_and_recovery(answer):
    """Parts that fail together are one row; the keys of the record."""
    found, code = answer(
        "faults", *SMALL, "--fail", "comb_laser:5", "--fail", "switch:3+photodiode:1", "--recover", "detect=1s"
    )
    assert code == 0
    assert found.keys() >= {"ok", "rows", "totals", "notes", "assumptions"}
    assert [row["parts"] for row in found["rows"]] == ["comb_laser:5", "photodiode:1+switch:3"]
    for row in found["rows"]:
        assert row["verified"]
        assert row["ratio"] >= 1
        assert row["published_s"] != row["time_s"]
        assert row["recovery_s"] == pytest.approx(
            row["detect_s"] + row["plan_s"] + row["programme_s"] + row["restart_s"]
        )
        assert row["detect_s"] in (0, 1)


def test_pieces_that_go_on_as_they_arrive(answer, opticcl):
    """All times are those of the device engine, which the record and the text say."""
    line = ("-f", "sipac:radix=2,levels=1,wavelengths=4", "-s", "10MB", "--fail", "photodiode:5")
    found, code = answer("faults", *line, "--streamed")
    assert code == 0
    assert found["engine"] == "device"
    assert answer("faults", *line)[0]["engine"] == "closed_form"
    assert "pieces are forwarded as they arrive" in opticcl("faults", *line, "--streamed").stdout


def test_a_cut_is_named(answer, opticcl):
    """Exit code 1, the nodes that no data leave, and the kinds of parts that nothing replaces."""
    line = ("-f", "sipac:radix=3,levels=1,wavelengths=3", "-s", "1MB", "--fail", "comb_laser:1")
    found, code = answer("faults", *line)
    assert code == 1
    assert (found["rows"][0]["answer"], found["rows"][0]["cut"]) == ("cut", [1])
    assert found["totals"]["single_points_of_failure"] == ["comb_laser"]
    assert "no data leave node 1" in opticcl("faults", *line).stdout


def test_a_sweep_counts_every_part_and_writes_files(opticcl, tmp_path):
    """Picture, rows and record."""
    outs = [f for kind in ("svg", "csv", "json") for f in ("-o", str(tmp_path / f"out.{kind}"))]
    done = opticcl("faults", *SMALL, "--sweep", "--pairs", "3", "-c", "all_gather", *outs)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["totals"]["parts"] == 4 + 8 + 32 + 32 + 16 + 4 + 8 + 8 + 3
    assert (tmp_path / "out.csv").read_text().count("\n") == len(found["rows"]) + 1
    assert "comb_laser:0" in (tmp_path / "out.svg").read_text()


def test_rows_say_where_their_plans_are_from(opticcl, tmp_path, monkeypatch):
    """One search in a sweep; all algorithms for a part that is named."""
    text = opticcl("faults", *SMALL, "--sweep", "--fail", "comb_laser:5", "-o", tmp_path / "found.json").stdout
    found = json.loads((tmp_path / "found.json").read_text())
    named, *swept = found["rows"]
    assert named["plan_from"] == "full search"
    assert {"as built", "for damage"} <= {row["plan_from"] for row in swept}
    assert found["finished"]
    heading = text.splitlines()[1]
    assert heading.split()[:4] == ["failed", "equal", "answer", "plan"]
    assert "--fail PART searches all algorithms" in text.replace(" \nalgorithms", " algorithms")
    monkeypatch.setenv("COLUMNS", "70")
    narrow = opticcl("faults", *SMALL, "--fail", "comb_laser:5").stdout
    assert "not shown: plan from, algorithm" in narrow.replace("\n", " ")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_sweep_keeps_its_rows(opticcl, monkeypatch, tmp_path, stop):
    """In the files, with a record that says that it is not finished, and on standard output as they come."""
    from opticcl.operations.faults import answers

    make, made = answers.answer, []

    def stopped(*given, **options):
        if len(made) == 3:
            raise stop
        made.append(make(*given, **options))
        return made[-1]

    monkeypatch.setattr(answers, "answer", stopped)
    files = [tmp_path / "rows.csv", tmp_path / "rows.json"]
    outs = [word for path in files for word in ("-o", str(path))]
    done = opticcl("faults", *SMALL, "--sweep", *outs)
    assert done.returncode == (130 if stop is KeyboardInterrupt else 2)
    assert done.stdout.splitlines()[3].startswith("node:0")
    assert len(files[0].read_text().splitlines()) == 1 + 3
    record = json.loads(files[1].read_text())
    assert (record["finished"], len(record["rows"])) == (False, 3)
    if stop is KeyboardInterrupt:
        assert "3 of " in done.stderr
        assert "rows.csv" in done.stderr


def test_a_replay(answer, opticcl, tmp_path):
    """Rows, totals, notes and assumptions; the restart of --assume; picture and rows."""
    line = ("faults", "-f", "oddl:shape=2x4", "--replay", TRACE, "--ranks", "7", "--spares", "1", "-s", "1MB")
    files = [tmp_path / name for name in ("r.svg", "r.csv")]
    outs = [word for path in files for word in ("-o", path)]
    found, code = answer(*line, "--assume", "restart=30min", "--recover", "replan=1s", *outs)
    assert code == 0
    assert found.keys() == {"rows", "totals", "notes", "assumptions"}
    assert [row["policy"] for row in found["rows"]] == ["replan", "restart", "best"]
    assert (found["assumptions"]["restart_s"], found["assumptions"]["replan_s"]) == (1800, 1)
    goodput = {row["policy"]: row["goodput"] for row in found["rows"]}
    assert goodput["best"] >= goodput["replan"] > goodput["restart"] > 0.5
    assert files[0].read_text("utf-8").startswith("<svg")
    assert len(files[1].read_text("utf-8").splitlines()) == 4
