"""The file of golden records: one line a record, sorted by their names."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.records.cells import cell_names, parts_of
from tests.records.cells import record_of as record_of_cell
from tests.records.commands import all_commands
from tests.records.differences import Difference, differences, needing_reason
from tests.records.running import answer_of, kept

FILE = Path(__file__).parent / "records.jsonl"


def read(file: Path = FILE) -> dict[str, dict[str, Any]]:
    """Records by their names; none where there is no file.

    Args: file: of lines of JSON.
    """
    if not file.exists():
        return {}
    lines = map(json.loads, file.read_text("utf-8").splitlines())
    return {line["id"]: line for line in lines}


def write(records: Mapping[str, Mapping[str, Any]], file: Path = FILE) -> None:
    """Write all records.

    Args:
        records: by their names.
        file: to write, whole or not at all.
    """
    lines = (json.dumps({"id": id, **records[id]}, ensure_ascii=False, separators=(",", ":")) for id in sorted(records))
    beside = file.with_suffix(".new")
    beside.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    beside.replace(file)


def names() -> list[str]:
    """Names of all records that there should be, sorted."""
    return sorted((*all_commands(), *cell_names()))


def made(id: str) -> dict[str, Any]:
    """The record of a name as the library gives it now.

    Args: id: of a command or of a cell of the conformance matrix.
    """
    if id in all_commands():
        command = all_commands()[id]
        asked: dict[str, Any] = {"command": list(command.words)}
        if command.before:
            asked["before"] = [list(words) for words in command.before]
        return {**asked, **answer_of(command)}
    found = kept(record_of_cell(*parts_of(id)), {}, "")
    assert isinstance(found, dict)
    return found


def changed(old: Mapping[str, Any], new: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """The record in place of another one, with what changed and why.

    Args:
        old: as recorded.
        new: of now.
        reason: why it changed; "" where it is only faster.
    Raises: ValueError: it is slower, or has another verdict, refusal, command or plan, and no reason is given.
    """
    found = list(differences(old, new))
    needed = needing_reason(found)
    if needed and not reason.strip():
        raise ValueError("; ".join(needed))
    before = list(old.get("changes", ()))
    return (
        {**new, "changes": [*before, change(found, reason)]}
        if found
        else {**new, **({"changes": before} if before else {})}
    )


def change(found: list[Difference], reason: str) -> dict[str, Any]:
    """Entry of a record on its change: the reason, and old and new value of what differs.

    Args:
        found: what differs.
        reason: why.
    """
    return {"reason": reason.strip(), "values": {one.where: [one.old, one.new] for one in found}}
