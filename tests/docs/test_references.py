"""Links, files and names in the documentation and in docstrings exist."""

import importlib
import re
from functools import cache

import pytest
from tests.docs.pages import PAGES, ROOT

from opticcl.errors import UnsupportedError

SOURCES = [path for path in sorted((ROOT / "src").rglob("*")) if path.suffix in (".py", ".toml")]
TEXTS = [*PAGES, ROOT / "CONTRIBUTING.md"]
FOLDERS = [ROOT, ROOT / "src", ROOT / "src" / "opticcl", ROOT / "docs"]
FILE = re.compile(r"(?<![\w./-])((?:[a-z_]+/)+[a-z_0-9]+\.(?:py|toml|md))\b")
NAME = re.compile(r"`(opticcl(?:\.[A-Za-z_]\w*)+)")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
GENERATED = "mine"
"""Name of the files that CONTRIBUTING.md adds."""

OF_USERS = "opticcl.toml"
"""A file that users write."""


@cache
def anchors(path):
    """Anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def exists(name):
    """Whether a dotted name is a module, or an attribute or annotated field of what is before the last dots."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        except UnsupportedError:  # it needs an extra that is not installed
            return True
        for part in parts[count:]:
            if part in getattr(found, "__annotations__", {}):
                return True
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(path):
    """Links within the repository."""
    for target, anchor in LINK.findall(path.read_text("utf-8")):
        if "://" not in target:
            page = (path.parent / target).resolve() if target else path
            assert page.exists(), target
            assert not anchor or anchor in anchors(page), f"{target}#{anchor}"


def test_files_and_names_exist():
    """Paths from the root, src, src/opticcl, docs or the folder of the text; names of modules, classes and functions."""
    missing = []
    for path in [*TEXTS, *SOURCES]:
        text = path.read_text("utf-8")
        files = {file for file in FILE.findall(text) if GENERATED not in file and file != OF_USERS}
        missing += [
            f"{path}: {file}" for file in files if not any((at / file).exists() for at in [*FOLDERS, path.parent])
        ]
        missing += [f"{path}: {name}" for name in {*NAME.findall(text)} - {OF_USERS} if not exists(name)]
    assert not missing, "\n".join(missing)


def test_missing_names_are_found():
    """A field of a dataclass exists, what is gone does not."""
    assert exists("opticcl.ir.fabric.Fabric.light_path")
    assert exists("opticcl.training.runtime.Runtime.streams")
    assert not exists("opticcl.evaluate")
    assert not exists("opticcl.ir.fabric.Fabric.colour")
