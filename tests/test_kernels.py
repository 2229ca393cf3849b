"""Compiled kernels: they are kept where it is allowed, and compiled once."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opticcl
from opticcl import kernels
from opticcl.compiler_lock import CompilerLock
from opticcl.ir import Op
from opticcl.ir.phases import ChunkEvents
from opticcl.verify.data.player import ALL, ONE, play_events, rows_by_chunk
from tests.profiles import examples


@pytest.fixture
def cache(monkeypatch):
    """No directory is chosen yet."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")


def test_kernels_are_kept_with_the_user(cache, monkeypatch, tmp_path):
    """Where the package is not writable; where nothing is, in a directory that ends with the process, with a message."""
    writable = {str(tmp_path / "home" / "opticcl" / "kernels")}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) in writable)
    assert kernels.keep_kernels() == tmp_path / "home" / "opticcl" / "kernels"
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / "home" / "opticcl" / "kernels")


def test_no_directory_is_writable(cache, monkeypatch, tmp_path, capsys):
    """One line says what to set."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "given"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    chosen = kernels.keep_kernels()
    assert chosen.is_dir()
    said = capsys.readouterr().err
    assert f"neither NUMBA_CACHE_DIR={tmp_path / 'given'} nor" in said
    assert said.count("\n") == 1
    chosen.rmdir()


def test_a_writable_package_keeps_its_own(cache):
    """And a directory that the user names is left alone."""
    assert kernels.keep_kernels(Path(__file__).parent) is None
    assert "NUMBA_CACHE_DIR" not in os.environ


@pytest.mark.deep
def test_all_kernels_are_compiled_once(tmp_path):
    """From an empty directory, where no kernel finds another one that was compiled before; then all are loaded."""
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(Path(opticcl.__file__).parents[1])}
    words = [sys.executable, "-m", "opticcl", "warm", "--all"]
    for said in (" 0 there already", "0 kernels compiled"):
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=variables)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout


@pytest.mark.deep
def test_after_warm_a_comparison_compiles_nothing(tmp_path):
    """In a new process, with an empty directory of kernels."""
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(Path(opticcl.__file__).parents[1])}
    code = (
        "from opticcl.fabrics import FABRICS\nfrom opticcl.plans.compare import compare\n"
        "from opticcl.kernels import compiled_kernels\n"
        "compare(FABRICS.names(), 'all_reduce', '100MB', nodes=64)\n"
        "assert len(compiled_kernels()) > 20\n"
        "print(sum(sum(one.stats.cache_misses.values()) for one in compiled_kernels().values()))"
    )
    for words in (["-m", "opticcl", "warm"], ["-c", code]):
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True, env=variables)
    assert done.stdout.strip() == "0"


LISTED = """
import sys
from opticcl import cli
assert cli.run_command() == 0
assert "numba" not in sys.modules
"""


def test_numba_is_imported_when_a_kernel_is_called():
    """Not for the list of all names."""
    done = subprocess.run([sys.executable, "-c", LISTED, "list"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "torus" in done.stdout


SUMS = """
import sys
from opticcl.kernels import njit


@njit
def added(a, b):
    return shifted(a) + b


@njit(cache=False)
def shifted(a):
    return a + 0


def counted():
    return [sum(counts.values()) for counts in (added.compiled.stats.cache_misses, added.compiled.stats.cache_hits)]


if __name__ == "__main__":
    print("ready", flush=True)
    print(*(added(*map(eval, pair.split("+"))) for pair in sys.argv[1:]))
    print(*counted())
"""


@pytest.fixture
def sums(tmp_path):
    """A file of kernels, one of which calls another, and the variables of processes that execute it."""
    source = tmp_path / "sums.py"
    source.write_text(SUMS, "utf-8")
    paths = os.pathsep.join([str(Path(opticcl.__file__).parents[1]), str(tmp_path)])
    return source, {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": paths}


def test_processes_compile_a_kernel_once(sums, tmp_path):
    """Those that want it at the same time wait for the first; none removes from the disk what another has compiled."""
    fcntl = pytest.importorskip("fcntl")
    source, variables = sums

    def started(*pairs):
        words = [sys.executable, str(source), *pairs]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=variables)

    with source.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        pair = [started("1+2", "1.5+2"), started("3+4", "1+2.5")]
        assert [one.stdout.readline() for one in pair] == ["ready\n"] * 2
        assert not list(tmp_path.rglob("*.nbi"))
    said = [one.communicate(timeout=120)[0].splitlines() for one in pair]
    assert [lines[0] for lines in said] == ["3 3.5", "7 3.5"]
    counts = [tuple(map(int, lines[1].split())) for lines in said]
    assert sorted(counts) == [(1, 1), (2, 0)]
    with started("1+2", "1.5+2", "1+2.5") as last:
        assert last.stdout.read().splitlines() == ["ready", "3 3.5 3.5", "0 3"]


IMPORTED = """
import sums
from sums import added
print(added(1, 2), added(1, 2), added.__name__, *sums.counted())
"""


def test_a_kernel_is_compiled_again_when_its_file_changes(sums):
    """With those that it calls."""
    source, variables = sums

    def said():
        done = subprocess.run(
            [sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True, env=variables
        )
        return done.stdout.strip()

    assert [said(), said()] == ["3 3 added 1 0", "3 3 added 0 1"]
    source.write_text(SUMS.replace("a + 0", "a + 20"), "utf-8")
    assert said() == "23 23 added 1 0"


IMPORTING = """
from opticcl.kernels import njit
from sums import added


