"""What the pages of the documentation hold: fenced blocks, and the commands of those that are for a shell."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RECIPES = {
    name: ROOT / f"docs/extending/{name}.md" for name in ("fabric", "algorithm", "engine", "trace-format", "claim")
}
"""Pages whose blocks are files of the library; test_contributing.py follows them."""

EXAMPLES = ROOT / "examples"
STUDIES = ROOT / "studies"
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Args:
        page: path of the page from the root.
        line: of the fence, from 1.
        language: behind the fence, or "".
        text: between the fences.
        shown: the block of text right below, which is what the last command prints first; "" if there is none.
    """

    page: str
    line: int
    language: str
    text: str
    shown: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A line of a block for a shell.

    Args:
        block: where it stands.
        text: without its comment.
        before: the lines above it that write files which it names, or that change the environment.
        shown: what it prints first, as the page has it.
    """

    block: Block
    text: str
    before: tuple[str, ...]
    shown: str = ""

    def __str__(self) -> str:
        return f"{self.block.page}: {self.text}"


@cache
def blocks(language: str | None = None) -> tuple[Block, ...]:
    """Fenced blocks of all pages but the recipes, or those of one language."""
    found = []
    for page in sorted({*PAGES} - {*RECIPES.values()}):
        text = page.read_text("utf-8")
        for match in _FENCED.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            shown = re.match(r"\n\n```text\n(.*?)^```$", text[match.end() :], re.MULTILINE | re.DOTALL)
            found.append(Block(str(page.relative_to(ROOT)), line, match[1], match[2], shown[1] if shown else ""))
    return tuple(block for block in found if language in (None, block.language))


@cache
def commands() -> tuple[Command, ...]:
    """Commands of all pages."""
    found = []
    for block in blocks("sh"):
        lines = [line.partition(" #")[0].strip() for line in block.text.splitlines()]
        lines = [line for line in lines if line]
        for number, line in enumerate(lines):
            before = tuple(other for other in lines[:number] if _prepares(other, line))
            found.append(Command(block, line, before, block.shown if number == len(lines) - 1 else ""))
    return tuple(found)


def _prepares(earlier: str, line: str) -> bool:
    """Whether an earlier line changes the environment, or names a file that the line names."""
    return earlier.startswith("export ") or bool(_files(earlier) & _files(line))


def _files(line: str) -> set[str]:
    """Names of files and directories that are no shipped examples; `opticcl new KIND NAME` writes NAME.py."""
    new = re.match(r"opticcl new \w+ (\w+)$", line)
    return {f"{new[1]}.py"} if new else {word for word in line.split() if re.fullmatch(r"[\w-]+(\.[a-z]\w*|/)", word)}
