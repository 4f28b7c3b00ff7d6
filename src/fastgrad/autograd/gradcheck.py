"""Floor 5: checking derivatives against central differences.

Both Jacobians are compared as real matrices: a complex tensor counts as the real vector of its real and imaginary parts
in turn. A cotangent of 1 asks for the derivative of a real part, one of 1j for that of an imaginary part, and a complex
gradient holds the derivatives by both parts of its input.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._tensor import Tensor, from_ndarray
from ..creation import zeros_like
from ._backward import grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

Array = np.ndarray[Any, Any]
FAST_SEED = 20190801     # of the directions that fast_mode projects on: the same in every run


class GradcheckError(RuntimeError):
    """What :func:`gradcheck` raises when two derivatives differ."""


class Tolerances(NamedTuple):
    eps: float       # step of the central difference
    atol: float
    rtol: float
    nondet_tol: float


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of ``func`` with central differences.

    Parameters
    ----------
    func : callable
        Takes the inputs; returns a tensor or a sequence of tensors. Outputs that require no grad are left out.
    inputs : object or sequence of objects
        Arguments of ``func``. Those that require grad are checked; they should be float64 or complex128, or the
        difference quotients say little. Their memory is changed and restored.
    eps : float
        Step of the difference quotients.
    atol, rtol : float
        Tolerances: ``|analytical - numerical| <= atol + rtol * |numerical|``.
    raise_exception : bool
        Raise if the check fails, instead of returning False.
    nondet_tol : float
        How much two runs of the same backward may differ.
    check_undefined_grad : bool
        Also check that outputs may be left out of a backward, and that zero cotangents give zero gradients.
    check_grad_dtypes : bool
        Also check that every gradient has its input's dtype.
    check_batched_grad, check_batched_forward_grad, check_forward_ad : bool
        Not available in this version: must be False.
    check_backward_ad : bool
        Must be True, since it is the only check there is.
    fast_mode : bool
        Compare one random projection of each Jacobian instead of all its entries.
    masked : bool, optional
        For sparse tensors in PyTorch; must not be True.

    Returns
    -------
    bool
        Whether the check succeeded.

    Raises
    ------
    GradcheckError
        If it did not: the message shows both Jacobians and the entries in which they differ.
    ValueError
        If no input requires grad.
    NotImplementedError
        If a check is asked for that this version does not have.

    Examples
    --------
    >>> import fastgrad as fg
    >>> from fastgrad.autograd.gradcheck import gradcheck
    >>> x = fg.tensor([1.0, 2.0], dtype=fg.float64, requires_grad=True)
    >>> gradcheck(lambda x: x * x.exp(), x)
    True
    """
    _refuse(check_batched_grad=check_batched_grad, check_batched_forward_grad=check_batched_forward_grad,
            check_forward_ad=check_forward_ad, masked=bool(masked))
    if not check_backward_ad:
        raise ValueError("gradcheck: Expected at least one of check_forward_ad or check_backward_ad to be True")
    arguments = _arguments(inputs)
    tolerances = Tolerances(eps, atol, rtol, nondet_tol)
    try:
        _check(func, arguments, tolerances, fast_mode)
        if check_undefined_grad:
            _check_left_out_outputs(func, arguments)
        if check_grad_dtypes:
            _check_dtypes(func, arguments)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare the second derivatives of ``func`` with central differences of its first.

    The gradient is itself a function of the inputs and of ``grad_outputs``, and is differentiated by both.

    Parameters
    ----------
    func, inputs
        As for :func:`gradcheck`.
    grad_outputs : Tensor or sequence of Tensor, optional
        The cotangents of the outputs that require grad; random ones if not given.
    gen_non_contig_grad_outputs : bool
        Make the random cotangents non-contiguous.
    eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode
        As for :func:`gradcheck`.
    check_batched_grad, check_fwd_over_rev, masked : bool
        Not available in this version: must be False.
    check_rev_over_rev : bool
        Must be True.

    Returns
    -------
    bool
        Whether the check succeeded.

    Raises
    ------
    GradcheckError, ValueError, NotImplementedError
        As :func:`gradcheck`.

    Examples
    --------
    >>> import fastgrad as fg
    >>> from fastgrad.autograd.gradcheck import gradgradcheck
    >>> x = fg.tensor([1.0, 2.0], dtype=fg.float64, requires_grad=True)
    >>> gradgradcheck(lambda x: x * x.exp(), x)
    True
    """
    _refuse(check_batched_grad=check_batched_grad, check_fwd_over_rev=check_fwd_over_rev, masked=masked)
    if not check_rev_over_rev:
        raise ValueError("gradgradcheck: Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    arguments = _arguments(inputs)
    if grad_outputs is None:
        rng = np.random.default_rng(FAST_SEED)
        outputs = _differentiable(_call(func, arguments))
        cotangents = tuple(_random_like(t, rng, gen_non_contig_grad_outputs) for t in outputs)
    else:
        cotangents = _arguments(grad_outputs)
    n = len(arguments)

    def gradient(*args: Any) -> tuple[Tensor, ...]:
        given = args[:n]
        outputs = _differentiable(_call(func, given))
        results = grad(outputs, _checked_inputs(given), args[n:], create_graph=True, allow_unused=True)
        return tuple(g for g in results if g is not None)

    return gradcheck(
        gradient, arguments + cotangents, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        fast_mode=fast_mode,
    )


# --- Inputs and outputs ----------------------------------------------------------------------------------------------


def _refuse(**options: bool) -> None:
    for name, value in options.items():
        if value:
            raise NotImplementedError(f"gradcheck: {name}=True needs what this version does not have (forward-mode "
                                      "derivatives, vmap, sparse tensors); leave it False")


def _arguments(inputs: Any) -> tuple[Any, ...]:
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


def _call(func: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Tensor, ...]:
    result = func(*arguments)
    outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    for output in outputs:
        if not isinstance(output, Tensor):
            raise ValueError(f"gradcheck: func must return tensors, got {type(output).__name__}")
    return outputs


def _differentiable(outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple(t for t in outputs if t.requires_grad)


def _checked_inputs(arguments: Sequence[Any]) -> tuple[Tensor, ...]:
    """The inputs that require grad."""
    return tuple(t for t in arguments if isinstance(t, Tensor) and t.requires_grad)


def _validate(arguments: Sequence[Any]) -> tuple[Tensor, ...]:
    chosen = _checked_inputs(arguments)
    if not chosen:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of the them have "
                         "requires_grad=True.")
    for i, t in enumerate(arguments):
        if not isinstance(t, Tensor) or not t.requires_grad:
            continue
        if t.dtype.itemsize // (2 if t.dtype.is_complex else 1) < 8:
            warnings.warn(f"Input #{i} requires gradient and is not a double precision floating point or complex: it "
                          f"is {t.dtype}. This check will likely fail if all the inputs are not of double precision "
                          "floating point or complex.", UserWarning, stacklevel=4)
        if t.numel() and any(step == 0 and n > 1 for step, n in zip(t.stride(), t.shape)):
            raise RuntimeError(f"gradcheck: The {i}th input has a dimension with stride 0. gradcheck only supports "
                               "inputs that are non-overlapping to be able to compute the numerical gradients "
                               "correctly. You should call .contiguous on the input before passing it to gradcheck.")
    return chosen


def _random_like(t: Tensor, rng: np.random.Generator, non_contiguous: bool) -> Tensor:
    shape = (*t.shape, 2) if non_contiguous else tuple(t.shape)
    values: Array = rng.standard_normal(shape)
    if t.dtype.is_complex:
        values = values + 1j * rng.standard_normal(shape)
    values = np.asarray(values).astype(t.dtype.numpy)
    return from_ndarray(values[..., 0] if non_contiguous else values, requires_grad=True)


def _as_reals(values: Array) -> Array:
    """The elements in C order as one real vector, complex ones as two numbers."""
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _gradient_values(gradient: Tensor | None, t: Tensor) -> Array:
    return np.zeros(t.shape, t.dtype.numpy) if gradient is None else gradient.detach().numpy()


def _cotangent(t: Tensor, reals: Array) -> Tensor:
    """A cotangent for t from its real vector."""
    kind = t.dtype.to_real().numpy if t.dtype.is_complex else t.dtype.numpy
    values = np.ascontiguousarray(reals, dtype=kind)
    return from_ndarray((values.view(t.dtype.numpy) if t.dtype.is_complex else values).reshape(t.shape))


# --- The two Jacobians -----------------------------------------------------------------------------------------------


def _values(func: Callable[..., Any], arguments: Sequence[Any]) -> list[Array]:
    """What func returns, as real vectors of their own memory. Recording stays on: func may differentiate, too."""
    return [_as_reals(t.detach().numpy()).copy() for t in _call(func, arguments)]


def _numerical(func: Callable[..., Any], arguments: Sequence[Any], t: Tensor, eps: float) -> list[Array]:
    """For each output the Jacobian by t, one row for each real number of t: (f(t + eps) - f(t - eps)) / 2 eps."""
    array = t.detach().numpy()          # shares t's memory: what is written here is what func sees
    if not array.flags.writeable:
        raise RuntimeError("gradcheck: an input's memory is read-only, so it cannot be varied; clone() it")
    units = (1.0, 1j) if t.dtype.is_complex else (1.0,)
    columns: list[list[Array]] = []
    for index in np.ndindex(*t.shape):
        kept = array[index]
        for unit in units:
            try:
                array[index] = kept + eps * unit
                above = _values(func, arguments)
                array[index] = kept - eps * unit
                below = _values(func, arguments)
            finally:
                array[index] = kept
            columns.append([(a.astype(np.float64) - b) / (2 * eps) for a, b in zip(above, below)])
    return [np.array(rows) for rows in zip(*columns)]


def _analytical(output: Tensor, chosen: tuple[Tensor, ...]) -> list[Array]:
    """The Jacobian of one output by each input, by one backward for each real number of the output."""
    size = output.numel() * (2 if output.dtype.is_complex else 1)
    rows: list[list[Array]] = []
    for k in range(size):
        basis = np.zeros(size)
        basis[k] = 1.0
        found = grad(output, chosen, _cotangent(output, basis), retain_graph=True, allow_unused=True)
        rows.append([_as_reals(_gradient_values(g, t)).astype(np.float64) for g, t in zip(found, chosen)])
    return [np.array(columns).T for columns in zip(*rows)]


# --- Comparing -------------------------------------------------------------------------------------------------------


def _check(func: Callable[..., Any], arguments: tuple[Any, ...], tolerances: Tolerances, fast: bool) -> None:
    chosen = _validate(arguments)
    outputs = _call(func, arguments)
    positions = [i for i, t in enumerate(outputs) if t.requires_grad]
    if not positions:
        _check_constant(func, arguments, chosen, tolerances)
        return
    for i in positions:
        _check_reentrant(outputs[i], chosen, tolerances.nondet_tol)
        if fast and _projections_agree(func, arguments, outputs[i], i, chosen, tolerances):
            continue
        analytical = _analytical(outputs[i], chosen)
        for j, t in enumerate(chosen):
            if t.numel() and outputs[i].numel():
                numerical = _numerical(func, arguments, t, tolerances.eps)[i]
                _compare(numerical, analytical[j], i, j, outputs[i], t, tolerances)


def _compare(numerical: Array, analytical: Array, i: int, j: int, output: Tensor, t: Tensor, tol: Tolerances) -> None:
    close = np.isclose(analytical, numerical, rtol=tol.rtol, atol=tol.atol, equal_nan=True)
    if close.all():
        return
    with np.errstate(invalid="ignore"):
        difference = np.where(close, 0.0, np.abs(analytical - numerical))
    worst = np.unravel_index(np.argmax(np.where(np.isnan(difference), np.inf, difference)), close.shape)
    raise GradcheckError(
        f"Jacobian mismatch for output {i} with respect to input {j},\nnumerical:{numerical}\nanalytical:{analytical}\n"
        f"They differ in {np.count_nonzero(~close)} of {close.size} entries, most for the derivative of output {i}"
        f"[{_place(output, worst[1])}] by input {j}[{_place(t, worst[0])}]: numerical {numerical[worst]:.9g}, "
        f"analytical {analytical[worst]:.9g} (atol={tol.atol}, rtol={tol.rtol})"
    )


def _place(t: Tensor, k: Any) -> str:
    """Which element entry k of t's real vector is: '1, 2', or '1, 2 (imaginary part)'."""
    element, part = divmod(int(k), 2) if t.dtype.is_complex else (int(k), 0)
    index = ", ".join(str(int(n)) for n in np.unravel_index(element, tuple(t.shape))) if t.ndim else ""
    return f"{index} ({('real', 'imaginary')[part]} part)" if t.dtype.is_complex else index


