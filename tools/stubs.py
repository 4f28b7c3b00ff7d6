"""Write the stubs from which type checkers and editors know the names that only exist at run time.

``python -m tools.stubs`` writes them, ``python -m tools.stubs --check`` ends with 1 if they are not up to date.

Functions of ``fastgrad`` that operators or composites are made by, and what is attached to Tensor, come from the
imported package: names, order and defaults from the signatures, types from annotations and, where there are none (an
operator) or only Any, from the tables below. `_tensor.pyi` begins with the compiled part of Tensor, by hand, and is
written from MARK on; `__init__.pyi` is written whole.
"""
from __future__ import annotations

import ast
import builtins
import inspect
import re
import sys
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1] / "src" / "fastgrad"
MARK = "    # Written by tools/stubs.py from here on: run `make stubs`.\n"
HEADER = "# Written by tools/stubs.py: run `make stubs`.\n"
WIDTH = 120

# --- What signatures do not say --------------------------------------------------------------------------------------

# The type of a parameter without annotation, by its name; where the default is None, None is added. A parameter that
# is not here has the type of its default.
PARAMETERS = {
    **dict.fromkeys(
        "a abs angle b batch1 batch2 boundaries condition elements end imag index input mask mat mat1 mat2 real "
        "sorted_sequence sorter source src tau tensor tensor1 tensor2 test_elements vec vec1 vec2 weights x y A "
        "B L LU pivots".split(),
        "Tensor",
    ),
    **dict.fromkeys("other exponent".split(), "Operand"),
    **dict.fromkeys("alpha beta fill_value threshold value".split(), "Number"),
    **dict.fromkeys("min max values weight".split(), "Tensor | Number"),
    **dict.fromkeys(
        "axis chunks diagonal dim dim0 dim1 dim2 dimension end_dim k length n offset start start_dim step".split(),
        "int",
    ),
    **dict.fromkeys("eps neginf posinf".split(), "float"),
    **dict.fromkeys("atol rtol tol".split(), "Tensor | float"),
    "destination": "Dims",
    "dims": "Dims",
    "dtype": "DtypeLike",
    **dict.fromkeys("append prepend".split(), "Tensor"),
    "correction": "Number",
    "driver": "str",
    "dx": "Number",
    "equation": "str",
    "indices": "Sequence[Tensor]",
    "indexing": "str",
    "indices_or_sections": "int | Sequence[int] | Tensor",
    "keepdim": "bool",
    "matrices": "Tensor",
    "out": "None",
    **dict.fromkeys("ord p".split(), "float | str"),
    "q": "Tensor | float",
    "repeats": "Dims",
    "sections": "int",
    "shape": "Dims",
    "shapes": "Sequence[int]",
    "shifts": "Dims",
    "size": "Dims",
    "sizes": "Sizes",
    "split_size": "int | Sequence[int]",
    "split_size_or_sections": "int | Sequence[int]",
    "split_sizes": "Sequence[int]",
    "stride": "Sequence[int]",
    "tensors": "Sequence[Tensor]",
    **dict.fromkeys("unbiased upper".split(), "bool"),
}

# Exceptions for one function: (function, parameter) -> type.
SPECIAL = {
    ("movedim", "source"): "Dims",
    ("repeat_interleave", "repeats"): "Tensor | int",
    ("take_along_dim", "indices"): "Tensor",
    ("tensor_split", "indices"): "Sequence[int] | Tensor",
    ("to", "args"): "Tensor | DtypeLike | _device | bool | None",
    ("unfold", "size"): "int",
}

# Functions whose `other` is a tensor and no number.
TENSOR_OTHER = frozenset("cross inner linalg_cross kron matmul type_as vdot view_as reshape_as expand_as".split())

# Operators that reduce over several dimensions: `dim` is one, several, or (None) all.
MANY_DIMS = frozenset(
    "all amax amin any count_nonzero linalg_matrix_norm linalg_norm linalg_vector_norm logsumexp mean nanmean nansum "
    "norm squeeze std std_mean sum var var_mean".split()
)

