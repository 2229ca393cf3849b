"""The packages keep their order: a package imports only packages above it."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from operator import add, lshift, mul, sub
from pathlib import Path

import pytest

import opticcl
from opticcl.ir.limits import LIMITS
from tests.sources import syntax_of, text_of

SOURCE = Path(opticcl.__file__).parent
BASE = {"errors", "interrupts", "units", "ir", "files", "reading", "kernels", "pairs", "registry", "xml_elements"}
MAKERS = {"collective", "routing", "fabrics", "schedule", "circuits"}
ALLOWED = {
    "errors": set(),
    "interrupts": set(),
    "units": {"errors"},
    "picture": set(),
    "ir": {"errors", "units", "kernels", "picture"},
    "files": {"errors", "interrupts"},
    "reading": {"errors", "units"},
    "compiler_lock": set(),
    "xml_elements": {"errors"},
    "kernels": {"compiler_lock", "interrupts"},
    "pairs": {"ir"},
    "registry": {"errors", "units"},
    "processes": {"errors", "interrupts", "ir"},
    "assumptions": BASE,
    "collective": BASE,
    "optics": BASE,
    "routing": BASE,
    "fabrics": BASE | {"optics", "routing"},
    "schedule": BASE | {"collective", "routing", "fabrics", "optics"},
    "circuits": BASE | {"collective", "routing", "fabrics", "schedule"},
    "verify": {"errors", "units", "ir", "kernels", "assumptions", "optics"},
    "simulate": BASE | {"assumptions"},
    "execute": BASE | {"collective", "optics"},
    "estimate": BASE | {"collective", "optics", "fabrics"},
    "synthesis": BASE | MAKERS | {"verify"},
    "formats": BASE | {"collective", "fabrics"},
    "traces": BASE | {"collective", "formats"},
}
LATER = ["plans", "training", "operations", "studies", "papers", "report", "explorer", "cli"]
"""Packages that may import every package above them, in their order."""
for position, name in enumerate(LATER):
    ALLOWED[name] = set(ALLOWED) | set(LATER[:position])
FACES = {"__init__", "__main__", "mpi", "_torch_entry"}
"""They import any package; no package imports them."""


def package_of(path: Path) -> str:
    """Name of the package, or of the module at the top, that a source file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements, without the expressions within them."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for inside in ("body", "orelse", "finalbody", "handlers", "cases"):
            found = getattr(node, inside, ())
            waiting += found if isinstance(found, list) else ()


