"""opticcl study, as a user types it."""

from __future__ import annotations

import inspect

from opticcl.studies import STUDIES


def test_the_help_of_a_study_has_its_question_and_its_parameters(opticcl) -> None:
    """As the function that is registered documents them, with their defaults."""
    for name in STUDIES.names():
        helped = " ".join(opticcl("study", name, "--help").stdout.split())
        question = inspect.getdoc(STUDIES.get(name)).split("\n\n")[0]
        assert " ".join(question.split()) in helped
        for one in list(inspect.signature(STUDIES.get(name)).parameters.values())[1:]:
            assert f"{one.name}=" in helped


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
