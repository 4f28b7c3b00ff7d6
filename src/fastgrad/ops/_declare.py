"""Floor 3: declaring operators. One call of `operator` is all that an operator is.

From it come the function in ``fastgrad``, the Tensor method and the in-place form, the aliases, the node's class, what
is saved (by the names the formulas use), the NumPy functions that dispatch to it, and the parametrized tests.
"""
from __future__ import annotations

import functools
import types
from collections import namedtuple
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._fast import register
from .._operator import Operator, required
from .._tensor import Tensor, attach

# How tensor arguments are cast before the forward sees them (the numbers are those of `_operator.pxd`).
PROMOTE, FLOAT, COMPARE, KEEP, SAME = range(5)

# Kinds of linear map, from which the forward-mode rule follows (`jvp=`).
LINEAR, BILINEAR, DIAGONAL = "linear", "bilinear", "diagonal"

# Where an operator's arguments are drawn from in the tests: an interval of the reals.
REALS = (-3.0, 3.0)
POSITIVE = (0.2, 3.0)
UNIT = (-0.9, 0.9)
ABOVE_ONE = (1.2, 4.0)
NONZERO = "nonzero"

OPERANDS = (Tensor, int, float, complex, np.ndarray, np.generic)     # what operators take for a tensor

functions: dict[str, Any] = {}     # public name -> what it is in the namespace `fastgrad`
declarations: dict[str, Declaration] = {}
numpy_functions: dict[Any, Any] = {}   # NumPy function or ufunc -> what it dispatches to


class Declaration:
    """Everything that was said about one operator or composite; what the tests and the documentation read.

    Attributes
    ----------
    name : str
        The operator's name.
    function : callable
        The operator, or the composite's Python function.
    vjp : dict
        Tensor argument -> derivative formula; empty for a composite.
    domain : tuple or str
        Where test arguments are drawn from.
    samples : callable or None
        ``samples(make)`` yields ``(args, kwargs)`` for the tests.
    facts : dict
        The rest: ``aliases``, ``source``, ``special``, ``complex``, ``inplace``, ``method``, ``composite``.
    """

    def __init__(self, name: str, function: Any, vjp: dict[str, Callable[..., Any]], domain: Any,
                 samples: Callable[..., Any] | None, **facts: Any) -> None:
        self.name = name
        self.function = function
        self.vjp = vjp
        self.domain = domain
        self.samples = samples
        self.facts = facts

    def __repr__(self) -> str:
        return f"<declaration of {self.name}>"


LITERALS = {"None": None, "True": True, "False": False, "0": 0, "1": 1, "-1": -1}


def literal(text: str) -> Any:
    """A default value. The signatures are this package's own; eval costs 30 us, which 250 declarations would feel."""
    return LITERALS[text] if text in LITERALS else eval(text, {})


def split_arguments(text: str) -> list[str]:
    """The arguments of a signature, split at commas outside brackets."""
    if "(" not in text and "[" not in text:
        return text.split(", ") if text else []
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()]