# What a function gives that is not a tensor. Words stand for a namedtuple of these tensors.
RETURNS = {
    **dict.fromkeys("allclose equal is_nonzero is_same_size".split(), "bool"),
    **dict.fromkeys("cummax cummin kthvalue mode sort topk".split(), "(values indices)"),
    "frexp": "(mantissa exponent)",
    "linalg_cholesky_ex": "(L info)",
    "linalg_inv_ex": "(inverse info)",
    "linalg_lstsq": "(solution residuals rank singular_values)",
    "linalg_lu": "(P L U)",
    "linalg_lu_factor": "(LU pivots)",
    "linalg_lu_factor_ex": "(LU pivots info)",
    "linalg_solve_ex": "(result info)",
    "linalg_svd": "(U S Vh)",
    "qr": "(Q R)",
    "slogdet": "(sign logabsdet)",
    **dict.fromkeys("std_mean var_mean".split(), "tuple[Tensor, Tensor]"),
    "svd": "(U S V)",
    "unique": "Any",
    "unique_consecutive": "Any",
}

# Functions with more than one signature; the first parameter of a method is the tensor.
OVERLOADS = {
    **dict.fromkeys(("max", "min"), [
        "(input: Tensor) -> Tensor",
        "(input: Tensor, dim: int, keepdim: bool = False) -> ValuesIndices",
        "(input: Tensor, other: Tensor) -> Tensor",
    ]),
    **dict.fromkeys(("median", "nanmedian"), [
        "(input: Tensor) -> Tensor",
        "(input: Tensor, dim: int, keepdim: bool = False) -> ValuesIndices",
    ]),
    "nonzero": [
        "(input: Tensor, *, as_tuple: Literal[False] = False) -> Tensor",
        "(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]",
    ],
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), [
        "(tensor: Tensor, /) -> Tensor",
        "(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]",
        "(first: Tensor, second: Tensor, /, *tensors: Tensor) -> tuple[Tensor, ...]",
    ]),
    "where": [
        "(condition: Tensor) -> tuple[Tensor, ...]",
        "(condition: Tensor, input: Tensor | Number, other: Tensor | Number) -> Tensor",
    ],
}
# As methods they are different.
METHOD_OVERLOADS: dict[str, list[str]] = {
    "where": ["(self, condition: Tensor, other: Tensor | Number) -> Tensor"],
}

# The builtins that names of the package hide, as `_types.pyi` has them.
HIDDEN = {"bool": "_bool", "complex": "_complex", "float": "_float", "int": "_int"}

# What annotations in the package mean in a stub, where that is not the same word.
WORDS = {"dtype": "_dtype", "device": "_device"}
# Where the package's stub has the words from.
OFFERED = {
    "_device": ["device as _device"],
    "_dtypes": ["DtypeLike", "dtype as _dtype"],
    "_types": ["Array", "Dims", "Index", "Number", "Operand", "Sizes", *HIDDEN.values()],
}
STANDARD = {
    "collections.abc": frozenset("Callable Iterable Iterator Sequence".split()),
    "typing": frozenset("Any Literal NamedTuple overload".split()),
}
KNOWN = frozenset(
    "Any Array Callable Dims DtypeLike Fixed Generator Index Iterable Iterator Literal None Number Operand "
    "RemovableHandle Sequence Size Sizes Tensor Unpack ValuesIndices _Sizes _device _dtype".split()
)


class StubError(Exception):
    """Something without a type, or with an annotation that a stub cannot have."""


# --- Signatures ------------------------------------------------------------------------------------------------------