def _check_constant(
    func: Callable[..., Any], arguments: tuple[Any, ...], chosen: tuple[Tensor, ...], tol: Tolerances
) -> None:
    """No output requires grad: then none may depend on the inputs, as far as differences show."""
    for j, t in enumerate(chosen):
        for i, numerical in enumerate(_numerical(func, arguments, t, tol.eps)):
            if np.abs(numerical).max(initial=0.0) > tol.atol:
                raise GradcheckError(f"Numerical gradient for function expected to be zero: output {i} does not "
                                     f"require grad, and yet depends on input {j}:\n{numerical}")


def _random_cotangent(output: Tensor) -> Array:
    size = output.numel() * (2 if output.dtype.is_complex else 1)
    direction = np.random.default_rng(FAST_SEED).standard_normal(size)
    return direction / (np.linalg.norm(direction) or 1.0)


def _check_reentrant(output: Tensor, chosen: tuple[Tensor, ...], nondet_tol: float) -> None:
    cotangent = _cotangent(output, _random_cotangent(output))
    runs = [grad(output, chosen, cotangent, retain_graph=True, allow_unused=True) for _ in range(2)]
    for j, t in enumerate(chosen):
        first, second = (_as_reals(_gradient_values(run[j], t)) for run in runs)
        with np.errstate(invalid="ignore"):
            difference = np.abs(first - second).max(initial=0.0)
        if difference > nondet_tol:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                f"gives different values: the gradients of input {j} differ by {difference:.9g}, and nondet_tol is "
                f"{nondet_tol}"
            )