@cache
def imports_of(path: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Modules of the project that a source file imports, for type checking too, with the names that it takes from them."""
    found = []
    for node in statements(syntax_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.module, tuple(alias.name for alias in node.names)))
        if isinstance(node, ast.Import):
            found += [(alias.name, ()) for alias in node.names]
    return [(module, names) for module, names in found if module.split(".")[0] == "opticcl"]


def packages_imported(path: Path) -> set[str]:
    """Packages of the project that a source file imports."""
    found = set()
    for module, names in imports_of(path):
        _, _, rest = module.partition(".")
        found |= {rest.split(".")[0]} if rest else set(names)
    return found


FILES = sorted(SOURCE.rglob("*.py"))


def test_a_package_imports_only_packages_above_it():
    """Every file is held to the order, and the judge knows no maker."""
    found = [
        f"{path.relative_to(SOURCE)} imports {sorted(lower)}"
        for path in FILES
        if (package := package_of(path)) not in FACES
        and (lower := packages_imported(path) - {package} - ALLOWED[package])
    ]
    assert not found, "\n".join(found)


MOST_ARROWS = 108
"""Pairs of packages of which one imports the other: nine tenths of the 120 that there were with six descriptions of a step."""


def test_arrows_between_packages_do_not_grow():
    """Packages alone, not modules at the top; one that is not needed any more lowers the number."""
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    arrows = {(package_of(path), other) for path in FILES for other in packages_imported(path) & packages}
    assert len({(one, other) for one, other in arrows if one in packages and one != other}) <= MOST_ARROWS


def test_no_private_name_crosses_a_package():
    """What another package needs is public."""
    found = []
    for path in FILES:
        for module, names in imports_of(path):
            parts = module.split(".")[1:]
            if not parts or parts[0] == package_of(path):
                continue
            private = [part for part in (*parts, *names) if part.startswith("_") and not part.startswith("__")]
            found += [f"{path.relative_to(SOURCE)} imports {private} of {module}"] if private else []
    assert not found, "\n".join(found)


OPEN_CIRCLES: tuple[set[str], ...] = ()
"""Modules that still import each other in a circle; a circle that is opened leaves the list, and none may join it."""


def module_name(path: Path) -> str:
    """Dotted name of a source file."""
    parts = ("opticcl", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_graph() -> dict[str, set[str]]:
    """Module -> the modules that it names in imports, those inside functions and for type checking included."""
    paths = {module_name(path): path for path in FILES}
    graph = {}
    for name, path in paths.items():
        found = set()
        for module, names in imports_of(path):
            inner = {f"{module}.{one}" for one in names} & paths.keys()
            found |= inner
            if module in paths and (not names or len(inner) < len(names)):
                found.add(module)
        graph[name] = found - {name}
    return graph


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Largest sets of modules that reach each other by imports, each of two modules or more."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        found: set[str] = set()
        ahead = [start]
        while ahead:
            new = graph.get(ahead.pop(), set()) - found
            found |= new
            ahead += new
        reached[start] = found
    members = [frozenset(b for b in reached[a] if a in reached[b]) for a in graph if a in reached[a]]
    return [set(circle) for circle in dict.fromkeys(members)]


def test_circles_are_found():
    """A circle through three modules, with one that only leads to it, and none in a tree."""
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_a_class_name_has_one_meaning():
    """No two modules define a public class of one name."""
    homes: dict[str, list[str]] = {}
    for path in FILES:
        for node in syntax_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_no_modules_import_each_other_in_a_circle():
    """The list of open circles only shrinks: none is found outside it, and each of it still has one."""
    found = circles(import_graph())
    new = [sorted(circle) for circle in found if not any(circle <= known for known in OPEN_CIRCLES)]
    assert not new, f"modules that import each other: {new}"
    closed = [sorted(known) for known in OPEN_CIRCLES if not any(circle <= known for circle in found)]
    assert not closed, f"take these out of OPEN_CIRCLES, they are no circles any more: {closed}"


SYSTEM_SPECIFIC = {"fabrics", "circuits"}
"""Packages that may look at the parameters of one system."""


def told_apart(node: ast.AST) -> bool:
    """Whether a node compares the name of a fabric or looks one of its parameters up by a text."""
    if isinstance(node, ast.Compare):
        sides = (node.left, *node.comparators)
        return any(isinstance(side, (ast.Constant, ast.Tuple)) for side in sides) and any(
            re.search(r"(fabric|machine|where)\.name$", ast.unparse(side)) for side in sides
        )
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return bool(re.search(r"(fabric|machine|where|made)\.parameters$", ast.unparse(node.value)))
    return False


def test_systems_are_told_apart_by_their_classes():
    """Outside fabrics and circuits the code compares no name of a fabric and looks no parameter up by a text."""
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}: {ast.unparse(node)}"
        for path in FILES
        if package_of(path) not in SYSTEM_SPECIFIC
        and re.search(r"(fabric|machine|where|made)\.(name|parameters)\b", text_of(path))
        for node in ast.walk(syntax_of(path))
        if told_apart(node)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('fabric.name == "ramp"', True),
        ('plan.fabric.name in ("ramp", "oddl")', True),
        ('machine.parameters["groups"]', True),
        ("fabric.name == other.name", False),
        ('entry.name == "ramp"', False),
        ("fabric.parameters[name]", False),
    ],
)
def test_comparisons_of_systems_are_found(text, found):
    """Names and texts alone."""
    assert any(told_apart(node) for node in ast.walk(ast.parse(text))) == found


def test_the_judge_imports_no_maker():
    """Verifying needs no fabric, schedule or circuits room."""
    code = "import sys, opticcl.verify; print([m for m in sys.modules if m.startswith('opticcl.')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not any(f"opticcl.{room}" in loaded for room in ("fabrics", "schedule", "circuits", "plan"))


def _kernels(path: Path) -> Iterator[tuple[ast.FunctionDef, str]]:
    """Functions of a file that numba compiles, and their decorators."""
    for node in syntax_of(path).body:
        decorators = " ".join(map(ast.unparse, getattr(node, "decorator_list", [])))
        if isinstance(node, ast.FunctionDef) and "njit" in decorators:
            yield node, decorators


def test_a_kernel_calls_kernels_of_its_own_file_alone():
    """Numba compiles a kernel that is on the disk again when its own file changes, whatever becomes of others."""
    kernels = {f"{module_name(path)}.{kernel.name}" for path in FILES for kernel, _ in _kernels(path)}
    wrong = []
    for path in FILES:
        source = {name: module for module, names in imports_of(path) for name in names}
        for kernel, _ in _kernels(path):
            names = {node.id for node in ast.walk(kernel) if isinstance(node, ast.Name)} & set(source)
            wrong += [f"{path.name}: {kernel.name} calls {n}" for n in sorted(names) if f"{source[n]}.{n}" in kernels]
    assert len(kernels) > 100
    assert not wrong


def test_numbers_have_the_digits_0_to_9():
    r"""Python's `isdecimal`, `isdigit`, `isnumeric` and `\d` accept those of every script; `units.whole_of` does not."""
    others = re.compile(r"\.(isdecimal|isdigit|isnumeric)\(|\\d")
    found = [str(path.relative_to(SOURCE)) for path in FILES if others.search(text_of(path))]
    assert not found


def test_importing_opticcl_imports_numpy_at_most():
    """`import opticcl` and its types stay light."""
    code = "import sys, opticcl, opticcl.ir; print(sorted({m.partition('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    heavy = {"numba", "matplotlib", "polars", "click", "rich", "quantiphy", "msgspec", "highspy"}
    assert not any(f"'{name}'" in loaded for name in heavy)


def loaded_by(*words):
    """Names of the modules that a command loads, in a process of its own."""
    code = (
        f"import sys; sys.argv = ['opticcl', *{words}]\n"
        "from opticcl.cli import main\n"
        "try: main()\nexcept SystemExit: print('loaded', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("loaded ")[2].split())


def test_help_imports_no_numpy():
    """`opticcl --help` must answer at once."""
    assert "opticcl.cli" in (loaded := loaded_by("--help"))
    assert not {"numpy", "numba"} & loaded


def test_a_verb_is_read_without_the_others():
    """A process that runs one needs no other, and each takes its time."""
    loaded = loaded_by("verify", "-f", "ideal:nodes=2", "-a", "ring")
    assert {"numpy", "opticcl.cli.verify"} <= loaded
    assert "opticcl.cli.compare" not in loaded


def test_all_lists_what_is_public():
    """Every public name of the package can be had, and no other."""
    for name in opticcl.__all__:
        assert getattr(opticcl, name) is not None
    with pytest.raises(AttributeError):
        _ = opticcl.nothing


COLUMNS = {"src", "dst", "chunk_lo", "chunk_n", "op", "parts", "chunk_step"}


def writes_into_columns(tree: ast.AST) -> list[int]:
    """Lines that assign to entries of a column of a step, such as `step.src[0] = 1`."""
    targets = [
        (node.lineno, target)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AugAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return [
        line
        for line, target in targets
        if isinstance(target, ast.Subscript)
        and isinstance(target.value, ast.Attribute)
        and target.value.attr in COLUMNS
        and not (isinstance(target.value.value, ast.Name) and target.value.value.id == "grants")  # not of a schedule
    ]


def test_no_test_writes_into_steps():
    """Generated steps are cached for all schedules: a test that changed one would make another fail, now and then."""
    assert writes_into_columns(ast.parse("step.chunk_lo[7] = (step.chunk_lo[7] + 1) % 32")) == [1]
    assert writes_into_columns(ast.parse("step = 1\nmade.step(0).src[:2] += 1")) == [2]
    assert not writes_into_columns(ast.parse("src[0] = step.src[0]"))
    found = [
        f"{path.name}: line {line}"
        for path in sorted(Path(__file__).parent.rglob("*.py"))
        if re.search(rf"\.({'|'.join(COLUMNS)})\W*\[", text_of(path))
        for line in writes_into_columns(syntax_of(path))
    ]
    assert not found


WRITTEN = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Pow: pow, ast.LShift: lshift}
BOUNDED = {"schedule", "circuits", "routing", "simulate", "verify", "plans"}
"""Packages whose numbers that bound rows, nodes, circuits, chunks or bytes stand in `opticcl.ir.limits`."""


def _number(node: ast.expr) -> int:
    """Value of a whole number as it is written: digits, or sums, products and powers of others; 0 of everything else."""
    if isinstance(node, ast.BinOp) and type(node.op) in WRITTEN:
        return WRITTEN[type(node.op)](_number(node.left), _number(node.right))
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else 0


def _is_limit(node: ast.expr) -> bool:
    """Whether a number is large enough to bound a size: 256 or more, or written as a power of two."""
    return _number(node) >= 256 or (
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift) and _number(node) > 0
    )


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Constants of a module, each with its value."""
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                yield target.id, node.value
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from (
                    (ast.unparse(name), value) for name, value in zip(target.elts, node.value.elts, strict=True)
                )


def unlisted_limits(path: Path) -> list[str]:
    """Numbers of a file that bound sizes and are not in the table of limits.

    A number that a kernel of the same file reads is part of the kernel; one of 2^31 or more in a comparison is the range of a
    type.
    """
    tree = syntax_of(path)
    read = {node.id for kernel, _ in _kernels(path) for node in ast.walk(kernel) if isinstance(node, ast.Name)}
    found = [
        f"{name} = {ast.unparse(value)}" for name, value in _constants(tree) if _is_limit(value) and name not in read
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            found += [ast.unparse(node) for side in sides if _is_limit(side) and _number(side) < 1 << 31]
    return found


def test_limits_stand_in_one_table():
    """No number that bounds a size is written in the packages that evaluate plans."""
    found = {str(path.relative_to(SOURCE)): unlisted_limits(path) for path in FILES if package_of(path) in BOUNDED}
    assert not {path: numbers for path, numbers in found.items() if numbers}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("MOST = 256", 1),
        ("MOST, LEAST = 1 << 4, 3", 1),
        ("PIECES = (256, 512)", 0),
        ("MOST = 255", 0),
        ("if rows > 10_000: pass", 1),
        ("if rows >= 1 << 31: pass", 0),
        ('MOST = limit("rows.MOST")', 0),
    ],
)
def test_numbers_that_bound_sizes_are_found(tmp_path, text, number):
    """Constants of a module and comparisons, not lists of values or the ranges of types."""
    (tmp_path / "rows.py").write_text(text)
    assert len(unlisted_limits(tmp_path / "rows.py")) == number


def test_every_limit_is_used_where_its_name_says():
    """By one constant of that name, in a module of that name."""
    used = {}
    for path in FILES:
        for name, value in _constants(syntax_of(path)):
            if isinstance(value, ast.Call) and ast.unparse(value.func) == "limit":
                used[value.args[0].value] = f"{path.stem.strip('_')}.{name.strip('_')}"
    assert used == {name: name for name in LIMITS}
