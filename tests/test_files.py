"""Files written whole, and names from files that cannot control a terminal."""

import os

import pytest

from opticcl.errors import OpticclError, OutputError, VerificationError, printable
from opticcl.files import write_whole


def write(path, content=b"new"):
    """Write a file whole."""
    with write_whole(path) as file:
        file.write(content)


def test_a_link_stays_a_link(tmp_path):
    """The file that it points to is written, whether or not it exists."""
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / "file"
    target.write_bytes(b"old")
    (tmp_path / "link").symlink_to("elsewhere/file")
    (tmp_path / "second").symlink_to(tmp_path / "link")
    (tmp_path / "dangling").symlink_to("elsewhere/new")
    write(tmp_path / "second", b"new")
    write(tmp_path / "dangling", b"made")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "second").is_symlink()
    assert target.read_bytes() == b"new"
    assert (tmp_path / "elsewhere/new").read_bytes() == b"made"
    assert sorted(os.listdir(tmp_path / "elsewhere")) == ["file", "new"]


@pytest.mark.parametrize("name", ["circle", "directory", "pipe", "absent/file", "into/file"])
def test_what_cannot_be_written_is_refused(tmp_path, name):
    """Links in a circle, directories, pipes, and directories that do not exist; nothing is left behind."""
    (tmp_path / "circle").symlink_to("other")
    (tmp_path / "other").symlink_to("circle")
    (tmp_path / "directory").mkdir()
    (tmp_path / "into").symlink_to("absent")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(OutputError, match=f"cannot write .*{name}"):
        write(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == before


def test_an_error_leaves_the_old_file(tmp_path):
    """And no temporary one."""
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(TypeError):
        write(tmp_path / "file", "a text is no bytes")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("text", ["\x1b[31m", "a\rb", "\x9b5m", "\u202etxt", "\x00", "a\nb"])
def test_what_cannot_be_printed_is_escaped(text):
    """Control characters of both sets, and those that change the direction of a text."""
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)


def test_errors_are_printable():
    """Whatever name from a file their text contains; a verdict keeps its lines."""
    assert str(OpticclError("job \x1b[2J")) == "job \\x1b[2J"
    assert str(VerificationError("refused\n  rank \x07")) == "refused\n  rank \\x07"
