"""The examples in docstrings that pytest does not find: those of compiled code, of operators and of attached methods.

What `pytest --doctest-modules src/fastgrad` finds is left to it (`make test` runs both).
"""
import doctest
import importlib
import types
from pathlib import Path

import pytest

import fastgrad as fg
from fastgrad.ops import declarations

COMPILED = [importlib.import_module(f"fastgrad.{path.stem}") for path in sorted(Path(fg.__file__).parent.glob("*.pyx"))]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def documented():
    """Name -> object, for whatever may have an example."""
    for module in COMPILED:
        yield module.__name__, module
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) == module.__name__:
                yield f"{module.__name__}.{name}", value
                if isinstance(value, type):
                    yield from ((f"{module.__name__}.{name}.{key}", item) for key, item in vars(value).items())
    for name, declaration in declarations.items():
        yield name, declaration.function
    for name, value in vars(fg.Tensor).items():
        yield f"Tensor.{name}", value


def examples():
    """The doctests, each docstring once."""
    parser = doctest.DocTestParser()
    found = {}
    for name, value in documented():
        text = getattr(value, "__doc__", None)
        # A Python function that is where it was defined is found by pytest.
        if not isinstance(text, str) or ">>>" not in text or text in found or isinstance(value, types.FunctionType):
            continue
        found[text] = parser.get_doctest(text, {}, name, None, 0)
    return list(found.values())


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_example_gives_what_it_says(example):
    report = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    runner.run(example, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_examples_of_operators_are_found():
    names = {example.name for example in examples()}
    assert {"fastgrad._tensor.Tensor", "fastgrad._node.NodeObject.name"} <= names
