"""Floor 4: the thin Python API: Tensor methods that no declaration gives.

They are plain functions attached to the compiled type, which is why their first parameter is ``self``.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _errors, _record, creation, random
from ._dtypes import as_dtype
from ._printing import tensor_format, tensor_repr
from ._tensor import Tensor, attach, from_ndarray
from .autograd import _backward
from .ops import functions
from .ops.views import copy, to_copy

__all__: list[str] = []


def method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Attach a function to Tensor under its own name."""
    attach(function.__name__, function)
    return function


# --- Differentiation -------------------------------------------------------------------------------------------------


@method
def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Differentiate this tensor with respect to the leaves: see :func:`fastgrad.autograd.backward`.

    Parameters
    ----------
    gradient : Tensor, optional
        The cotangent, of this tensor's shape. Not needed for a real tensor of one element.
    retain_graph, create_graph, inputs
        As for :func:`fastgrad.autograd.backward`.
    """
    _backward.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


@method
def retain_grad(self: Tensor) -> None:
    """Keep ``.grad`` of this non-leaf tensor too, in passes from now on; nothing happens for a leaf."""
    if not self.requires_grad:
        raise RuntimeError(f"can't retain_grad on Tensor that has requires_grad=False: {_errors.why_no_grad(self)}")
    _record.retain_grad(self)


@method
def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call ``hook(grad)`` when this tensor's gradient has been computed; a tensor it returns replaces the gradient.

    Returns
    -------
    RemovableHandle
        ``handle.remove()`` unregisters the hook.
    """
    if not self.requires_grad:
        raise RuntimeError(f"cannot register a hook on a tensor that doesn't require gradient: "
                           f"{_errors.why_no_grad(self)}")
    hooks = _record.tensor_hooks(self)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


class RemovableHandle:
    """Removes a hook: by ``remove()``, or at the end of a ``with`` block."""

    _next_id = 0

    def __init__(self, hooks: dict[int, Any]) -> None:
        self._hooks = hooks
        self.id = RemovableHandle._next_id
        RemovableHandle._next_id += 1

    def remove(self) -> None:
        """Unregister the hook; a second call does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


@method
def detach_(self: Tensor) -> Tensor:
    """Cut this tensor's history in place: it becomes a leaf that does not require grad."""
    if self._is_view():
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    _record.drop_history(self)
    return self


# --- Dtypes ----------------------------------------------------------------------------------------------------------


@method
def to(self: Tensor, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, **ignored: Any) -> Tensor:
    """Convert to another dtype: ``t.to(fastgrad.float64)``, ``t.to(other)``; the same tensor if nothing changes.

    A device may be named, and must be the CPU.
    """
    for arg in args:
        if isinstance(arg, Tensor):
            dtype = arg.dtype
        elif isinstance(arg, bool):
            continue
        elif isinstance(arg, str) and arg.partition(":")[0] in _DEVICES:
            device = arg
        else:
            dtype = as_dtype(arg)
    if device is not None and str(device).partition(":")[0] != "cpu":
        raise RuntimeError(f"to: fastgrad runs on the CPU only, got device {str(device)!r}")
    target = self.dtype if dtype is None else as_dtype(dtype)
    if target == self.dtype:
        return functions["clone"](self) if copy else self
    return to_copy(self, target)  # type: ignore[no-any-return]


_DEVICES = frozenset({"cpu", "cuda", "mps", "xpu", "meta"})


