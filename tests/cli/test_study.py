"""opticcl study, as a user types it."""

from __future__ import annotations

from opticcl.studies import STUDIES


def test_without_a_name_it_lists_all(opticcl) -> None:
    """One line a study, also in the help."""
    listed = opticcl("study")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(STUDIES.names())
    helped = "".join(opticcl("study", "--help").stdout.split())
    assert all(name in helped for name in STUDIES.names())


def test_json_is_one_value(answer) -> None:
    """Rows, notes and where they belong."""
    found, code = answer("study", "transfers:nodes=6,lasers=2")
    assert code == 0
    assert set(found) == {"study", "title", "source", "rows", "notes"}
    assert {"probability", "rounds", "at_least"} <= set(found["rows"][0])


def test_a_picture_is_written_and_named(opticcl, tmp_path) -> None:
    """Beside the table."""
    file = tmp_path / "transfers.svg"
    ran = opticcl("study", "transfers:nodes=6,lasers=2", "-o", str(file))
    assert ran.returncode == 0
    assert f"picture: {file}" in ran.stdout
    assert "edge colouring" in ran.stdout
    assert file.read_text().startswith("<svg")