def _projections_agree(
    func: Callable[..., Any], arguments: tuple[Any, ...], output: Tensor, i: int, chosen: tuple[Tensor, ...],
    tol: Tolerances,
) -> bool:
    """Whether v.T @ J @ u by backward and by differences agree, for random v and u."""
    v = _random_cotangent(output)
    found = grad(output, chosen, _cotangent(output, v), retain_graph=True, allow_unused=True)
    rng = np.random.default_rng(FAST_SEED + 1)
    for g, t in zip(found, chosen):
        u = rng.standard_normal(t.numel() * (2 if t.dtype.is_complex else 1))
        u /= np.linalg.norm(u) or 1.0
        analytical = float(_as_reals(_gradient_values(g, t)).astype(np.float64) @ u)
        numerical = float(_difference_along(func, arguments, t, u, tol.eps)[i] @ v)
        # Each entry of J may be off by atol, and |v.T @ E @ u| <= atol * |v|_1 * |u|_1.
        allowed = tol.atol * float(np.abs(u).sum() * np.abs(v).sum()) + tol.rtol * abs(numerical)
        if not abs(analytical - numerical) <= allowed:
            return False
    return True


def _difference_along(
    func: Callable[..., Any], arguments: tuple[Any, ...], t: Tensor, direction: Array, eps: float
) -> list[Array]:
    array = t.detach().numpy()
    kept = array.copy()
    step = _cotangent(t, direction).numpy() * eps
    try:
        array[...] = kept + step
        above = _values(func, arguments)
        array[...] = kept - step
        below = _values(func, arguments)
    finally:
        array[...] = kept
    return [(a.astype(np.float64) - b) / (2 * eps) for a, b in zip(above, below)]


