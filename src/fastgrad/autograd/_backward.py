"""Floor 5: ``backward`` and ``grad``: checking what the user gives, then one pass of the engine."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import _engine, _errors
from .._tensor import Tensor
from ..creation import ones_like, zeros_like

_strict = False


def _as_tuple(value: Any, what: str) -> tuple[Any, ...]:
    """A tensor or a sequence of them as a tuple; TypeError for anything else."""
    if isinstance(value, Tensor):
        return (value,)
    if isinstance(value, Iterable) and not isinstance(value, str):
        return tuple(value)
    raise TypeError(f"{what} must be a Tensor or a sequence of Tensors, got {type(value).__name__}")


def _check_tensors(values: tuple[Any, ...], what: str, allow_none: bool = False) -> None:
    for i, value in enumerate(values):
        if not isinstance(value, Tensor) and not (allow_none and value is None):
            wanted = "a Tensor or None" if allow_none else "a Tensor"
            raise TypeError(f"{what}[{i}] must be {wanted}, got {type(value).__name__}")


def _gradients(roots: tuple[Tensor, ...], given: Any, what: str) -> list[Tensor]:
    """One cotangent for each root: the given one, checked, or ones for a real one-element root."""
    gradients = (None,) * len(roots) if given is None else (given,) if isinstance(given, Tensor) else tuple(given)
    _check_tensors(gradients, what, allow_none=True)
    if len(gradients) != len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(gradients)} gradients")
    return [_gradient(i, root, gradient) for i, (root, gradient) in enumerate(zip(roots, gradients))]


def _gradient(index: int, root: Tensor, gradient: Tensor | None) -> Tensor:
    if gradient is None:
        if root.numel() != 1 or not root.dtype.is_floating_point:
            raise RuntimeError(_errors.scalar_root(root))
        return ones_like(root)
    if gradient.shape != root.shape:
        raise RuntimeError(_errors.gradient_shape(index, root, gradient))
    if gradient.dtype.is_complex != root.dtype.is_complex:
        raise RuntimeError(_errors.gradient_dtype(index, root, gradient))
    return gradient if gradient.dtype == root.dtype else gradient.to(root.dtype)


def _check_roots(roots: tuple[Tensor, ...]) -> None:
    for i, root in enumerate(roots):
        if not root.requires_grad:
            raise RuntimeError(_errors.no_grad_root(i, root))


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Differentiate ``tensors`` with respect to the leaves and add the results to their ``.grad``.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
        The roots.
    grad_tensors : Tensor, None, or sequence of them
        The cotangent of each root, of its shape. None stands for ones, for real roots of one element.
    retain_graph : bool, optional
        Keep what the graph saved, so that it can be differentiated again. Defaults to ``create_graph``.
    create_graph : bool
        Record the derivative's own computation, so that it can be differentiated.
    inputs : Tensor or sequence of Tensor, optional
        Accumulate only into these (which need not be leaves).

    Raises
    ------
    RuntimeError
        If a root does not require grad, needs an explicit cotangent or got one of another shape, or if the graph was
        freed by an earlier pass.

    Notes
    -----
    Without ``retain_graph`` each operation's saved tensors are freed as soon as its derivative has run. Leaves are
    written last: when a formula fails, no ``.grad`` has changed.

    Examples
    --------
    >>> import fastgrad as fg
    >>> x = fg.tensor([1.0, 2.0], requires_grad=True)
    >>> fg.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) are the same; pass only the first")
        grad_tensors = grad_variables
    roots = _as_tuple(tensors, "tensors")
    _check_tensors(roots, "tensors")
    chosen = None
    if inputs is not None:
        chosen = _as_tuple(inputs, "inputs")
        if not chosen:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        _check_inputs(chosen)
    _check_roots(roots)
    gradients = _gradients(roots, grad_tensors, "grad_tensors")
    retain = create_graph if retain_graph is None else bool(retain_graph)
    _engine.run_backward(list(roots), gradients, retain, bool(create_graph), chosen, True)


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    _check_tensors(inputs, "inputs")
    for i, tensor in enumerate(inputs):
        if not tensor.requires_grad:
            raise RuntimeError(_errors.input_without_grad(i, tensor))


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients of ``outputs`` with respect to ``inputs``; no ``.grad`` is touched.

    Parameters
    ----------
    outputs, inputs : Tensor or sequence of Tensor
        Roots, and what to differentiate by (leaves or not).
    grad_outputs : Tensor, None, or sequence of them
        The cotangent of each output; None stands for ones, for real outputs of one element.
    retain_graph : bool, optional
        Keep what was saved on the way. Defaults to ``create_graph``.
    create_graph : bool
        Record the computation of the gradients.
    allow_unused : bool, optional
        Give None for an input that the outputs do not depend on, instead of raising. Defaults to
        ``materialize_grads``.
    materialize_grads : bool
        Give zeros for such an input.

    Returns
    -------
    tuple of Tensor
        One for each input, of its shape and dtype.

    Examples
    --------
    >>> import fastgrad as fg
    >>> x = fg.tensor(3.0, requires_grad=True)
    >>> (g,) = fg.autograd.grad(x ** 3, x, create_graph=True)
    >>> fg.autograd.grad(g, x)
    (tensor(18.),)
    """
    if is_grads_batched:
        raise NotImplementedError("autograd.grad: is_grads_batched needs vmap, which this version does not have; call "
                                  "grad once for each cotangent")
    if not only_inputs:
        raise ValueError("only_inputs argument is deprecated and is ignored now (defaults to True); use backward() to "
                         "accumulate into other leaves")
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                         "allow_unused=False.")
    roots = _as_tuple(outputs, "outputs")
    chosen = _as_tuple(inputs, "inputs")
    _check_tensors(roots, "outputs")
    if not chosen:
        raise RuntimeError("grad requires non-empty inputs.")
    _check_inputs(chosen)
    _check_roots(roots)
    gradients = _gradients(roots, grad_outputs, "grad_outputs")
    retain = create_graph if retain_graph is None else bool(retain_graph)
    results = _engine.run_backward(list(roots), gradients, retain, bool(create_graph), chosen, False)
    if materialize_grads:
        results = [zeros_like(t) if r is None else r for t, r in zip(chosen, results)]
    elif not allow_unused:
        for i, result in enumerate(results):
            if result is None:
                raise RuntimeError(_errors.unused_input(i, chosen[i]))
    return tuple(results)


