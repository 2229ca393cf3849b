"""Plain technical English: the words of docs/words.txt are used nowhere, and public functions document their arguments."""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.sources import syntax_of

ROOT = Path(__file__).parents[1]
WORDS = ROOT / "docs" / "words.txt"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = [path for path in sorted((ROOT / "src").rglob("*")) if path.suffix in (".py", ".toml")]
LEAST_PARAMETERS = 3

DOCUMENTED_ELSEWHERE = {"OpticclProcessGroup": "torch.distributed.ProcessGroup, whose methods it overrides"}
"""Classes whose methods have the signatures of another library -> where these are documented."""


@dataclass(frozen=True)
class Word:
    """A line of the list.

    Args:
        pattern: of the word.
        plain: what lower-case text contains wherever the pattern matches; searching for it is 20 times as fast.
        instead: terms to use.
        exceptions: texts in which it is right.
    """

    pattern: re.Pattern
    plain: re.Pattern
    instead: str
    exceptions: tuple[re.Pattern, ...]

    def hits(self, text):
        """Places of the word outside the exceptions."""
        if not self.plain.search(text.lower()):
            return
        right = [match.span() for exception in self.exceptions for match in exception.finditer(text)]
        for match in self.pattern.finditer(text):
            if not any(low <= match.start() and match.end() <= high for low, high in right):
                yield match


def read_words(text):
    """Words of a list in the format of docs/words.txt."""
    found = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace():
            exception, colon, reason = line.strip().rpartition(" : ")
            assert colon, line
            assert reason, line
            found[-1][-1].append(re.compile(exception))
        else:
            pattern, arrow, instead = line.partition(" -> ")
            assert arrow, line
            assert instead.strip(), line
            assert pattern == pattern.lower(), line
            found.append((_whole_words(pattern), re.compile(_between_words(pattern)), instead.strip(), []))
    return [Word(*word, tuple(exceptions)) for *word, exceptions in found]


def _between_words(pattern):
    """The pattern with words that stand apart or are parts of an identifier."""
    return pattern.replace(" ", "[ _]+")


def _whole_words(pattern):
    """The pattern as words of prose and as parts of identifiers: `told`, `told_s`, `_told`, `ToldRow`, `RowTold`, `TOLD`."""
    begin = r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))"
    end = r"(?![a-z])(?!(?<=[A-Z][A-Z])[A-Z])"
    return re.compile(f"{begin}(?i:{_between_words(pattern)}){end}")


@cache
def words():
    """The list of the project."""
    return tuple(read_words(WORDS.read_text("utf-8")))


def hits_in(path):
    """Lines of a file with words of the list."""
    text = path.read_text("utf-8")
    for word in words():
        for match in word.hits(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path.relative_to(ROOT)}:{line}: {match[0]!r}; use: {word.instead}"


def test_no_word_of_the_list():
    """In prose, messages and identifiers."""
    found = [hit for path in (*PAGES, *SOURCES) for hit in hits_in(path)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It was told.", ["told"]),
        ("told_s = x", ["told"]),
        ("class ToldRow: pass", ["Told"]),
        ("class RowTold: pass", ["Told"]),
        ("MOST_TOLD = 3", ["TOLD"]),
        ("what there_is", ["what there_is"]),
        ("a toldless, untold, TOLDED word; Tolds", []),
        ("the tell of hands", []),
    ],
)
def test_words_are_found_in_prose_and_identifiers(text, found):
    """Whole words and parts of names, not parts of words."""
    (told, there) = read_words("told -> a\nwhat there is -> b\n")
    assert [match[0] for word in (told, there) for match in word.hits(text)] == found


def test_an_exception_covers_the_text_that_it_matches():
    """And no other."""
    (word,) = read_words("lit -> in use\n    lit_rounds : a reason\n")
    assert [match.start() for match in word.hits("lit_rounds lit lit_round")] == [11, 15]


def test_every_exception_is_needed():
    """An exception that matches nothing is removed from the list."""
    texts = [path.read_text("utf-8") for path in (*PAGES, *SOURCES)]
    for word in words():
        for exception in word.exceptions:
            assert any(exception.search(text) for text in texts), exception.pattern


# --- Args -------------------------------------------------------------------------------------------------------------


def undocumented(path):
    """Public functions and constructors of a file with three or more parameters, whose docstring has no Args.

    An override may refer to its base class, whose own docstring is checked like any other.
    """
    for node in syntax_of(path).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield from _without_args(node, node, node.name, 0)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in DOCUMENTED_ELSEWHERE:
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    if method.name == "__init__":
                        yield from _without_args(method, node, node.name, 1)
                    elif not method.name.startswith("_"):
                        static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in method.decorator_list)
                        yield from _without_args(method, method, f"{node.name}.{method.name}", 0 if static else 1)


def _without_args(function, documented, name, bound):
    """The name, if the function has many parameters and the docstring no Args.

    Args:
        function: node with the parameters.
        documented: node with the docstring.
        name: for the message.
        bound: leading parameters that the caller does not give.
    """
    given = function.args
    count = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs) - bound
    if count >= LEAST_PARAMETERS and not re.search(
        r"^\s*Args:|as the base class\s+describes", ast.get_docstring(documented) or "", re.MULTILINE
    ):
        yield name


FILES = [path for path in SOURCES if path.suffix == ".py"]


def test_public_functions_document_their_arguments():
    """All with three or more parameters; the options of a verb have help texts instead."""
    verbs = ROOT / "src/opticcl/cli"
    found = [
        f"{path.relative_to(ROOT)}: {function} has no Args"
        for path in FILES
        for function in undocumented(path)
        if not (path.is_relative_to(verbs) and function == "run")
    ]
    assert not found, "\n".join(found)


def test_functions_without_args_are_found():
    """Functions, methods and constructors, not private ones."""
    text = (
        'def many(a, b, *, c): "text"\n'
        'def few(a, b): "text"\n'
        'def _own(a, b, c): "text"\n'
        'def good(a, b, c):\n    """Text.\n\n    Args:\n        a: x.\n    """\n'
        'class Thing:\n    "text"\n    def __init__(self, a, b, c): ...\n    def use(self, a, b): "text"\n'
        '    def inherit(self, a, b, c): "As it is; as the base class describes."\n'
        '    def work(self, a, b, c): "text"\n    @staticmethod\n    def build(a, b, c): "text"\n'
    )

    class Source:
        def read_text(self, encoding):
            return text

    assert list(undocumented(Source())) == ["many", "Thing", "Thing.work", "Thing.build"]
