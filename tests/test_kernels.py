"""Compiled kernels: NumPy gives the same for small inputs, and they are kept where it is allowed."""

import os
import pickle
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opticcl
from opticcl import kernels
from opticcl.circuits import _lasers, terarack
from opticcl.routing.colouring import edge_colouring
from opticcl.routing.dimension_order import dimension_order
from opticcl.simulate._ring_trees import ring_tree_lengths
from opticcl.verify import light
from tests.profiles import examples


@pytest.fixture
def cache(monkeypatch):
    """No directory is chosen yet."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(sys.modules["numba"].config, "CACHE_DIR", "")


def both(run):
    """The result with NumPy and with kernels."""
    with kernels.always_compiled():
        compiled = run()
    with kernels.never_compiled():
        return run(), compiled


def equal(one, other):
    """All arrays of both are equal."""
    return len(one) == len(other) and all(map(np.array_equal, one, other))


@examples(40)
@given(st.data())
def test_paths_along_rows_and_columns(data):
    """Of any lengths, none among them, in both orders."""
    rows, columns, n = (data.draw(st.integers(1, 7)) for _ in range(3))
    src, dst = (
        np.array(data.draw(st.lists(st.integers(0, rows * columns - 1), min_size=n, max_size=n))) for _ in range(2)
    )
    first = data.draw(st.sampled_from(["row", "column"]))
    assert equal(*both(lambda: dimension_order(src, dst, columns, first)))


@examples(30)
@given(st.data())
def test_segments_of_fibre_rings(data):
    """Along rows and columns of a torus of rings, both ways."""
    columns, rows, n = (data.draw(st.integers(1, 6)) for _ in range(3))
    src = np.array([data.draw(st.integers(0, columns * rows - 1)) for _ in range(n)])
    direction = np.array([data.draw(st.integers(0, 3)) for _ in range(n)])
    offsets = np.cumsum([0, *(data.draw(st.integers(0, 5)) for _ in range(n))])
    found = [np.empty(offsets[-1], np.int32) for _ in range(2)]
    for fill, hops in zip((terarack._fill, terarack._fill_columns), found, strict=True):
        fill(src, direction, offsets, columns, rows, hops)
    assert np.array_equal(*found)


@examples(40)
@given(st.data())
def test_usage_and_settings(data):
    """With circuits that use several resources, and settings that clash."""
    circuits, rows, step = (data.draw(st.integers(1, top)) for top in (6, 12, 3))
    lo = np.array([data.draw(st.integers(0, 4)) for _ in range(circuits)], np.int32)
    n = np.array([data.draw(st.integers(1, 3)) for _ in range(circuits)], np.int32)
    alone = data.draw(st.booleans())
    rows = circuits if alone else rows
    owner = None if alone else np.array([data.draw(st.integers(0, circuits - 1)) for _ in range(rows)])
    index = np.array(
        [data.draw(st.integers(0, 3)) for _ in range(rows)], data.draw(st.sampled_from([np.int32, np.int64]))
    )
    setting = np.array([data.draw(st.integers(0, 2)) for _ in range(rows)])
    depth = data.draw(st.sampled_from([1, 16]))

    def counted():
        counts = np.zeros(4 * depth, np.int32)
        light.count_usage(index, owner, lo, n, step, depth, counts)
        return [counts]

    def written():
        table = np.full(4 * depth, -1, np.int64)
        table[data_at] = 1
        return [light._write_settings(index, owner, setting, lo, n, step, depth, table), table]

    data_at = data.draw(st.integers(0, 4 * depth - 1))
    assert equal(*both(counted))
    assert equal(*both(written))


@examples(40)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(4, 9))
def test_lasers_of_equal_transfers_are_shared_in_turn(many, width):
    """As the kernel does that gives every laser to the slowest."""
    pair = np.repeat(np.arange(len(many)), many)
    if len(pair) == len(many):
        return
    _, own = _lasers._shares(pair, np.full(len(pair), 3), len(many), width)
    by_kernel = np.ones(len(pair), np.int64)
    _lasers._share_out(np.full(len(pair), 3), np.searchsorted(pair, np.arange(len(many) + 1)), width, by_kernel)
    assert np.array_equal(own, by_kernel)


@examples(30)
@given(st.integers(1, 6), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=14))
def test_colours_of_edges(vertices, edges):
    """The same by Python, where a kernel takes longer to compile."""
    left, right = np.array([(a % vertices, b % vertices) for a, b in edges], np.int64).reshape(-1, 2).T
    most = max([0, *np.bincount(left), *np.bincount(right)])
    assert equal(*both(lambda: [edge_colouring(left, right, vertices, int(most))]))


@pytest.mark.parametrize("positions", [2, 3, 8, 33, 100])
def test_lengths_of_ring_trees(positions):
    """Of rings of even and odd lengths."""
    assert np.array_equal(*both(lambda: ring_tree_lengths.__wrapped__(positions)))


class Kernel(SimpleNamespace):
    """Attributes of a compiled function."""

    __hash__ = object.__hash__


@pytest.fixture
def kernel(monkeypatch):
    """A kernel that is neither loaded nor on the disk, and the index of those of its kind that are."""
    monkeypatch.setattr(kernels, "_rows_done", {})
    index = {}
    file = SimpleNamespace(_load_index=lambda: index)
    return Kernel(py_func=sum, overloads=[], _cache=SimpleNamespace(_cache_file=file)), index


def test_a_kernel_is_compiled_after_as_much_work_as_that_takes(kernel):
    """Many small calls count as one large one; then it is used on any number of rows."""
    one, _ = kernel
    calls = kernels.COMPILED_FROM // kernels.LOADED_FROM
    taken = [kernels.worth_compiling(kernels.LOADED_FROM, one) for _ in range(calls)]
    assert not taken[0]
    assert taken[-1]
    assert taken == sorted(taken)
    assert kernels.worth_compiling(1, one)
    assert kernels.chosen(one, 1) is one


def test_a_kernel_on_the_disk_is_loaded_sooner(kernel):
    """Unless it is of another source, or cannot be read."""
    one, index = kernel
    assert not kernels.worth_compiling(kernels.LOADED_FROM, one)
    assert kernels.chosen(one, 1) is one.py_func
    index["a signature"] = "a file"
    assert kernels.worth_compiling(1, one)
    for error in (OSError, EOFError, pickle.UnpicklingError):
        one._cache._cache_file._load_index = Mock(side_effect=error)
        assert not kernels.worth_compiling(1, one)
    one._cache = None
    assert not kernels.worth_compiling(1, one)


def test_a_kernel_that_is_loaded_is_used(kernel):
    """On any number of rows."""
    one, _ = kernel
    assert not kernels.worth_compiling(1, one)
    one.overloads.append("a signature")
    assert kernels.worth_compiling(1, one)


def test_what_is_on_the_disk_is_what_numba_loads(monkeypatch, tmp_path):
    """Of a kernel that is on the disk and not loaded, in this version of numba: its file may be newer, not another."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    source = tmp_path / "sums.py"

    def made():
        return numba.njit(cache=True)(runpy.run_path(str(source))["added"])

    source.write_text("def added(a, b):\n    return a + b\n", "utf-8")
    one, other = made(), made()
    assert not kernels._is_kept(one)
    assert one(1, 2) == 3
    assert kernels._is_kept(other)
    assert not kernels._is_loaded(other)
    os.utime(source, (2e9, 2e9))
    assert kernels._is_kept(made())
    source.write_text("def added(a, b):\n    return b + a\n", "utf-8")
    assert not kernels._is_kept(made())


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
def test_a_first_comparison_compiles_next_to_nothing(tmp_path):
    """In a new process, with an empty directory of kernels: its work is done sooner without them."""
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(Path(opticcl.__file__).parents[1])}
    words = ["-m", "opticcl", "compare", "--nodes", "64"]
    subprocess.run([sys.executable, *words], capture_output=True, check=True, env=variables)
    assert len([*tmp_path.rglob("*.nbi")]) <= 3


