"""The measurable rules of the source: sizes, imports that go down only, and words that must not be there."""
import ast
import re
from pathlib import Path

import pytest

import fastgrad

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "fastgrad"
SOURCES = sorted(p for p in PACKAGE.rglob("*") if p.suffix in (".py", ".pyx", ".pxd"))
OWN = sorted(
    p for folder in ("src", "tests", "bench", "tools", "docs") for p in (ROOT / folder).rglob("*")
    if p.suffix in (".py", ".pyx", ".pxd", ".toml", ".md", ".h") and p.name != "_fused.h" and "results" not in p.parts
)
MAX_LINES = 600
# Larger files, with what they hold together.
LARGER: dict[str, tuple[int, str]] = {}
MAX_FUNCTION = 80
# Floors (design): a module imports from its own floor or below. Compiled ones that are not named here are the engine.
ENGINE = 2
FLOORS = {
    "_errors": 0, "_dtypes": 0, "_size": 0, "_layout": 0, "_storage": 0,
    "_kernels": 1, "_views": 1, "_arrays": 1, "_data": 2,
    "ops": 3,
    "": 4,
    "autograd": 5, "memory": 5, "_methods": 5, "nn": 5, "optim": 5, "func": 5, "linalg": 5, "fft": 5, "special": 5,
    "__init__": 6,
}


def relative(path):
    return path.relative_to(ROOT).as_posix()


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def module_name(path):
    """``ops.views`` for src/fastgrad/ops/views.py."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def floor(module):
    """Floors count from the first part of the name; what has no entry is the engine or the tensor API."""
    first = module.split(".")[0]
    return FLOORS.get(first, ENGINE if (PACKAGE / f"{first}.pyx").exists() else FLOORS[""])


def imported(path):
    """(line, module) of every import from the package, relative and absolute, compiled (cimport) or not."""
    package = list(path.relative_to(PACKAGE).parts[:-1])
    for number, line in enumerate(lines(path), 1):
        match = re.match(r"(?:from\s+(\.*)([\w.]*)\s+c?import\s+(.*))", line)   # at the margin: not inside functions
        if not match:
            continue
        dots, module, names = match.groups()
        if dots:
            base = package[: len(package) - (len(dots) - 1)]
            parts = base + [p for p in module.split(".") if p]
        elif module.split(".")[0] == "fastgrad":
            parts = module.split(".")[1:]
        else:
            continue
        if parts:
            yield number, ".".join(parts)
        else:
            for name in names.strip("() ").split(","):
                name = name.split(" as ")[0].strip()
                if name and (PACKAGE / f"{name}.py").exists() or (PACKAGE / name).is_dir():
                    yield number, name


def test_the_tree_is_the_one_that_is_tested():
    assert Path(fastgrad.__file__).resolve().parent == PACKAGE or not PACKAGE.exists()
    assert len(SOURCES) > 30


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_file_length(path):
    limit, _ = LARGER.get(relative(path), (MAX_LINES, ""))
    assert len(lines(path)) <= limit


def test_exceptions_to_the_length_are_needed():
    for name in LARGER:
        assert len(lines(ROOT / name)) > MAX_LINES, f"{name} is no exception any more"


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_imports_go_down(path):
    own = module_name(path)
    upward = [(n, module) for n, module in imported(path) if floor(module) > floor(own)]
    assert upward == []


@pytest.mark.parametrize("path", [p for p in SOURCES if p.suffix == ".py"], ids=relative)
def test_functions_are_short(path):
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and code_lines(node) > MAX_FUNCTION
    ]
    assert long == []


def code_lines(function):
    """Lines of a function without its docstring."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value,
                                                                                                      str)
    return function.end_lineno - function.lineno + 1 - (first.end_lineno - first.lineno + 1 if documented else 0)


FORBIDDEN = {
    "a note of work to be done": re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b"),
    "an absolute path of some machine": re.compile(
        r"(?<![\w.:/])/(?:ho" r"me|wo" r"rk|tm" r"p|ro" r"ot|Us" r"ers|m" r"nt)/\w"
    ),
    "a tab": re.compile("\t"),
    "trailing space": re.compile(r"[ \t]+$"),
}


@pytest.mark.parametrize("what", FORBIDDEN)
@pytest.mark.parametrize("path", OWN, ids=relative)
def test_file_does_not_contain(path, what):
    assert [n for n, line in enumerate(lines(path), 1) if FORBIDDEN[what].search(line)] == []


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_file_opens_with_what_it_is(path):
    text = path.read_text(encoding="utf-8")
    assert re.match(r'(?:#.*\n)*r?"""\S', text), "a docstring first"


@pytest.mark.parametrize("path", [p for p in SOURCES if p.suffix == ".pxd"], ids=relative)
def test_pxd_bodies_are_few(path):
    """A .pxd is the contract: inline bodies of a few lines at most."""
    text = lines(path)
    for n, line in enumerate(text):
        if re.match(r"\s*cdef inline", line):
            body = 0
            for following in text[n + 1:]:
                if not following.startswith((" ", "\t")) or not following.strip():
                    break
                body += 1
            assert body <= 15, f"line {n + 1}: {line.strip()}"


def test_every_public_name_has_a_docstring():
    missing = [
        name for name, value in vars(fastgrad).items()
        if not name.startswith("_") and callable(value) and not (getattr(value, "__doc__", None) or "").strip()
    ]
    assert missing == []
