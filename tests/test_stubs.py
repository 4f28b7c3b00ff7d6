"""The stubs: written from what is there, complete, and of use to a type checker."""
import ast
import importlib
import os
import re
import subprocess
import sys

import pytest

import fastgrad as fg
from fastgrad.ops import declarations
from tools.stubs import PACKAGE, stubs

NAMESPACES = [
    name for name in ("autograd", "autograd.graph", "linalg", "memory", "random") if hasattr(fg, name.partition(".")[0])
]

# Compiled modules from which Python code imports.
COMPILED = sorted(path.stem for path in PACKAGE.glob("*.pyx"))

# What a user may write. The checker must take all of it.
RIGHT = """\
import numpy as np

import fastgrad as fg
from fastgrad import Tensor
from fastgrad.autograd import Variable, grad


def loss(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    error = (x @ w - y) ** 2
    return error.sum(dim=0, keepdim=True).mean()


w = fg.zeros(3, requires_grad=True)
x, y = fg.randn(5, 3), fg.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=fg.float32)
for step in range(10):
    value = loss(w, x, y)
    value.backward(retain_graph=True)
    with fg.no_grad():
        gradient = w.grad
        if gradient is not None:
            w -= 0.1 * gradient
            gradient.zero_()
(g,) = grad(loss(w, x, y), w, create_graph=True)
sizes: tuple[int, ...] = g.shape
size: int = x.size(0)
values, indices = x.sort(dim=1, descending=True)
largest = x.max(dim=1)
both: Tensor = largest.values + fg.max(x) + values[0, 0].exp().mul_(2)
rows: tuple[Tensor, ...] = x.unbind()
array = np.asarray(x.detach().numpy())
shared: Tensor = fg.from_numpy(array).reshape(-1).view(3, 5).T[..., 1:, None]
flag: bool = x.is_contiguous() and bool((x == y.unsqueeze(1)).any())
kind: fg.dtype = x.dtype
number: float = float(x.double().sum())
z = Variable(fg.ones(2), requires_grad=True)


@fg.no_grad()
def predict(x: Tensor) -> Tensor:
    return fg.cat([x, x], dim=1).long()


print(predict(x).tolist(), fg.memory.live_bytes() // 2)
"""

# Each line is wrong.
WRONG = """\
x.no_such_method()
fg.no_such_function(x)
x.sum(dim="rows")
x.reshape("wide")
x + "text"
x.requires_grad_(1, 2)
x.shape = (3,)
fg.zeros(2, dtype=3)
fg.exp("text")
fg.cat(5)
x.backward(gradient=1.5)
fg.memory.live_bytes(1)
name: str = x.sum()
"""


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """mypy's messages by file name, then by line, for three programs in one run."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("programs")
    names = [f"fg.{name}" for name in public(fg)] + [f"fg.Tensor.{name}" for name in tensor_names()]
    for namespace in NAMESPACES:
        names += [f"fg.{namespace}.{name}" for name in namespace_names(namespace)]
    programs = {
        "right.py": RIGHT,
        "wrong.py": "import fastgrad as fg\n\nx = fg.ones(2, 3)\n" + WRONG,
        "names.py": "import fastgrad as fg\n\n" + "".join(f"print({name})\n" for name in names),
    }
    for name, text in programs.items():
        (folder / name).write_text(text, encoding="utf-8")
    cache = PACKAGE.parents[1] / ".mypy_cache" / "tests"
    command = [
        sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary",
        "--hide-error-context", "--config-file=", "--cache-dir", str(cache), *programs,
    ]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "MYPYPATH": str(PACKAGE.parent)}, capture_output=True, text=True
    )
    assert done.returncode in (0, 1) and not done.stderr, done.stdout + done.stderr
    found = {name: {} for name in programs}
    for line in done.stdout.splitlines():
        file, number, kind, message = re.fullmatch(r"(\w+\.py):(\d+): (\w+): (.*)", line).groups()
        if kind == "error":
            found[file].setdefault(int(number), []).append(message)
    return found


def public(module):
    return sorted(name for name in vars(module) if not name.startswith("_"))


def namespace_names(namespace):
    module = fg
    for part in namespace.split("."):
        module = getattr(module, part)
    return sorted(module.__all__)


def tensor_names():
    return sorted(name for name in vars(fg.Tensor) if not name.startswith("_"))


def stub_names(path, class_name=None):
    """The public names that a stub gives a module, or a class of it."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    if class_name is not None:
        (body,) = [node.body for node in body if isinstance(node, ast.ClassDef) and node.name == class_name]
    names = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
        elif isinstance(node, ast.ImportFrom):
            names.update(alias.name for alias in node.names if alias.asname == alias.name)
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("name", ["__init__.pyi", "_tensor.pyi", "linalg.pyi"])
def test_stub_is_up_to_date(name):
    path = PACKAGE / name
    assert path.read_text(encoding="utf-8") == stubs()[path], "run `make stubs`"