LOADED = """
import importlib, sys
from pathlib import Path
import opticcl
from opticcl.plans.warm import kernels
package = Path(opticcl.__file__).parent
for file in package.rglob("*.py"):
    if "import njit" in (text := file.read_text("utf-8")) or ", njit" in text:
        importlib.import_module(".".join(("opticcl", *file.relative_to(package).with_suffix("").parts)))
kept = loaded = 0
for kernel in kernels().values():
    file = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    for signature, *_ in file._load_index() if file else ():
        kernel.compile(signature)
        kept += 1
    loaded += sum(kernel.stats.cache_hits.values())
assert "numba.misc.gdb_hook" not in sys.modules  # what only the compiler needs
print(kept, loaded)
"""


@pytest.mark.deep
def test_all_kernels_are_compiled_from_nothing(tmp_path):
    """In an empty directory, where no kernel finds another one that was compiled before."""
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(Path(opticcl.__file__).parents[1])}
    words = ["-m", "opticcl", "warm", "--all"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, env=variables)
    assert done.returncode == 0, done.stderr
    assert " 0 there already" in done.stdout
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=False, env=variables)
    assert done.returncode == 0, done.stderr
    kept, loaded = map(int, done.stdout.split())
    assert kept == loaded > 50


@pytest.mark.deep
def test_after_warm_a_comparison_compiles_nothing(tmp_path):
    """In a new process, with an empty directory of kernels."""
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(Path(opticcl.__file__).parents[1])}
    code = (
        "from opticcl.fabrics import FABRICS\nfrom opticcl.plans.compare import compare\n"
        "from opticcl.plans.warm import kernels\n"
        "compare(FABRICS.names(), 'all_reduce', '100MB', nodes=64)\n"
        "assert len(kernels()) > 20\n"
        "print(sum(sum(one.stats.cache_misses.values()) for one in kernels().values()))"
    )
    for words in (["-m", "opticcl", "warm"], ["-c", code]):
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True, env=variables)
    assert done.stdout.strip() == "0"