class Parameters:
    """A signature such as ``sum(input, dim=None, *, keepdim=False)``, taken apart."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.name, _, arguments = text[:-1].partition("(")
        names: list[str] = []
        defaults: list[Any] = []
        self.varargs = self.n_positional = -1
        for part in split_arguments(arguments):
            name, _, default = part.partition("=")
            if name == "*":
                self.n_positional = len(names)
                continue
            if name.startswith("*"):
                self.varargs = len(names)
                self.n_positional = len(names) + 1
                name = name[1:]
            names.append(name)
            defaults.append(literal(default) if default else required())
        if self.n_positional < 0:
            self.n_positional = len(names)
        self.names = tuple(names)
        self.defaults = tuple(defaults)

    def signature(self) -> Any:
        """The same as an `inspect.Signature`, for help() and completion."""
        import inspect  # only when somebody asks: it is slow to import

        kinds = inspect.Parameter
        parameters = []
        for i, name in enumerate(self.names):
            kind = kinds.POSITIONAL_OR_KEYWORD if i < self.n_positional else kinds.KEYWORD_ONLY
            if i == self.varargs:
                kind = kinds.VAR_POSITIONAL  # type: ignore[assignment]
            default = kinds.empty if self.defaults[i] is required() else self.defaults[i]
            parameters.append(kinds(name, kind, default=default))
        return inspect.Signature(parameters)


def operator(
    signature: str,
    *,
    forward: Callable[..., Any],
    vjp: dict[str, Callable[..., Any]] | None = None,
    jvp: Any = None,
    fused: dict[str, str] | None = None,
    dtypes: int = PROMOTE,
    tensors: str | None = None,
    sequence: str | None = None,
    view: bool = False,
    multi_view: bool = False,
    outputs: Iterable[str] | None = None,
    nondifferentiable: Iterable[str] = (),
    differentiable: bool = True,
    node: str | None = None,
    aliases: Iterable[str] = (),
    method: bool = True,
    public: bool = True,
    inplace: bool = False,
    numpy: Any = (),
    loops: Iterable[int] | None = None,
    reduces: str | None = None,
    domain: Any = REALS,
    special: Iterable[float] = (),
    samples: Callable[..., Any] | None = None,
    complex: bool = True,
    source: str = "elementary",
    doc: str | None = None,
) -> Operator:
    """Declare an operator.

    Parameters
    ----------
    signature : str
        Name and arguments as PyTorch has them: ``"mul(input, other)"``. A literal, since the build reads it.
    forward : callable
        Takes all arguments by position, tensors as ndarrays (already cast, see ``dtypes``). Returns an ndarray, or
        a tuple of them.
    vjp : dict
        Tensor argument -> formula. A formula's parameters say what it needs, and that is what is saved: ``g`` is the
        cotangent (a tuple where several outputs are differentiable), ``result`` the output, ``<argument>_shape`` the
        shape of the argument whose formula it is (this saves nothing), and any argument's own name. Formulas are
        written in differentiable operators; broadcasting and casts are undone by the engine.
    jvp : str or dict, optional
        ``LINEAR``, ``BILINEAR``, ``DIAGONAL``, or tensor argument -> formula in the tangent ``t``.
    fused : dict, optional
        C expressions for float32 and float64, by ``"forward"`` or argument. They shadow ``forward`` and ``vjp``; a
        test compares them.
    dtypes : int
        PROMOTE, FLOAT, COMPARE, KEEP or SAME.
    tensors : str, optional
        The tensor arguments, if they are not ``input`` and ``other``.
    sequence : str, optional
        The argument that is a list of tensors (the last of the tensor arguments); its formula returns a list.
    view, multi_view : bool
        The forward returns a NumPy view of its input (several of them): the output shares the input's memory.
    outputs, nondifferentiable : iterable of str
        Names of several outputs, and those that carry no gradient.
    differentiable : bool
        False says outright that there is no derivative.
    node : str, optional
        The node's name without ``Backward0``, where PyTorch's is not the operator's name in CamelCase; whole, if it
        ends with another number (``PowBackward1``).
    aliases, method, public, inplace : iterable of str, bool, bool, bool
        Further names; whether there are a Tensor method, a function in ``fastgrad`` and an in-place form.
    numpy : callable or tuple of them
        NumPy functions and ufuncs that dispatch to this operator.
    loops : iterable of int, optional
        The dtype codes for which NumPy's loops mean the same as PyTorch's operator (all, if not given).
    reduces : {"sum", "mean"}, optional
        Called with a tensor alone, the operator is this full reduction, and runs without making an ndarray.
    domain, special, samples, complex
        For the tests: interval of random arguments, special values, argument lists, whether complex works.
    source : str
        Where the formulas come from.
    """
    parameters = Parameters(signature)
    names = parameters.names
    tensor_names = tensors.split() if tensors else [n for n in ("input", "other") if n in names]
    if sequence:
        tensor_names = [n for n in tensor_names if n != sequence] + [sequence]
    vjp = dict(vjp or {})
    if not differentiable and vjp:
        raise ValueError(f"{parameters.name}: differentiable=False and a vjp")
    unknown = set(vjp) - set(tensor_names)
    if unknown:
        raise ValueError(f"{parameters.name}: vjp for {sorted(unknown)}, which are no tensor arguments")
    outputs = tuple(outputs) if outputs else None
    flags = None
    if outputs:
        flags = tuple(int(o not in tuple(nondifferentiable)) for o in outputs)
    op = Operator(
        parameters.name, names, parameters.defaults, parameters.n_positional, parameters.varargs,
        tuple(names.index(n) for n in tensor_names), sequence is not None, forward, vjp,
        node if node and node[-1].isdigit() else f"{node or camel(parameters.name)}Backward0", dtypes, view, outputs,
    flags,
    )
    if outputs:
        op.set_outputs(namedtuple(parameters.name, outputs), multi_view)
    elif multi_view:
        op.set_outputs(None, True)
    if reduces:
        op.set_reduction(np.add, reduces == "mean")
    if loops is not None:
        op.limit_loops(frozenset(loops))
    register(op, types.MethodType)
    op.__name__ = op.__qualname__ = parameters.name
    op.__module__ = "fastgrad"
    op.spec = parameters
    op.__doc__ = doc or f"{parameters.text}: see ``torch.{parameters.name}``."
    declarations[op.name] = Declaration(
        op.name, op, vjp, domain, samples, jvp=jvp, fused=fused or {}, aliases=tuple(aliases), special=tuple(special),
        complex=complex, source=source, inplace=inplace, method=method, public=public, composite=False,
        differentiable=differentiable, tensor_names=tuple(tensor_names), outputs=outputs, multi_view=multi_view,
    )
    publish(op, (op.name, *aliases), method=method, public=public)
    if inplace:
        publish_inplace(op, (op.name, *aliases))
    for function in numpy if isinstance(numpy, tuple) else (numpy,):
        numpy_functions[function] = op
    return op


def composite(
    signature: str, *, aliases: Iterable[str] = (), method: bool = True, public: bool = True, numpy: Any = (),
    domain: Any = REALS, samples: Callable[..., Any] | None = None, complex: bool = True, source: str = "elementary",
    differentiable: bool = True,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function made of other operators: it needs no formula, since its parts have theirs.

    Used as a decorator on a Python function over tensors; ``signature`` is for help() and must match.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        name = signature.partition("(")[0]
        if signature.startswith((f"{name}(input,", f"{name}(input)")):
            function = with_checked_input(name, function)
        function.__name__ = function.__qualname__ = name
        function.__module__ = "fastgrad"
        declarations[name] = Declaration(
            name, function, {}, domain, samples, jvp=None, fused={}, aliases=tuple(aliases), special=(),
            complex=complex, source=source, inplace=False, method=method, public=public, composite=True,
            differentiable=differentiable, tensor_names=(),
        )
        publish(function, (name, *aliases), method=method, public=public)
        for target in numpy if isinstance(numpy, tuple) else (numpy,):
            numpy_functions[target] = function
        return function

    return declare


def with_checked_input(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind a check of its first argument, which otherwise fails somewhere inside, on an attribute."""

    @functools.wraps(function)
    def checked(input: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(input, OPERANDS):
            raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(input).__name__}")
        return function(input, *args, **kwargs)

    return checked


def publish(function: Any, names: Iterable[str], *, method: bool, public: bool) -> None:
    """Put a function under its names into the namespace and onto Tensor."""
    for name in names:
        if public:
            functions[name] = function
        if method:
            attach(name, function)


def publish_inplace(op: Operator, names: Iterable[str]) -> None:
    """The in-place form, under each name with an underscore."""
    for name in names:
        attach(f"{name}_", inplace_form(op, f"{name}_"))


def inplace_form(op: Operator, name: str) -> Callable[..., Any]:
    """A function that writes an operator's result into its first argument."""

    def form(self: Any, *args: Any, **kwargs: Any) -> Any:
        return op.inplace(self, *args, **kwargs)

    form.__name__ = form.__qualname__ = name
    form.__doc__ = f"In-place form of :func:`fastgrad.{op.name}`: writes into the tensor and returns it."
    form.__wrapped__ = op  # type: ignore[attr-defined]     # for its signature
    return form


def camel(name: str) -> str:
    """``log_softmax`` -> ``LogSoftmax``, as PyTorch names its nodes."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
