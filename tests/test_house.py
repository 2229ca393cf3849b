"""The house keeps its order: a room imports only what is to its left."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import opticcl

SOURCE = Path(opticcl.__file__).parent
GROUND = {"ir", "units", "errors", "registry", "files", "data", "physics"}
MAKERS = GROUND | {"routing", "fabric", "collective", "schedule", "circuits"}
ALLOWED = {
    "ir": set(),
    "errors": {"ir"},
    "units": {"errors"},
    "registry": {"errors", "units"},
    "files": {"errors"},
    "data": set(),
    "physics": {"errors", "units", "data"},
    "routing": GROUND,
    "fabric": GROUND | {"routing"},
    "collective": GROUND | {"fabric"},
    "schedule": GROUND | {"fabric", "collective"},
    "circuits": GROUND | {"routing", "fabric", "collective", "schedule"},
    "verify": {"ir", "physics"},
    "simulate": GROUND,
    "execute": {"ir", "errors"},
    "workload": GROUND | {"collective"},
    "programme": GROUND | {"fabric", "collective"},
    "memory": {"ir"},
    "candidates": MAKERS | {"simulate", "memory"},
    "plan": MAKERS | {"verify", "simulate", "execute", "programme", "candidates"},
    "comparison": MAKERS | {"verify", "simulate", "execute", "memory", "candidates", "plan"},
    "synthesis": MAKERS | {"verify"},
    "control": MAKERS | {"verify", "simulate"},
}
FREE = {"report", "papers", "cli", "__init__", "evaluate"}


def room_of(path: Path) -> str:
    """Name of the room that a source file stands in."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    """Rooms that a source file imports when it runs; imports for type checking alone do not count."""
    tree = ast.parse(path.read_text("utf-8"))
    hidden = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for child in ast.walk(node)
    }
    rooms = set()
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        rooms |= {name.split(".")[1] for name in names if name.startswith("opticcl.")}
    return rooms


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_room_imports_only_rooms_to_its_left(path):
    """No import runs back up, and the judge knows no maker."""
    room = room_of(path)
    if room in FREE:
        return
    extra = {"units"} if room == "ir" else {"errors"} if room == "verify" else set()  # for texts and refusals only
    extra |= {"errors"} if room == "ir" else set()
    assert imports_of(path) - {room} <= ALLOWED[room] | extra


def test_the_judge_imports_no_maker():
    """Verifying needs no fabric, schedule or circuits room."""
    code = "import sys, opticcl.verify; print([m for m in sys.modules if m.startswith('opticcl.')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not any(f"opticcl.{room}" in loaded for room in ("fabric", "schedule", "circuits", "plan"))


def test_importing_opticcl_imports_numpy_at_most():
    """`import opticcl` and its types stay light."""
    code = "import sys, opticcl, opticcl.ir; print(sorted({m.partition('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    heavy = {"numba", "matplotlib", "polars", "typer", "rich", "quantiphy", "msgspec", "highspy"}
    assert not any(f"'{name}'" in loaded for name in heavy)


def test_help_imports_no_numpy():
    """`opticcl --help` must answer at once."""
    code = (
        "import sys; sys.argv = ['opticcl', '--help']\n"
        "from opticcl.cli import main\n"
        "try: main()\nexcept SystemExit: print('numpy' in sys.modules, 'numba' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip().endswith("False False")


def test_all_lists_what_is_public():
    """Every public name of the package can be had, and no other."""
    for name in opticcl.__all__:
        assert getattr(opticcl, name) is not None
    with pytest.raises(AttributeError):
        _ = opticcl.nothing
