"""What every verb refuses: exit code 2 and one line that says why, nothing on standard output, nothing left behind."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = tomllib.loads(Path(__file__).with_name("refused.toml").read_text("utf-8"))["refused"]


@pytest.mark.parametrize(("words", "said"), ROWS, ids=lambda part: " ".join(part))
def test_wrong_input_is_refused_in_a_line(opticcl, tmp_path, monkeypatch, words, said):
    """Without a traceback, and before anything is written."""
    monkeypatch.chdir(tmp_path)
    done = opticcl(*(word.replace("{root}", str(ROOT)) for word in words))
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("opticcl: ")
    assert all(text in line for text in said), line
    assert not list(tmp_path.iterdir())