@method
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Convert to the dtype of ``other``."""
    return self.to(other.dtype)


def _caster(name: str, target: str) -> None:
    def caster(self: Tensor) -> Tensor:
        return self.to(as_dtype(target))

    caster.__name__ = caster.__qualname__ = name
    caster.__doc__ = f"Convert to {target}."
    attach(name, caster)


for _name, _target in {
    "bool": "bool", "byte": "uint8", "char": "int8", "short": "int16", "int": "int32", "long": "int64",
    "half": "float16", "float": "float32", "double": "float64", "cfloat": "complex64", "cdouble": "complex128",
}.items():
    _caster(_name, _target)


@method
def is_floating_point(self: Tensor) -> bool:
    """Whether the dtype is a floating point one."""
    return self.dtype.is_floating_point


@method
def is_complex(self: Tensor) -> bool:
    """Whether the dtype is a complex one."""
    return self.dtype.is_complex


@method
def is_signed(self: Tensor) -> bool:
    """Whether the dtype has negative values."""
    return self.dtype.is_signed


# --- Geometry --------------------------------------------------------------------------------------------------------


class _Sizes:
    """``t.size`` serves both worlds: called it is PyTorch's ``size()``, as a number NumPy's count of elements."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __call__(self, dim: int | None = None) -> Any:
        shape = self._tensor.shape
        if dim is None:
            return shape
        if not -max(len(shape), 1) <= dim < max(len(shape), 1) or not shape:
            raise IndexError(_errors.dim_out_of_range(dim, len(shape)))
        return shape[dim]

    def __index__(self) -> int:
        return self._tensor.numel()

    __int__ = __index__

    def __eq__(self, other: object) -> bool:
        return self._tensor.numel() == other

    def __hash__(self) -> int:
        return hash(self._tensor.numel())

    def __repr__(self) -> str:
        return str(self._tensor.numel())


attach("size", property(_Sizes, doc="Called: the shape, or the size of one dimension. As a number: how many elements."))


@method
def contiguous(self: Tensor, **ignored: Any) -> Tensor:
    """This tensor, or a contiguous copy if its elements do not lie in C order."""
    return self if self.is_contiguous() else functions["clone"](self)


@method
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """A view with the shape of ``other``."""
    return self.view(other.shape)


@method
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Reshaped to the shape of ``other``."""
    return self.reshape(other.shape)


@method
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expanded to the shape of ``other``."""
    return self.expand(other.shape)


@method
def t(self: Tensor) -> Tensor:
    """The transpose of a tensor of at most 2 dimensions; a view."""
    if self.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return self.transpose(0, 1) if self.ndim == 2 else self


def _reversed_dims(self: Tensor) -> Tensor:
    return self.permute(tuple(range(self.ndim - 1, -1, -1)))


def _swapped_matrix_dims(self: Tensor) -> Tensor:
    if self.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor.")
    return self.transpose(-2, -1)


attach("data", property(_record.data_of, _record.set_data))
attach("T", property(_reversed_dims, doc="The tensor with its dimensions reversed; a view."))
attach("mT", property(_swapped_matrix_dims, doc="The tensor with its last two dimensions swapped; a view."))


# --- Writing ---------------------------------------------------------------------------------------------------------


@method
def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Write the values of ``src`` (broadcast, cast to this dtype) into this tensor; recorded."""
    return copy.inplace(self, src)


@method
def zero_(self: Tensor) -> Tensor:
    """Write zeros into this tensor; recorded."""
    return self.fill_(0)


@method
def fill_(self: Tensor, value: Any) -> Tensor:
    """Write one value into all elements; recorded."""
    return copy.inplace(self, value)


# --- Python's protocols ----------------------------------------------------------------------------------------------


@method
def _repr(self: Tensor) -> str:
    return tensor_repr(self)


@method
def __format__(self: Tensor, spec: str) -> str:
    return tensor_format(self, spec)


@method
def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
            f"This one was made by {type(self.grad_fn).__name__}; copy x.detach() instead."
        )
    if id(self) in memo:
        return memo[id(self)]  # type: ignore[no-any-return]
    copied = from_ndarray(self.detach().numpy(), copy=True, requires_grad=self.requires_grad)
    memo[id(self)] = copied
    if self.grad is not None:
        copied.grad = self.grad.detach().clone()
    return copied


def _rebuild(array: Any, requires_grad: bool, grad: Any) -> Tensor:
    t = from_ndarray(array, copy=not array.flags.writeable, requires_grad=requires_grad)
    if grad is not None:
        t.grad = _rebuild(grad, False, None)
    return t


@method
def _reduce(self: Tensor, protocol: int) -> Any:
    if not self.is_leaf:
        raise RuntimeError(
            f"cannot pickle a tensor that has a history (made by {type(self.grad_fn).__name__}): "
            "pickle x.detach() instead"
        )
    grad = None if self.grad is None else self.grad.detach().numpy()
    return _rebuild, (self.detach().numpy(), self.requires_grad, grad)


for _name, _function in {**creation.METHODS, **random.METHODS}.items():
    attach(_name, _function)
