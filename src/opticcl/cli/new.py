"""opticcl new"""

from __future__ import annotations

import keyword
import re
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

from opticcl.cli._request import VerbRequest, argument, option
from opticcl.errors import OutputError, ParameterError
from opticcl.report.kit.result import ComposedResult, Result, Verbatim


class _Kind(NamedTuple):
    """A kind of plugin.

    Args:
        registry: as `opticcl.report.registries` calls it.
        commands: that show the plugin at work, without `opticcl` and `--plugin`.
    """

    registry: str
    commands: tuple[str, ...]


KINDS = {
    "fabric": _Kind("fabric", ("verify -f $name -a ring", "compare -f $name -f ideal -n 8 -s 1MB")),
    "algorithm": _Kind(
        "algorithm",
        (
            "verify -f ideal:nodes=8 -c all_gather -a $name",
            "compare -f ideal -f sip_ring -n 8 -c all_gather -a all -s 1MB",
        ),
    ),
    "trace": _Kind("trace format", ("train -w job.$name -n 8 -f ideal -f torus",)),
}


@dataclass(frozen=True, kw_only=True)
class NewRequest(VerbRequest):
    """What `opticcl new` is asked: values of its arguments and options."""

    kind: str = argument(help="fabric, algorithm or trace: what the plugin adds.")
    name: str = argument(help="Its name, such as awgr: lower-case letters, digits, underscores.")
    folder: Path = option("--out", "-o", metavar="DIR", default=Path(), help="Folder of both files; default: this one.")


def run(request: NewRequest) -> Result:
    """Write a plugin that works, with comments and a test: new fabric NAME, new algorithm NAME, new trace NAME."""
    from opticcl.registry import canonical, nearest

    kind = canonical(request.kind)
    if kind not in KINDS:
        raise ParameterError(f"new: a plugin of kind {request.kind!r}; {nearest(kind, KINDS)}")
    name = request.name
    _check_name(kind, name)
    words = {"name": name, "Class": "".join(part.capitalize() for part in name.split("_"))}
    written = {
        request.folder / f"{name}.py": f"{kind}.py.txt",
        request.folder / f"test_{name}.py": f"test_{kind}.py.txt",
    }
    _check_files(request.folder, list(written))
    _write(written, words)
    plugin, test = written
    commands = [f"opticcl {Template(one).substitute(words)} --plugin {plugin}" for one in KINDS[kind].commands]
    commands.append(f"python -m pytest {test}")
    return ComposedResult(
        lambda: {"plugin": str(plugin), "test": str(test), "commands": commands},
        lambda: [
            Verbatim(f"plugin: {plugin}\ntest: {test}"),
            Verbatim("\n".join(["try:", *(f"  {c}" for c in commands)])),
        ],
    )


def _write(written: dict[Path, str], words: dict[str, str]) -> None:
    """Write the files from their templates.

    Args:
        written: file -> template.
        words: that take the place of those in the templates.
    """
    from opticcl.files import write_whole

    for path, template in written.items():
        text = files("opticcl.cli").joinpath("templates", template).read_text("utf-8")
        with write_whole(path) as file:
            file.write(Template(text).substitute(words).encode())


def _check_name(kind: str, name: str) -> None:
    """Refuse a name that Python or the library could not import or register.

    Args:
        kind: of plugin.
        name: of the user.
    Raises: ParameterError: with the rule that it breaks.
    """
    from opticcl.report.registries import REGISTRIES

    if not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ParameterError(
            f"new: {name!r} is not the name of a module; write lower-case letters, digits and underscores"
        )
    if name in REGISTRIES[KINDS[kind].registry].names():
        raise ParameterError(f"new: there is {kind} {name} already; give another name")
    if name in sys.stdlib_module_names or name in ("opticcl", "numpy", "pytest"):
        raise ParameterError(f"new: {name}.py would hide the module {name} of Python; give another name")


def _check_files(folder: Path, paths: list[Path]) -> None:
    """Refuse a folder that is not there, and files that are.

    Args:
        folder: that receives them.
        paths: of the files.
    Raises: OutputError: with the folder or the file.
    """
    if not folder.is_dir():
        raise OutputError(f"--out: there is no folder {folder}; make it first, or leave --out out")
    for path in paths:
        if path.exists() or path.is_symlink():
            raise OutputError(f"new: {path} exists; give another name or folder, nothing is overwritten")