class Namespace:
    """Writes functions into a module or class, whose own names hide the builtins that they share a name with."""

    def __init__(self, names: Iterable[str], tuples: dict[str, tuple[str, ...]], *, methods: bool = False) -> None:
        self.names = frozenset(names)
        self.methods = methods
        self.tuples = tuples        # name -> fields of the namedtuples that results are; shared by all stubs
        self.problems: list[str] = []

    def check(self) -> None:
        """Raise for all that could not be written."""
        if self.problems:
            raise StubError("\n".join(["for tools/stubs.py to say:", *dict.fromkeys(self.problems)]))

    def spelled(self, annotation: str, where: str) -> str:
        """An annotation as it must be written here."""
        tree = ast.parse(annotation, mode="eval")
        for node in ast.walk(tree):
            if not isinstance(node, ast.Name):
                continue
            word = WORDS.get(node.id, node.id)
            if hasattr(builtins, word) and word not in KNOWN:
                word = HIDDEN[word] if word in self.names else word
            elif word not in KNOWN and word not in self.tuples:
                self.problems.append(f"{where}: what {word!r} in {annotation!r} is in a stub (WORDS, KNOWN)")
            node.id = word
        return ast.unparse(tree)

    def parameter(self, function: str, p: inspect.Parameter) -> str:
        """One parameter with its type and default."""
        where = f"{function}({p.name})"
        annotation = SPECIAL.get((function, p.name)) or self.annotation(function, p)
        if p.default is None and "None" not in annotation and annotation != "Any":
            annotation += " | None"
        stars = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        if p.kind is p.VAR_POSITIONAL and annotation == "Sequence[Tensor]":
            annotation = "Tensor | Sequence[Tensor]"
        text = f"{stars}{p.name}: {self.spelled(annotation, where)}"
        return text if p.default is p.empty else f"{text} = {shown(p.default)}"

    def annotation(self, function: str, p: inspect.Parameter) -> str:
        given = p.annotation
        if given is not p.empty and given != "Any":
            return given if isinstance(given, str) else inspect.formatannotation(given)
        if p.name == "dim" and function in MANY_DIMS:
            return "Dims"
        if p.name == "other" and function in TENSOR_OTHER:
            return "Tensor"
        if isinstance(p.default, tuple):
            return "Dims"
        if p.name in PARAMETERS:
            return PARAMETERS[p.name]
        if isinstance(p.default, (bool, int, float, str)):
            return type(p.default).__name__
        if given is not p.empty:
            return "Any"
        self.problems.append(f"{function}({p.name}={p.default}): the parameter's type (PARAMETERS)")
        return "Any"

    def result(self, function: str, annotation: Any) -> str:
        """The type that a function returns."""
        if annotation not in (inspect.Signature.empty, "Any") and not str(annotation).startswith("tuple[Any"):
            text = str(annotation)
        elif function in RETURNS:
            text = RETURNS[function]
            if text.startswith("("):
                text = self.named_tuple(tuple(text.strip("()").split()))
        elif annotation in (inspect.Signature.empty, "Any"):
            text = self.declared_result(function)
        else:
            text = str(annotation).replace("Any", "Tensor")
        return self.spelled(text, f"{function}() ->")

    def declared_result(self, function: str) -> str:
        """What an operator's declaration says about its outputs: one, several, or one for each piece."""
        from fastgrad.ops import declarations

        facts = declarations[function].facts if function in declarations else {}
        if facts.get("outputs"):
            return self.named_tuple(facts["outputs"])
        return "tuple[Tensor, ...]" if facts.get("multi_view") else "Tensor"

    def named_tuple(self, fields: tuple[str, ...]) -> str:
        name = "".join(field[:1].upper() + field[1:] for field in fields)
        self.tuples[name] = fields
        return name

    def write(self, name: str, function: Any, *, returns: str | None = None) -> list[str]:
        """The lines that declare one function. ``returns``: of an in-place form, whatever the function itself gives."""
        own = getattr(function, "__name__", name)
        table = METHOD_OVERLOADS if self.methods and own in METHOD_OVERLOADS else OVERLOADS
        lines = []
        if own in table and returns is None:
            signatures = table[own]
            for text in signatures:
                if self.methods and not text.startswith("(self"):
                    text = "(self" + text[text.index("Tensor") + len("Tensor") :]
                if len(signatures) > 1:
                    lines.append("@overload")
                lines.append(f"def {name}{self.spelled_signature(text, name)}: ...")
            return lines
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())
        result = returns or self.result(own, signature.return_annotation)
        return wrapped(f"def {name}(", self.parameters(own, parameters), f") -> {result}: ...")

    def spelled_signature(self, text: str, name: str) -> str:
        """A signature of the tables with its annotations spelled for this place."""
        tree = ast.parse(f"def {name}{text}: ...")
        for node in ast.walk(tree):
            if isinstance(node, ast.arg) and node.annotation is not None:
                node.annotation = ast.parse(self.spelled(ast.unparse(node.annotation), name), mode="eval").body
            elif isinstance(node, ast.FunctionDef) and node.returns is not None:
                node.returns = ast.parse(self.spelled(ast.unparse(node.returns), name), mode="eval").body
        line = ast.unparse(tree).splitlines()[0].removesuffix(":")
        return re.sub(r"(?<=[\w\]])=(?=\w)", " = ", line[line.index("(") :])

    def parameters(self, function: str, parameters: list[inspect.Parameter]) -> list[str]:
        """Parameters in a list, with the markers / and * where they belong; a method's first is self."""
        written: list[str] = []
        if self.methods:
            first = parameters[0]
            parameters = parameters[1:] if first.kind is not first.VAR_POSITIONAL else parameters
            written.append("self")
        starred = False
        for i, p in enumerate(parameters):
            if p.kind is p.KEYWORD_ONLY and not starred:
                written.append("*")
                starred = True
            starred = starred or p.kind is p.VAR_POSITIONAL
            written.append(self.parameter(function, p))
            following = parameters[i + 1].kind if i + 1 < len(parameters) else None
            if p.kind is p.POSITIONAL_ONLY and following is not p.POSITIONAL_ONLY:
                written.append("/")
        return written


