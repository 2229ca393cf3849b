"""Reader of a custom collective, a TOML or JSON file.

::

    name = "expert_weights"      # any but that of a registered collective
    ranks = 8
    reduces = false              # true: contributions to a chunk are summed; false: all holders of a chunk hold the same data

    [[chunks]]
    before = [0]                 # ranks that hold it at the start
    after = [1, 2, 3]            # ranks that must hold it at the end; "all" for every rank
    count = 2                    # number of identical chunks, 1 by default
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from opticcl.collective import custom_collective
from opticcl.errors import ParameterError
from opticcl.ir import Collective
from opticcl.synthesis.problem import MOST_PIECES
from opticcl.units import toml_number

__all__ = ["read_collective"]

MOST_BYTES = 1 << 26
Ranks = list[int] | Literal["all"]


class _Chunk(msgspec.Struct, forbid_unknown_fields=True):
    before: Ranks
    after: Ranks
    count: int = 1


class _CollectiveFile(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    ranks: int
    chunks: list[_Chunk]
    reduces: bool = False


def read_collective(path: Path | str) -> Collective:
    """Read a custom collective.

    Raises: ParameterError: the file is not readable, has another form, or describes an impossible collective; the message
        names the field.
    """
    path = Path(path)
    content = _read(path)
    if not content.name or not content.name.isprintable() or len(content.name) > 80:
        raise ParameterError(f"{path}: name={content.name[:80]!r}: a name has 1 to 80 printable characters")
    if not 1 <= content.ranks <= MOST_PIECES:
        raise ParameterError(f"{path}: ranks={content.ranks} is not 1 to {MOST_PIECES:,}")
    if not content.chunks:
        raise ParameterError(f"{path}: chunks: the list is empty; write at least one [[chunks]]")
    rows: list[np.ndarray] = []
    total = 0
    for i, chunk in enumerate(content.chunks):
        where = f"{path}: chunks[{i}]"
        total += chunk.count
        if chunk.count < 1 or total * content.ranks > MOST_PIECES:
            most = MOST_PIECES // content.ranks
            raise ParameterError(
                f"{where}: count={chunk.count}: each count is at least 1 and their sum at most {most:,}"
            )
        before, after = (
            _flags(getattr(chunk, name), content.ranks, f"{where}: {name}") for name in ("before", "after")
        )
        if not before.any():
            raise ParameterError(f"{where}: before=[]: no rank holds the chunk, so none can send it; name a rank")
        if not after.any():
            raise ParameterError(f"{where}: after=[]: no rank needs the chunk; remove the chunk or name a rank")
        rows += [np.stack([before, after])] * chunk.count
    table = np.array(rows)
    return custom_collective(content.name, table[:, 0], table[:, 1], content.reduces)


def _read(path: Path) -> _CollectiveFile:
    if path.suffix not in (".toml", ".json"):
        raise ParameterError(f"{path}: a custom collective is a .toml or .json file")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ParameterError(f"{path}: is larger than {MOST_BYTES >> 20} MiB; use count for identical chunks")
        text = path.read_text("utf-8")
        content = tomllib.loads(text, parse_float=toml_number) if path.suffix == ".toml" else msgspec.json.decode(text)
        return msgspec.convert(content, _CollectiveFile, strict=True)
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        said = str(error).replace("$.", "").replace(" - at `$`", "")
        raise ParameterError(f"{path}: is not a custom collective: {said.splitlines()[0][:200]}") from None


def _flags(ranks: Ranks, num_ranks: int, where: str) -> np.ndarray:
    """Flags of the given ranks, bool (num_ranks,).

    Args:
        num_ranks: ranks of the collective [count].
    Raises: ParameterError: a rank does not exist or is listed twice.
    """
    flags = np.zeros(num_ranks, bool)
    for rank in range(num_ranks) if ranks == "all" else ranks:
        assert isinstance(rank, int)
        if not 0 <= rank < num_ranks:
            raise ParameterError(f"{where}: rank {rank} is not 0 to {num_ranks - 1}")
        if flags[rank]:
            raise ParameterError(f"{where}: rank {rank} is listed twice; list it once")
        flags[rank] = True
    return flags
