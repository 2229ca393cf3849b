"""The registry of formats: which one reads or writes a file."""

import json
import os

import pytest

from opticcl.errors import OutputError, PlanFileError
from opticcl.formats import FORMATS, Format, format_of, format_to_write, register_format
from opticcl.formats.perfetto import name_event, slice_event, write_events
from opticcl.report.catalogue import catalogue


@pytest.fixture
def _as_before(monkeypatch):
    """Formats that a test registers disappear after it."""
    FORMATS.names()
    monkeypatch.setattr(FORMATS, "_entries", dict(FORMATS._entries))


def test_suffixes_choose_a_format(tmp_path):
    """Whatever their case."""
    for name in ("a.parquet", "a.csv", "a.JSON"):
        (tmp_path / name).write_text("{}")
        assert format_of(tmp_path / name).name == "plan"
        assert format_to_write(tmp_path / name).name == "plan"
    (tmp_path / "a.json").write_text('{"7-Flows": []}')
    assert format_of(tmp_path / "a.json").name == "te_ccl"


def test_unknown_suffixes_are_refused(tmp_path):
    """With those that are known."""
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(PlanFileError, match=r"'\.txt' is of no known format; known: .*\.parquet"):
        format_of(tmp_path / "a.txt")
    with pytest.raises(OutputError, match=r"must end in .*\.parquet"):
        format_to_write(tmp_path / "a.docx")


def test_what_is_no_file_is_refused(tmp_path):
    """Nothing, and a directory or a pipe with the suffix of a plan."""
    with pytest.raises(PlanFileError, match="there is no such file"):
        format_of(tmp_path / "a.csv")
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(PlanFileError, match="is a directory"):
        format_of(tmp_path / "a.csv")
    os.mkfifo(tmp_path / "b.csv")
    with pytest.raises(PlanFileError, match="is not a regular file"):
        format_of(tmp_path / "b.csv")


@pytest.mark.usefixtures("_as_before")
def test_the_first_bytes_choose_between_formats_of_one_suffix(tmp_path):
    """A format that recognizes its files goes before one that does not look."""
    register_format(Format("own", (".json",), "a test", read=str, sniff=lambda head: head.startswith(b"own")))
    (tmp_path / "a.json").write_text("own file")
    (tmp_path / "b.json").write_text("{}")
    assert format_of(tmp_path / "a.json").name == "own"
    assert format_of(tmp_path / "b.json").name == "plan"
    register_format(Format("alone", (".alone",), "a test", read=str, sniff=lambda head: False))
    (tmp_path / "a.alone").write_text("")
    assert format_of(tmp_path / "a.alone").name == "alone"
    with pytest.raises(ValueError, match="registered twice"):
        register_format(Format("Own", (".own",), "again"))


def test_all_formats_are_listed(tmp_path):
    """Each with suffixes and a line on its content, in every format that says that it reads or writes."""
    found = catalogue("formats").record()["formats"]
    assert [entry["name"] for entry in found] == list(FORMATS.names()) == sorted(FORMATS.names())
    assert {"plan", "perfetto"} <= set(FORMATS.names())
    for entry in found:
        assert entry["about"]
        assert entry["suffixes"]
        assert entry["reads"] or entry["writes"]
    assert catalogue().record()["formats"] == found


def test_traces_hold_tracks_and_events(tmp_path):
    """Times in microseconds, names of tracks first."""
    events = [name_event("thread", 1, 2, "laser"), slice_event("on", "setting", 1e-6, 3e-6, 1, 2, {"port": 4})]
    write_events(tmp_path / "a.json", events, {"plan": "a test"}, "ns")
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["otherData"] == {"plan": "a test"}
    assert found["displayTimeUnit"] == "ns"
    assert [event["ph"] for event in found["traceEvents"]] == ["M", "X"]
    assert (found["traceEvents"][1]["ts"], found["traceEvents"][1]["dur"]) == pytest.approx((1, 2))