def shown(default: Any) -> str:
    """A default as a stub has it: literals as they are, anything else as three dots."""
    if default is None or isinstance(default, (bool, int, str)):
        return repr(default)
    if isinstance(default, float) and default - default == 0:
        return repr(default)
    if isinstance(default, tuple) and all(type(item) is int for item in default):
        return repr(default)
    return "..."


def wrapped(opening: str, items: list[str], closing: str, indent: int = 4) -> list[str]:
    """One line, or one for each item if that is too long (once it is indented)."""
    line = opening + ", ".join(items) + closing
    if len(line) + indent <= WIDTH:
        return [line]
    return [opening, *(f"    {item}," for item in items), closing]


# --- The two files ---------------------------------------------------------------------------------------------------


def tensor_stub(current: str, tuples: dict[str, tuple[str, ...]]) -> str:
    """`_tensor.pyi`: the part above MARK as it is, and below it whatever was attached to Tensor."""
    from fastgrad._tensor import Tensor

    head, mark, _ = current.partition(MARK)
    if not mark:
        raise StubError("_tensor.pyi has lost the line that says where the written part begins")
    by_hand = class_names(head)
    attached = {name: value for name, value in vars(Tensor).items() if is_attached(name, value, by_hand)}
    space = Namespace({*by_hand, *attached}, tuples, methods=True)
    lines: list[str] = []
    for name, value in sorted(attached.items()):
        lines += property_lines(space, name, value) if isinstance(value, property) else method_lines(space, name, value)
    space.check()
    body = "".join(f"    {line}\n" for line in lines)
    text = head + MARK + body
    for name, fields in sorted(tuples.items()):
        text += f"\nclass {name}(NamedTuple):\n" + "".join(f"    {field}: Tensor\n" for field in fields)
    words = words_of(text)
    for source, offered in STANDARD.items():
        text = re.sub(rf"from {source} import .*\n", import_lines(source, words & offered), text, count=1)
    return text


def class_names(text: str) -> set[str]:
    """The names that the stub's class has by hand."""
    for node in ast.parse(text + "    ...\n").body:
        if isinstance(node, ast.ClassDef) and node.name == "Tensor":
            return {
                item.target.id if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
                else item.name if isinstance(item, ast.FunctionDef) else ""
                for item in node.body
            }
    raise StubError("_tensor.pyi has no class Tensor")


def is_attached(name: str, value: Any, by_hand: set[str]) -> bool:
    """Whether an attribute of the type is one that Python code has put there, and of interest outside."""
    if name in by_hand or (name.startswith("_") and not name.startswith("__")):
        return False
    return isinstance(value, (types.FunctionType, property)) or type(value).__name__ == "Operator"


def property_lines(space: Namespace, name: str, value: property) -> list[str]:
    getter = value.fget
    result = getter.__name__ if isinstance(getter, type) else space.result(
        name, inspect.signature(getter).return_annotation if getter is not None else "Any")
    lines = ["@property", f"def {name}(self) -> {result}: ..."]
    if value.fset is not None:
        lines += [f"@{name}.setter", f"def {name}(self, value: Operand) -> None: ..."]
    return lines


def method_lines(space: Namespace, name: str, value: Any) -> list[str]:
    """A method; an in-place form takes what the operator takes that it is the form of."""
    from fastgrad._operator import Operator

    wrapped_by_value = getattr(value, "__wrapped__", None)
    if isinstance(wrapped_by_value, Operator):
        return space.write(name, wrapped_by_value, returns="Tensor")
    return space.write(name, value)


