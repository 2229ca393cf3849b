"""Compiled kernels: when they are worth loading, and where they are kept between processes.

Numba keeps what it compiled beside the package, where that is writable. Where it is not, `keep_kernels` names a directory of
the user, so that nothing is compiled twice.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["always_compiled", "keep_kernels", "worth_compiling"]

COMPILED_FROM = 1 << 14  # rows from which a kernel is faster than NumPy by more than it takes to load
_forced = False


def worth_compiling(rows: int) -> bool:
    """Whether a compiled kernel is to be used on that many rows, where NumPy can do the same."""
    return _forced or rows >= COMPILED_FROM


@contextmanager
def always_compiled() -> Iterator[None]:
    """Within this, kernels are used on any number of rows."""
    global _forced
    before, _forced = _forced, True
    try:
        yield
    finally:
        _forced = before


def keep_kernels(package: Path = Path(__file__).parent) -> Path | None:
    """Choose where compiled kernels are kept; called before a kernel is defined.

    Args:
        package: directory of the package.
    Returns: the directory that was chosen; None if it is that of the package or of `NUMBA_CACHE_DIR`.
    """
    wanted = os.environ.get("NUMBA_CACHE_DIR")
    if _writable(Path(wanted)) if wanted else os.access(package, os.W_OK):
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    chosen = Path(home) / "opticcl" / "kernels"
    if not _writable(chosen):
        import atexit
        import shutil
        import tempfile

        chosen = Path(tempfile.mkdtemp(prefix="opticcl-kernels-"))  # a name that no other user could have prepared
        atexit.register(shutil.rmtree, chosen, ignore_errors=True)
        tried = f"neither NUMBA_CACHE_DIR={wanted}" if wanted else f"neither {package}"
        print(
            f"opticcl: {tried} nor {home} can be written, so every process compiles its kernels again; "
            "set NUMBA_CACHE_DIR to a directory of yours",
            file=sys.stderr,
        )
    os.environ["NUMBA_CACHE_DIR"] = str(chosen)
    if "numba" in sys.modules:  # it has read its settings already
        sys.modules["numba"].config.CACHE_DIR = str(chosen)
    return chosen


def _writable(folder: Path) -> bool:
    """Whether files can be written in a directory, which is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
