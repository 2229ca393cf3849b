"""The user's own collective, as a TOML or JSON file.

::

    name = "expert_weights"      # any but that of a registered collective
    ranks = 8
    reduces = false              # true: what ranks hold of a chunk is added; false: all who hold it hold the same

    [[chunks]]
    before = [0]                 # ranks that hold it at the start
    after = [1, 2, 3]            # ranks that must have it at the end; "all" for every rank
    count = 2                    # so many chunks alike, 1 if left out
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from opticcl.collective import own_collective
from opticcl.errors import ParameterError
from opticcl.ir import Collective
from opticcl.synthesis.problem import MOST_PIECES

__all__ = ["read_collective"]

MOST_BYTES = 1 << 26
Ranks = list[int] | Literal["all"]


class _Chunk(msgspec.Struct, forbid_unknown_fields=True):
    before: Ranks
    after: Ranks
    count: int = 1


class _Own(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    ranks: int
    chunks: list[_Chunk]
    reduces: bool = False


def read_collective(path: Path | str) -> Collective:
    """Read a collective.

    Raises: ParameterError: not readable, of another form, or nobody can do it; the text says where.
    """
    path = Path(path)
    own = _read(path)
    if not own.name or not own.name.isprintable() or len(own.name) > 80:
        raise ParameterError(f"{path}: name={own.name[:80]!r} is no name; write one of 1 to 80 letters")
    if not 1 <= own.ranks <= MOST_PIECES:
        raise ParameterError(f"{path}: ranks={own.ranks}; there is at least 1 and at most {MOST_PIECES:,}")
    if not own.chunks:
        raise ParameterError(f"{path}: chunks: there are none; write at least one [[chunks]]")
    rows: list[np.ndarray] = []
    total = 0
    for i, chunk in enumerate(own.chunks):
        where = f"{path}: chunks[{i}]"
        total += chunk.count
        if chunk.count < 1 or total * own.ranks > MOST_PIECES:
            most = MOST_PIECES // own.ranks
            raise ParameterError(f"{where}: count={chunk.count}; each is 1 or more, and all together at most {most:,}")
        before, after = (_flags(getattr(chunk, name), own.ranks, f"{where}: {name}") for name in ("before", "after"))
        if not before.any():
            raise ParameterError(f"{where}: before=[]: nobody holds it, so nobody can send it; name a rank")
        if not after.any():
            raise ParameterError(f"{where}: after=[]: nobody wants it; leave the chunk out, or name a rank")
        rows += [np.stack([before, after])] * chunk.count
    table = np.array(rows)
    return own_collective(own.name, table[:, 0], table[:, 1], own.reduces)


def _read(path: Path) -> _Own:
    if path.suffix not in (".toml", ".json"):
        raise ParameterError(f"{path}: a collective ends in .toml or .json")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ParameterError(f"{path}: is larger than {MOST_BYTES >> 20} MiB; use count for chunks alike")
        text = path.read_text("utf-8")
        content = tomllib.loads(text) if path.suffix == ".toml" else msgspec.json.decode(text)
        return msgspec.convert(content, _Own, strict=True)
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.DecodeError, RecursionError) as error:
        said = str(error).replace("$.", "").replace(" - at `$`", "")
        raise ParameterError(f"{path}: is no collective: {said.splitlines()[0][:200]}") from None


def _flags(ranks: Ranks, num_ranks: int, where: str) -> np.ndarray:
    """bool (num_ranks,).

    Raises: ParameterError: a rank that is not there, or named twice.
    """
    flags = np.zeros(num_ranks, bool)
    for rank in range(num_ranks) if ranks == "all" else ranks:
        assert isinstance(rank, int)
        if not 0 <= rank < num_ranks:
            raise ParameterError(f"{where}: there is no rank {rank}; ranks are 0 to {num_ranks - 1}")
        if flags[rank]:
            raise ParameterError(f"{where}: rank {rank} is named twice; name it once")
        flags[rank] = True
    return flags