def test_package_is_marked_as_typed():
    assert (PACKAGE / "py.typed").exists()


def test_package_and_stub_have_the_same_names():
    assert stub_names(PACKAGE / "__init__.pyi") == set(public(fg))


def test_linalg_and_stub_have_the_same_names():
    assert stub_names(PACKAGE / "linalg.pyi") - {"Tensor"} == set(fg.linalg.__all__)


def test_tensor_and_stub_have_the_same_names():
    assert stub_names(PACKAGE / "_tensor.pyi", "Tensor") == set(tensor_names())


@pytest.mark.parametrize("name", COMPILED)
def test_stub_of_compiled_module_has_what_is_there(name):
    module = importlib.import_module(f"fastgrad.{name}")
    internal = {"Attachments", "Formula", "Pass", "first"}      # nothing that Python code outside has a use for
    there = {
        key for key, value in vars(module).items()
        if not key.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }
    stub = PACKAGE / f"{name}.pyi"
    written = stub_names(stub) if stub.exists() else set()
    assert there - internal <= written
    assert {key for key in written - tuple_names() if not hasattr(module, key)} == set()


def tuple_names():
    """The namedtuples that `_tensor.pyi` makes up for results."""
    tree = ast.parse((PACKAGE / "_tensor.pyi").read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef) and node.name != "Tensor"}


def test_checker_knows_every_public_name(checked):
    assert checked["names.py"] == {}


def test_right_program_passes_strict_checks(checked):
    assert checked["right.py"] == {}


def test_every_wrong_line_fails_the_checks(checked):
    lines = dict(enumerate(WRONG.splitlines(), 4))
    assert {line for number, line in lines.items() if number not in checked["wrong.py"]} == set()


# --- What the stubs say is returned ----------------------------------------------------------------------------------


def returned():
    """Operator or composite -> the annotations of its results, of all its overloads."""
    found = {}
    for file, prefix in (("__init__.pyi", ""), ("linalg.pyi", "linalg_")):
        for node in ast.parse((PACKAGE / file).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                found.setdefault(prefix + node.name, []).append(ast.unparse(node.returns))
    return found


def fields_of(name):
    tree = ast.parse((PACKAGE / "_tensor.pyi").read_text(encoding="utf-8"))
    (node,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    return tuple(item.target.id for item in node.body)


def fits(result, annotation):
    if annotation == "Any":
        return True
    if annotation == "Tensor":
        return isinstance(result, fg.Tensor)
    if annotation.startswith("tuple[Tensor, "):
        return isinstance(result, tuple) and all(isinstance(item, fg.Tensor) for item in result)
    if annotation in ("_bool", "Size"):
        return isinstance(result, bool if annotation == "_bool" else fg.Size)
    return getattr(result, "_fields", None) == fields_of(annotation)


@pytest.mark.parametrize("name", sorted(n for n in returned() if n in declarations and declarations[n].samples))
def test_results_have_the_type_that_the_stub_says(name):
    generator = fg.Generator().manual_seed(0)

    def make(*shape):
        return fg.rand(shape, generator=generator, dtype=fg.float64)

    annotations = returned()[name]
    for args, kwargs in declarations[name].samples(make):
        result = declarations[name].function(*args, **kwargs)
        assert any(fits(result, annotation) for annotation in annotations), (annotations, type(result))
