"""`opticcl train --faults` as a user types it."""

import json

import pytest
from tests.docs.pages import EXAMPLES

JOB = ("train", "--model", "resnet50", "-n", "8", "-f", "oddl:shape=2x4")
FAULTS = ("--faults", str(EXAMPLES / "faults.json"))


def one_fault(folder):
    """A trace with the first fault of the example."""
    path = folder / "one.json"
    first, *_, last = json.loads((EXAMPLES / "faults.json").read_text("utf-8"))
    path.write_text(json.dumps([first, first | {"event_type": "fault_end", "event_time": last["event_time"]}]))
    return path


def test_samples_a_day_with_and_without_spares(answer, opticcl, tmp_path):
    """By policy on every fabric; the share of communication and the samples are those of the iteration."""
    record = tmp_path / "t.json"
    found, code = answer(*JOB, *FAULTS, "--spares", "1", "-o", record)
    assert code == 0
    rows = found["faults"]["rows"]
    assert [row["fabric"] for row in rows] == [row["fabric"] for row in found["rows"]]
    for row, plain in zip(rows, found["rows"], strict=True):
        assert row["communication"] == plain["communication_share"]
        healthy = 86_400 / plain["iteration_s"] * row["samples"]
        assert row["replan_per_day"] == pytest.approx(healthy * row["replan_goodput"])
        assert row["replan_with_spares_per_day"] == pytest.approx(healthy * 7 / 8 * row["replan_with_spares_goodput"])
        worth = row["replan_with_spares_per_day"] - row["replan_per_day"]
        assert row["replan_worth_of_a_spare"] == pytest.approx(worth)
        assert 0 < row["restart_goodput"] <= row["best_goodput"]
        assert row["replan_with_spares_goodput"] > row["replan_goodput"]
    assert json.loads(record.read_text("utf-8"))["faults"] == found["faults"]
    done = opticcl(*JOB, "--faults", one_fault(tmp_path))
    assert "samples a day during 1 fault" in done.stdout
