"""Every public name explains itself; the usual ones with parameters, result and a runnable example."""
import inspect
import re
import types

import pytest

import fastgrad as fg
from fastgrad.ops import declarations

NAMESPACES = [fg.autograd, fg.autograd.graph, fg.memory, fg.random]
if hasattr(fg, "linalg"):
    NAMESPACES.append(fg.linalg)

# What a newcomer meets in the first week.
USUAL = (
    "abs add all amax amin any arange argmax argmin as_tensor bmm cat chunk clamp clone cos cumprod cumsum diagonal "
    "div dot einsum empty exp eye flatten flip from_numpy full gather index_select linspace log log_softmax logsumexp "
    "masked_fill masked_select matmul max maximum mean median min minimum mm mul multinomial mv neg norm ones outer "
    "permute pow prod rand randint randn randperm relu reshape roll scatter sigmoid sin softmax sort split sqrt "
    "squeeze stack std sub sum tan tanh tensor topk transpose tril triu unbind unsqueeze var where zeros"
).split()

# Docstrings that lean on another one's say so with one of these.
REFERS = ("arguments and errors as for", "arguments as for", "otherwise as", "see there")


def sections(text):
    """The NumPy-style headings of a docstring."""
    lines = inspect.cleandoc(text).splitlines()
    return {line for line, below in zip(lines, lines[1:]) if line and set(below) == {"-"} and len(below) >= len(line)}


def public():
    """Name -> object of everything that is public and can have a docstring of its own."""
    found = {}
    for module in (fg, *NAMESPACES):
        prefix = module.__name__.partition(".")[2]
        for name in getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")]):
            value = getattr(module, name)
            if not isinstance(value, (types.ModuleType, fg.dtype)):
                found[f"{prefix}.{name}" if prefix else name] = value
    found.update((f"Tensor.{name}", value) for name, value in vars(fg.Tensor).items() if not name.startswith("_"))
    return found


def test_every_public_name_has_a_docstring():
    assert [name for name, value in public().items() if not (value.__doc__ or "").strip()] == []


def summary(text):
    """The first paragraph; in compiled code it comes after the signature."""
    first, _, rest = inspect.cleandoc(text).partition("\n\n")
    return rest.partition("\n\n")[0] if re.fullmatch(r"[\w.]+\(.*\)", first) else first


def test_docstrings_begin_with_a_sentence():
    firsts = {name: summary(value.__doc__) for name, value in public().items()}
    assert {name: first for name, first in firsts.items() if not first.rstrip().endswith((".", ":"))} == {}


@pytest.mark.parametrize("name", USUAL)
def test_usual_name_has_parameters_result_and_example(name):
    text = getattr(fg, name).__doc__
    wanted = {"Examples"} if any(words in text for words in REFERS) else {"Parameters", "Returns", "Examples"}
    assert wanted - sections(text) == set()
    assert ">>>" in text


def test_operators_without_a_docstring_of_their_own_are_internal():
    generated = [d.name for d in declarations.values() if d.function.__doc__.endswith(f"see ``torch.{d.name}``.")]
    assert [name for name in generated if declarations[name].facts["public"]] == []


def test_sections_are_those_of_numpy():
    known = {
        "Attributes", "Examples", "Methods", "Notes", "Parameters", "Raises", "References", "Returns", "See Also",
        "Warns", "Yields",
    }
    assert {name: sections(value.__doc__) - known for name, value in public().items()
            if sections(value.__doc__) - known} == {}
