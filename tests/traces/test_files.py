"""Packed files and archives of traces, written here by Python's own modules."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.damage import one_line

from opticcl.errors import WorkloadError
from opticcl.traces import files, load_workload

LOG = b"AR;8;0,1\n" * 50
PACKINGS = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


def zipped(members, method=zipfile.ZIP_DEFLATED):
    """A zip archive."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return target.getvalue()


def tarred(members, mode):
    """A tar archive."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode=f"w:{mode}") as file:
        for name, content in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            file.addfile(about, io.BytesIO(content))
    return target.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that every test writes anew."""
    return tmp_path_factory.mktemp("packed")


def load(path, content):
    """What is read of a file with that content."""
    path.write_bytes(content)
    return load_workload(path)


@pytest.mark.parametrize("suffix", PACKINGS)
@pytest.mark.parametrize("name", ["job.log", "job.LOG", "job"])
def test_a_packed_file(folder, name, suffix):
    """With the suffix of its packing, in capitals or not, or without it; of several parts one after the other."""
    packed = PACKINGS[suffix](LOG)
    for path in (folder / f"{name}{suffix}", folder / f"{name}{suffix.upper()}"):
        read = load(path, packed)
        assert (read.name, read.total_bytes) == ("job", 400)
    assert load(folder / name, packed).total_bytes == 400
    assert load(folder / name, packed + packed).total_bytes == 800


ARCHIVES = {
    "a.zip": zipped({"d/": b"", "d/job.log": LOG}),
    "b.zip": zipped({"job.log": LOG}, zipfile.ZIP_STORED),
    "c.zip": zipped({"job.log": LOG, "__MACOSX/._job.log": b"x"}, zipfile.ZIP_BZIP2),
    "d.zip": zipped({"job.log.xz": lzma.compress(LOG), "README": b"x"}),
    "e.zip": zipped({"x/.DS_Store": b"x", "y/.DS_Store": b"y", "job.log": LOG}),
    "a.tar": tarred({"d/job.log": LOG}, ""),
    "a.tar.gz": tarred({"d/job.log": LOG}, "gz"),
    "a.tar.xz": tarred({"d/job.log": LOG}, "xz"),
    "a.tbz2": tarred({"d/job.log": LOG}, "bz2"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive(folder, name):
    """Also where its name says nothing; directories and hidden files are passed over."""
    for path in (folder / name, folder / f"download_{name.replace('.', '_')}"):
        assert load(path, ARCHIVES[name]).total_bytes == 400


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (zipped({"a.txt": b"x"}, zipfile.ZIP_LZMA), "a.txt in it is not packed with deflate"),
        (zipped({"x/a.log": LOG, "y/a.log": LOG}), "two files are called a.log"),
        (zipped({"a.zip": zipped({"a.log": LOG})}), "a zip archive in an archive or among other files"),
        (zipped({"d/": b""}), "no traces in it"),
        (b"nothing", "is not a readable archive"),
        (ARCHIVES["a.zip"].replace(b"job", b"xob", 1), "is not a readable archive"),
        (ARCHIVES["a.zip"][:-30], "is not a readable archive"),
        (ARCHIVES["a.tar.xz"][:-40], "is not a readable archive"),
    ],
)
def test_an_archive_that_cannot_be_read(folder, content, said):
    """One line."""
    with pytest.raises(WorkloadError, match=said):
        load(folder / "job.zip", content)


def test_an_encrypted_member(folder):
    """Bit 0 of its flags, in its head and in the directory of the archive."""
    content = bytearray(zipped({"job.log": LOG}, zipfile.ZIP_STORED))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + place] |= 1
    with pytest.raises(WorkloadError, match=r"job.log in it is encrypted; unpack it first"):
        load(folder / "job.zip", bytes(content))


def test_what_is_no_archive(folder):
    """A packed log that is called one, any other file, and links in an archive."""
    assert load(folder / "job.tar.gz", gzip.compress(LOG)).total_bytes == 400
    with pytest.raises(WorkloadError, match="has the form of no trace"):
        load(folder / "notes.txt", b"nothing")
    link, log, target = tarfile.TarInfo("last.log"), tarfile.TarInfo("job.log"), io.BytesIO()
    link.type, link.linkname, log.size = tarfile.SYMTYPE, "job.log", len(LOG)
    with tarfile.open(fileobj=target, mode="w") as file:
        file.addfile(link)
        file.addfile(log, io.BytesIO(LOG))
    assert load(folder / "links.tar", target.getvalue()).total_bytes == 400


