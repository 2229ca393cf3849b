"""Write the computed pages: `python -m tests.pages` all of them, `python -m tests.pages wins faults` some."""

import sys
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "out/pages"
NAMES = ("beyond", "declined", "faults", "sensitivity", "wins")

for name in sys.argv[1:] or NAMES:
    if name not in NAMES:
        sys.exit(f"{name}: no such page; there are {', '.join(NAMES)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.md").write_text(import_module(f"tests.pages.{name}").page(), "utf-8")