def set_strict(mode: bool) -> None:
    """Refuse every second backward through a node without ``retain_graph``, saved tensors or not.

    PyTorch allows it where nothing was saved, and so does fastgrad by default; a loop that works with ``x + 2`` then
    fails once ``x * x`` is written instead. In strict mode it fails at once.

    Examples
    --------
    >>> import fastgrad as fg
    >>> x = fg.ones(1, requires_grad=True)
    >>> fg.autograd.set_strict(True)
    >>> y = x + 2
    >>> y.backward()
    >>> y.backward()
    Traceback (most recent call last):
        ...
    RuntimeError: Trying to backward through the graph a second time: ...
    >>> fg.autograd.set_strict(False)
    """
    global _strict
    _strict = bool(mode)
    _engine.set_strict_mode(_strict)


def is_strict() -> bool:
    """Whether :func:`set_strict` is on."""
    return _strict


class _VariableType(type):
    """Makes ``isinstance(t, Variable)`` true for tensors, as in PyTorch."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableType):
    """What tensors that record were called before PyTorch 0.4: ``Variable(t, requires_grad=True)``.

    Returns a Tensor that shares ``data``'s memory.

    Examples
    --------
    >>> import fastgrad as fg
    >>> x = fg.autograd.Variable(fg.ones(2), requires_grad=True)
    >>> isinstance(x, fg.Tensor), x.requires_grad
    (True, True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool = False) -> Any:
        if data is None:
            return Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile:
            raise TypeError("volatile was removed (in PyTorch 0.4 too): use `with fastgrad.no_grad():` instead.")
        result = data.detach()
        return result.requires_grad_() if requires_grad else result