SUMS = """
import sys
from opticcl.kernels import njit


@njit
def added(a, b):
    return a + b


if __name__ == "__main__":
    print("ready", flush=True)
    print(*(added(*map(eval, pair.split("+"))) for pair in sys.argv[1:]))
    print(*(sum(counts.values()) for counts in (added.stats.cache_misses, added.stats.cache_hits)))
"""


def test_processes_compile_a_kernel_once(tmp_path):
    """Those that want it at the same time wait for the first; none removes from the disk what another has compiled."""
    fcntl = pytest.importorskip("fcntl")
    source = tmp_path / "sums.py"
    source.write_text(SUMS, "utf-8")
    variables = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
        "PYTHONPATH": str(Path(opticcl.__file__).parents[1]),
    }

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


SORTED = """
import math, sys
import numpy as np
from opticcl.kernels import njit


@njit
def spread(values, width):
    kept = np.sort(values)
    made = np.zeros((len(kept), width))
    for i in range(len(kept)):
        made[i, kept[i] % width] = math.floor(kept[i] / 3.0) + np.log2(kept[i] + 1)
    return made, kept.sum(), (width, bool(width % 2))


@njit
def doubled(values):
    return 2 * values


print(*map(np.sum, spread(np.array([7, 3, 1]), 4)[:2]), *spread(np.array([7, 3, 1]), 5)[2])
print("numba.misc.gdb_hook" in sys.modules, *(len(one) for one in (spread.stats.cache_misses, spread.stats.cache_hits)))
print(doubled(len(sys.argv)), doubled(1.5))
"""


def test_a_kernel_on_the_disk_is_loaded_without_the_compiler(tmp_path):
    """With arrays that it allocates, and functions of C; what is compiled behind it is compiled as ever."""
    source = tmp_path / "sorted.py"
    source.write_text(SORTED, "utf-8")
    variables = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
        "PYTHONPATH": str(Path(opticcl.__file__).parents[1]),
    }

    def said():
        done = subprocess.run([sys.executable, str(source)], capture_output=True, text=True, check=True, env=variables)
        return done.stdout.splitlines()

    first, second = said(), said()
    assert first == ["9.0 11 5 True", "True 1 0", "2 3.0"]
    assert second == ["9.0 11 5 True", "False 0 1", "2 3.0"]
    source.write_text(SORTED.replace("2 * values", "values + 1"), "utf-8")
    assert said() == ["9.0 11 5 True", "True 1 0", "2 2.5"]


def test_a_numba_that_loads_otherwise_is_left_alone():
    """Without the parts that are used here, kernels are loaded as numba does."""
    kept = SimpleNamespace(load_overload="as numba does")
    kernels._load_without_compiler(SimpleNamespace(_cache=kept))
    kernels._load_without_compiler(SimpleNamespace())
    assert kept.load_overload == "as numba does"


def test_a_file_of_kernels_is_locked_until_all_are_compiled(tmp_path):
    """A kernel of the same file that the first one calls locks nothing, and releases nothing."""
    fcntl = pytest.importorskip("fcntl")
    source = tmp_path / "sums.py"
    source.write_text(SUMS, "utf-8")

    def is_free():
        with source.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    with kernels._alone_with(str(source)):
        assert not is_free()
        with kernels._alone_with(str(source)):
            assert not is_free()
        assert not is_free()
    assert is_free()
    with kernels._alone_with(str(tmp_path / "nowhere.py")):
        assert is_free()