def test_limits_of_archives_and_folders(folder, tmp_path, monkeypatch):
    """Files, and bytes of all of them; as many are read."""
    content = zipped({"a.log": LOG, "b.log": LOG})
    for name, most, said in (
        ("MAX_FILES", 2, "job.zip: more than 1 files"),
        ("MAX_UNPACKED", 2 * len(LOG), f"job.zip: more than {2 * len(LOG) - 1} bytes once unpacked"),
    ):
        monkeypatch.setattr(files, name, most)
        (folder / "job.zip").write_bytes(content)
        with files.files_of([folder / "job.zip"]) as found:
            assert [path.name for path in found] == ["a.log", "b.log"]
        monkeypatch.setattr(files, name, most - 1)
        with pytest.raises(WorkloadError, match=said):
            load(folder / "job.zip", content)
        monkeypatch.undo()
    for name in "abc":
        (tmp_path / name).write_bytes(LOG)
    for most in (3, 2):
        monkeypatch.setattr(files, "MAX_FILES", most)
        with pytest.raises(WorkloadError, match="3 files in it are more than 2" if most == 2 else "a: the rank of"):
            load_workload(tmp_path)
    assert files.copy_unpacked(tmp_path, io.BytesIO(LOG), tmp_path / "a", len(LOG)) == len(LOG)


def test_which_files_are_traces(tmp_path):
    """Of a folder, of a pattern and of a list: no hidden files, no lists of groups beside others, and each file once."""
    listed = b'{"g": [0, 1]}'
    for name in ("w.0.et", "w.json", "a.json", ".a.log", "README.log", "b.LOG"):
        (tmp_path / name).write_bytes(LOG)
    for name in ("groups.json", "groups.JSON", "groups.txt"):
        (tmp_path / name).write_bytes(listed)
    (tmp_path / "d.log").mkdir()
    every, alone = ["a.json", "b.LOG", "groups.txt", "w.0.et"], ["groups.json"]
    for paths, names in (
        ([""], every),
        (["", "b.LOG"], every),
        (["*.et", "groups.json"], ["w.0.et"]),
        (alone, alone),
        (["groups.json", "groups.JSON"], ["groups.json", "groups.JSON"]),
    ):
        with files.files_of([tmp_path / path for path in paths]) as found:
            assert [path.name for path in found] == names
    with pytest.raises(WorkloadError, match=r"\*.xyz: matches no file"):
        load_workload(tmp_path / "*.xyz")


def test_an_xz_file_of_a_large_dictionary(folder):
    """A dictionary of a gigabyte is refused, those of all settings of xz are not."""
    large = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2**30}]
    with pytest.raises(WorkloadError, match="cannot be read to its end: Memory usage limit exceeded"):
        load(folder / "job.log.xz", lzma.compress(LOG, filters=large))
    assert load(folder / "job.log.xz", lzma.compress(LOG, preset=9 | lzma.PRESET_EXTREME)).total_bytes == 400


WHOLE = {
    **ARCHIVES,
    "job.log.xz": lzma.compress(LOG),
    "job.log.bz2": bz2.compress(LOG),
}


@examples(150)
@given(name=st.sampled_from(sorted(WHOLE)), data=st.data())
def test_cut_and_changed_files_raise_nothing_else(folder, name, data):
    """A workload or one line."""
    content = bytearray(WHOLE[name])
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    for damaged in (content, content[: data.draw(st.integers(0, len(content)))]):
        assert one_line(load, folder / name, bytes(damaged)).isprintable()


def test_names_that_are_no_patterns(tmp_path):
    """A file whose name has brackets is that file; a missing one is refused in the same words alone and among others."""
    for name, size in (("a[1].log", 8), ("a1.log", 16)):
        (tmp_path / name).write_text(f"AR;{size};0,1\n")
    assert load_workload(tmp_path / "a[1].log").total_bytes == 8
    assert load_workload(tmp_path / "a[12].log").total_bytes == 16
    for name in ("none.log", "none.json"):
        for paths in ([name], ["a1.log", name]):
            with pytest.raises(WorkloadError, match=f"{name}: no such file; give a trace"):
                load_workload([tmp_path / one for one in paths])