def _check_left_out_outputs(func: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Outputs that a backward leaves out count as zeros, and zeros give zeros."""
    chosen = _checked_inputs(arguments)
    outputs = _differentiable(_call(func, arguments))
    if not outputs:
        return
    zeros = [zeros_like(t) for t in outputs]
    for j, g in enumerate(grad(outputs, chosen, zeros, retain_graph=True, allow_unused=True)):
        if g is not None and np.any(g.detach().numpy()):
            raise GradcheckError(f"backward not multiplied by grad_output: zero cotangents give input {j} a gradient "
                                 f"that is not zero:\n{g.detach().numpy()}")
    if len(outputs) == 1:
        return
    for i, output in enumerate(outputs):
        some = _cotangent(output, _random_cotangent(output))
        alone = grad(output, chosen, some, retain_graph=True, allow_unused=True)
        with_zeros = grad(outputs, chosen, [*zeros[:i], some, *zeros[i + 1:]], retain_graph=True, allow_unused=True)
        for j, t in enumerate(chosen):
            a, b = _gradient_values(alone[j], t), _gradient_values(with_zeros[j], t)
            if not np.allclose(a, b, equal_nan=True):
                raise GradcheckError(f"Expected backward function to handle undefined output grads: input {j} gets "
                                     f"\n{a}\nfrom output {i} alone, but\n{b}\nwith zeros for the others")


def _check_dtypes(func: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    chosen = _checked_inputs(arguments)
    for output in _differentiable(_call(func, arguments)):
        cotangent = _cotangent(output, _random_cotangent(output))
        for j, g in enumerate(grad(output, chosen, cotangent, retain_graph=True, allow_unused=True)):
            if g is not None and g.dtype != chosen[j].dtype:
                raise GradcheckError(f"gradient of input {j} has dtype {g.dtype}, the input {chosen[j].dtype}")