def package_stub(tuples: dict[str, tuple[str, ...]]) -> str:
    """`__init__.pyi`: what other modules define, from there; dtypes; then the operators."""
    import fastgrad
    from fastgrad._dtypes import dtype
    from fastgrad.ops import functions

    public = {name: value for name, value in vars(fastgrad).items() if not name.startswith("_")}
    space = Namespace(public, tuples)
    dtypes: list[str] = []
    lines: list[str] = []
    imports: dict[str, list[str]] = {}
    for name, value in sorted(public.items()):
        if name in functions:
            lines += space.write(name, functions[name])
        elif isinstance(value, types.ModuleType):
            imports.setdefault("", []).append(name)
        elif isinstance(value, dtype):
            dtypes.append(f"{name}: _dtype")
        else:
            imports.setdefault(home(name, value), []).append(name)
    return module(space, imports, ["__version__: str", *dtypes, "", *lines])


def linalg_stub(tuples: dict[str, tuple[str, ...]]) -> str:
    """`linalg.pyi`: the operators whose names begin with ``linalg_``, and what else is there."""
    from fastgrad import linalg

    names: list[str] = vars(linalg)["__all__"]
    space = Namespace(names, tuples)
    lines: list[str] = []
    imports: dict[str, list[str]] = {"_tensor": ["Tensor"]}
    for name in names:
        value = getattr(linalg, name)
        if isinstance(value, type):
            imports.setdefault(value.__module__.removeprefix("fastgrad."), []).append(name)
        else:
            lines += space.write(name, value)
    return module(space, imports, lines)


def module(space: Namespace, imports: dict[str, list[str]], lines: list[str]) -> str:
    """A module's stub: imports for others by module, and for the lines themselves; then the lines."""
    space.check()
    body = "\n".join(lines)
    words = words_of(body)
    needed = {name: [f"{word} as {word}" for word in offered] for name, offered in imports.items()}
    for name, offered in {**OFFERED, "_tensor": list(space.tuples)}.items():
        needed.setdefault(name, []).extend(word for word in offered if word.rpartition(" ")[2] in words)
    text = HEADER + "".join(import_lines(source, words & offered) for source, offered in STANDARD.items())
    text += "\n" + "".join(import_lines(f".{name}", needed[name]) for name in sorted(needed))
    return f"{text}\n{body}\n"


def words_of(text: str) -> set[str]:
    """The names that occur as such in a module."""
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def import_lines(module: str, names: Iterable[str]) -> str:
    """An import statement, sorted as Ruff does."""
    ordered = sorted(names, key=import_order)
    if not ordered:
        return ""
    if len(", ".join(ordered)) + len(module) + len("from  import ") <= WIDTH:
        return f"from {module} import {', '.join(ordered)}\n"
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in ordered) + ")\n"


def import_order(name: str) -> tuple[int, str, str]:
    """Constants, then classes, then the rest."""
    word = name.partition(" as ")[0]
    kind = 2 if word.lstrip("_")[:1].islower() else 1 if not word.isupper() or len(word) == 1 else 0
    return kind, word, name


def home(name: str, value: Any) -> str:
    """The module of the package that offers a name, by its ``__all__`` or because it defines it."""
    for module in loaded_modules():
        offers = getattr(module, "__all__", ())
        if vars(module).get(name) is value and (name in offers or getattr(value, "__module__", "") == module.__name__):
            return module.__name__.removeprefix("fastgrad.")
    raise StubError(f"fastgrad.{name}: no module of the package has it in its __all__")


def loaded_modules() -> Iterator[types.ModuleType]:
    for name in sorted(sys.modules):
        if name.startswith("fastgrad."):
            yield sys.modules[name]


def stubs() -> dict[Path, str]:
    """What the written stubs must contain."""
    tensor = PACKAGE / "_tensor.pyi"
    tuples: dict[str, tuple[str, ...]] = {}
    return {
        PACKAGE / "__init__.pyi": package_stub(tuples),
        PACKAGE / "linalg.pyi": linalg_stub(tuples),
        tensor: tensor_stub(tensor.read_text(encoding="utf-8"), tuples),
    }


def main(arguments: list[str]) -> int:
    stale = [path for path, text in stubs().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.name} is not up to date: run `make stubs`")
        return 1 if stale else 0
    for path in stale:
        path.write_text(stubs()[path], encoding="utf-8")
        print(f"wrote {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
