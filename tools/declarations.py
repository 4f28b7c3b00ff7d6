"""Read what the operator declarations say about fused loops, without importing anything.

The C loops are generated before the package can be imported, so the declarations are read as text: every call
``operator("mul(input, other)", ..., fused=dict(forward="input * other", ...))`` in ``src/fastgrad/ops``. The signature
and the ``fused`` entries must therefore be literals; everything else in a declaration is free.
"""
from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

TENSOR_ARGUMENTS = ("input", "other")  # unless a declaration says `tensors="..."`


class DeclarationError(Exception):
    """A declaration that cannot be read; the message begins with file and line."""


@dataclass
class Declaration:
    """One operator that has fused expressions.

    Attributes
    ----------
    name : str
        The operator's name, "mul".
    arguments : tuple of str
        Its tensor arguments, in the order of its signature.
    fused : dict of str to str
        C expression by role: "forward", or the argument whose derivative it is.
    """

    name: str
    arguments: tuple[str, ...]
    fused: dict[str, str] = field(default_factory=dict)


def read_declarations(paths: Iterable[Path]) -> list[Declaration]:
    """All declarations with a ``fused`` entry, in the order of ``paths`` and of each file."""
    found: list[Declaration] = []
    places: dict[str, str] = {}
    for path in paths:
        for call in operator_calls(path):
            declaration = read_call(path, call)
            if declaration is None:
                continue
            place = f"{path}:{call.lineno}"
            if declaration.name in places:
                raise DeclarationError(f"{place}: {declaration.name} is declared already at {places[declaration.name]}")
            places[declaration.name] = place
            found.append(declaration)
    return found


def operator_calls(path: Path) -> Iterator[ast.Call]:
    """The calls of ``operator`` in one file, from top to bottom."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    except SyntaxError as error:
        raise DeclarationError(f"{path}:{error.lineno}: {error.msg}") from None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and called_name(node) == "operator"]
    yield from sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def called_name(call: ast.Call) -> str | None:
    return call.func.id if isinstance(call.func, ast.Name) else None


def read_call(path: Path, call: ast.Call) -> Declaration | None:
    """The declaration made by one call, or None where it has nothing fused."""
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    if "fused" not in keywords:
        return None
    if not call.args:
        fail(path, call, 'operator() needs its signature first, as in operator("mul(input, other)", ...)')
    signature = string(path, call.args[0], "the signature of operator()")
    name, parameters = read_signature(path, call.args[0], signature)
    if "tensors" in keywords:
        arguments = tuple(string(path, keywords["tensors"], f"{name}: tensors=").split())
        for argument in arguments:
            if argument not in parameters:
                fail(path, keywords["tensors"], f"{name}: tensors= names {argument!r}, which {signature!r} has not")
    else:
        arguments = tuple(parameter for parameter in parameters if parameter in TENSOR_ARGUMENTS)
    return Declaration(name, arguments, read_fused(path, keywords["fused"], name, arguments))


def read_signature(path: Path, node: ast.expr, signature: str) -> tuple[str, list[str]]:
    """Name and parameter names of a signature such as ``"sum(input, dim=None, *, keepdim=False)"``."""
    try:
        (function,) = ast.parse(f"def {signature}: pass").body
    except (SyntaxError, ValueError):
        function = None
    if not isinstance(function, ast.FunctionDef):
        fail(path, node, f'{signature!r} is not a signature such as "mul(input, other)"')
    parameters = function.args
    return function.name, [p.arg for p in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)]


def read_fused(path: Path, node: ast.expr, name: str, arguments: tuple[str, ...]) -> dict[str, str]:
    """The entries of ``fused=``, written ``dict(forward="...")`` or ``{"forward": "..."}``."""
    items: list[tuple[str, ast.expr]] = []
    if isinstance(node, ast.Call) and called_name(node) == "dict" and not node.args:
        for keyword in node.keywords:
            if keyword.arg is None:
                fail(path, keyword.value, f"{name}: fused= is read before anything can be imported: no ** in it")
            items.append((keyword.arg, keyword.value))
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values):
            if key is None:
                fail(path, value, f"{name}: fused= is read before anything can be imported: no ** in it")
            items.append((string(path, key, f"{name}: a key of fused="), value))
    else:
        fail(path, node, f'{name}: fused= must be written out as dict(forward="...", ...), not {shown(node)}')
    fused: dict[str, str] = {}
    for role, value in items:
        if role != "forward" and role not in arguments:
            fail(path, value, f"{name}: fused {role!r} is neither 'forward' nor a tensor argument {list(arguments)}")
        if role in fused:
            fail(path, value, f"{name}: fused {role!r} is given twice")
        fused[role] = string(path, value, f"{name}: fused {role!r}")
    return fused


def string(path: Path, node: ast.expr, what: str) -> str:
    """The value of a string literal (adjacent literals are one)."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    fail(path, node, f"{what} must be a string literal, not {shown(node)}")


def shown(node: ast.expr) -> str:
    """The source of an expression, shortened to fit a message."""
    text = ast.unparse(node)
    return text if len(text) <= 60 else text[:57] + "..."


def fail(path: Path, node: ast.expr, message: str) -> NoReturn:
    raise DeclarationError(f"{path}:{node.lineno}: {message}")