@njit
def doubled(a):
    return 2 * a


print(doubled(2), flush=True)
print(added(1, 2))
"""


def test_a_kernel_is_compiled_beside_one_of_another_file(sums):
    """A module that imports a kernel calls its own first, and does not wait for a process that compiles the other."""
    fcntl = pytest.importorskip("fcntl")
    source, variables = sums
    (source.parent / "importing.py").write_text(IMPORTING, "utf-8")
    words = [sys.executable, "importing.py"]
    with source.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=variables, cwd=source.parent)
        assert process.stdout.readline() == "4\n"
    assert process.communicate(timeout=120)[0] == "3\n"


def test_a_kernel_that_says_what_it_writes_is_compiled_once():
    """Whatever of the rest can be written, also in tuples; a kernel that writes more is not compiled."""
    values = np.arange(3)
    frozen = values.copy()
    frozen.flags.writeable = False
    for one, pair in ((values, (values, frozen)), (frozen, (frozen, frozen)), (values, (frozen, values))):
        sums = np.zeros(3, np.int64)
        _add_all(one, pair, sums)
        assert sums.tolist() == [0, 3, 6]
    assert values.flags.writeable
    assert len(_add_all.compiled.nopython_signatures) == 1
    with pytest.raises(numba.TypingError, match="readonly"):
        _add_in_place(values, values)


@kernels.njit(cache=False, writes=("sums",))
def _add_all(one, pair, sums):
    for i in range(len(sums)):
        sums[i] = one[i] + pair[0][i] + pair[1][i]


@kernels.njit(cache=False, writes=())
def _add_in_place(one, other):
    one[0] = other[0]


def test_the_file_is_locked_until_the_compiler_is_done(tmp_path):
    """A kernel that the first one calls locks nothing, and releases nothing."""
    fcntl = pytest.importorskip("fcntl")
    file = tmp_path / "locked"
    file.touch()

    def is_free():
        with file.open("rb") as opened:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    lock, found = CompilerLock(lambda: file), [is_free()]
    for change in (lock.on_start, lock.on_start, lock.on_end, lock.on_end):
        change(None)
        found.append(is_free())
    assert found == [True, False, False, False, True]
    lock = CompilerLock(lambda: tmp_path / "nowhere")
    lock.on_start(None)
    lock.on_end(None)


@examples(60)
@given(seed=st.integers(0, 2**32 - 1))
def test_kernels_of_few_turns_are_as_those_that_numba_compiles(seed):
    """The player of chunks on drawn transfers, most of them wrong, before numba is imported and after it."""
    random = np.random.default_rng(seed)
    ranks, rows = int(random.integers(2, 7)), int(random.integers(1, 25))
    src = random.integers(0, ranks, rows)
    dst = (src + random.integers(1, ranks, rows)) % ranks
    step = np.sort(random.integers(0, 5, rows))
    op = random.choice([int(op) for op in Op], rows)
    lo, count, apart = random.integers(0, 4, rows), random.integers(1, 3, rows), random.integers(1, 3, rows)
    columns = [column.astype(np.int32) for column in (lo, count, apart)]
    events = ChunkEvents(step, src, dst, op, np.ones(rows, np.int32))
    no_table = np.zeros((1, 1), bool)
    everyone, one = (ALL, np.zeros(1, np.int64), no_table), (ONE, random.integers(0, ranks, 8), no_table)
    before, after = (everyone if random.random() < 0.7 else one for _ in range(2))

    def played():
        starts, by_chunk = rows_by_chunk.for_turns(rows)(*columns, 0, 8)
        sums, keeps_apart, stale = bits
        how = {"sums": sums, "num_ranks": ranks, "apart": keeps_apart, "stale": stale}
        return starts, by_chunk, *play_events(events, starts, by_chunk, before, after, **how)

    bits = random.random(3) < 0.5
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "numba", sys.modules["numba"])
        compiled = played()
        patch.delitem(sys.modules, "numba")
        with np.errstate(all="raise"):
            interpreted = played()
    for theirs, ours in zip(compiled, interpreted, strict=True):
        assert np.array_equal(theirs, ours)


def test_a_small_plan_is_verified_without_numba():
    """And a fabric comes without the others: a group of processes starts sooner so."""
    code = (
        "import sys\nfrom opticcl.plans.plan import compile\n"
        "from opticcl.fabrics import fabric\nassert fabric('ideal:nodes=4').num_nodes == 4\n"
        "assert 'opticcl.fabrics.superpod' not in sys.modules\n"
        "assert compile('ideal:nodes=4', 'all_reduce', 1024).verify().ok\nassert 'numba' not in sys.modules"
    )
    paths = str(Path(opticcl.__file__).parents[1])
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": paths})
