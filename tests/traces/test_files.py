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
from opticcl.traces import load_workload

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
    "a.tar": tarred({"d/job.log": LOG}, ""),
    "a.tar.gz": tarred({"d/job.log": LOG}, "gz"),
    "a.tar.xz": tarred({"d/job.log": LOG}, "xz"),
    "a.tbz2": tarred({"d/job.log": LOG}, "bz2"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive(folder, name):
    """Also where its name says nothing."""
    for path in (folder / name, folder / f"download_{name.replace('.', '_')}"):
        assert load(path, ARCHIVES[name]).total_bytes == 400


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (zipped({"a.txt": b"x"}, zipfile.ZIP_LZMA), "a.txt in it is not packed with deflate"),
        (zipped({"x/a.log": LOG, "y/a.log": LOG}), "two files are called a.log"),
        (zipped({"a.zip": zipped({"a.log": LOG})}), "a zip archive in an archive or among other files"),
        (zipped({"d/": b""}), "no traces in it"),
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
