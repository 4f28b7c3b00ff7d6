"""Every message that states more than one fact, one function each.

Each returns the text (the caller raises, so that the exception's type stands where it is raised). Texts that PyTorch
also has contain PyTorch's key phrase, because people search for it.
"""
from __future__ import annotations

import warnings
from typing import Any

_ORIGINS = {
    0: "it was made from data with requires_grad=False",
    1: "it was computed from tensors none of which requires grad",
    2: "it was computed under no_grad() or inference_mode(), where nothing is recorded",
    3: "it was made by detach(), which cuts the history",
    4: "its dtype cannot carry a gradient (only floating point and complex dtypes can)",
}


def describe(t: Any) -> str:
    """Dtype and shape of a tensor in a few words."""
    return f"{t.dtype} tensor of shape {tuple(t.shape)}"


def why_no_grad(t: Any) -> str:
    """Why a tensor that does not require grad does not."""
    if not (t.dtype.is_floating_point or t.dtype.is_complex):
        return _ORIGINS[4]
    return _ORIGINS[t._origin]


def unsupported_dtype(descr: Any) -> str:
    return (
        f"can't convert an array of dtype {descr} to a tensor. The only supported types are: bool, the integers of 8 "
        "to 64 bits, float16, float32, float64, complex64 and complex128"
    )


def not_one_element(t: Any, what: str) -> str:
    return f"{what}: a Tensor with {t.numel()} elements cannot be converted to Scalar; its shape is {tuple(t.shape)}"


def ambiguous_bool(t: Any) -> str:
    if t.numel() == 0:
        return "Boolean value of Tensor with no values is ambiguous"
    return (
        f"Boolean value of Tensor with more than one value is ambiguous (its shape is {tuple(t.shape)}); "
        "use .any() or .all()"
    )


def not_a_leaf_flag(t: Any) -> str:
    return (
        "you can only change requires_grad flags of leaf variables: this tensor was made by "
        f"{t.grad_fn.name()}. If you want to use a computed tensor in a subgraph that doesn't require differentiation "
        "use var_no_grad = var.detach()."
    )


def cannot_require_grad(t: Any) -> str:
    return (
        "Only Tensors of floating point and complex dtype can require gradients: this one is a "
        f"{describe(t)}; convert it first, e.g. with .float() or .double()"
    )


def inference_requires_grad(t: Any) -> str:
    return (
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed: make a copy with clone() "
        f"outside inference_mode() ({describe(t)})"
    )


def inference_saved(name: str) -> str:
    return (
        f"{name}: Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal "
        "tensor and use it in autograd."
    )


def grad_assignment(t: Any, value: Any) -> str:
    if t.dtype != value.dtype:
        return (
            f"assigned grad has data of a different type: the tensor is {t.dtype}, the grad {value.dtype}; "
            "convert the grad with .to(dtype)"
        )
    return (
        f"assigned grad has data of a different size: the tensor has shape {tuple(t.shape)}, the grad "
        f"{tuple(value.shape)}"
    )


def warn_grad_of_non_leaf(t: Any) -> None:
    warnings.warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
        f"populated during autograd.backward(): it was made by {type(t.grad_fn).__name__}. If you indeed want the "
        ".grad field to be populated for a non-leaf Tensor, use .retain_grad() on it before backward(); if you meant a "
        "leaf, make sure you access the leaf Tensor instead.",
        UserWarning,
        stacklevel=2,      # the getter is compiled and has no frame of its own
    )


def numpy_requires_grad() -> str:
    return "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."


def dim_out_of_range(dim: int, ndim: int) -> str:
    ndim = max(ndim, 1)
    return f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})"


def freed(op: str, what: str, dtype: Any, shape: tuple[int, ...], where: str) -> str:
    return (
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        f"been freed): {op} saved {what}, a {dtype} tensor of shape {shape}, and an earlier backward() or "
        "autograd.grad() without retain_graph freed it. Specify retain_graph=True in the first backward if you need to "
        f"backward through the graph a second time, or compute the forward again.{where}"
    )


def accessed_freed(op: str, what: str) -> str:
    return (
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        f"been freed): {op} no longer has {what}. Specify retain_graph=True if you need it after a backward."
    )


def strict_second_backward(op: str) -> str:
    return (
        f"Trying to backward through the graph a second time: a backward without retain_graph=True has already gone "
        f"through {op}, and autograd.set_strict(True) refuses a second one even where nothing was saved. Specify "
        "retain_graph=True in the first backward, or set_strict(False)."
    )


def modified(op: str, what: str, dtype: Any, shape: tuple[int, ...], producer: str, found: int, expected: int) -> str:
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{dtype} {shape}]{producer}, which {op} saved as {what}, is at version {found}; expected version {expected} "
        f"instead. Hint: clone() the tensor before writing to it, or replace the in-place operation by one that makes "
        "a new tensor."
    )


def inplace_leaf(op: str, t: Any) -> str:
    return (
        f"{op}_: a leaf Variable that requires grad is being used in an in-place operation ({describe(t)}): its old "
        "value would be lost to the graph. Write under no_grad() (an optimizer's step), or work on x.clone()."
    )


def inplace_view_of_leaf(op: str, t: Any) -> str:
    return (
        f"{op}_: a view of a leaf Variable that requires grad is being used in an in-place operation ({describe(t)}). "
        "Write under no_grad(), or take the view of x.clone()."
    )


def inplace_multi_view(op: str, t: Any) -> str:
    return (
        f"{op}_: Output {t.output_nr} of {type(t.grad_fn).__name__} is a view and is being modified inplace. This view "
        "is the output of a function that returns multiple views. Such functions do not allow the output views to be "
        "modified inplace. You should replace the inplace operation by an out-of-place one."
    )


def inplace_no_grad_view(op: str, t: Any) -> str:
    return (
        f"{op}_: A view was created in no_grad mode and is being modified inplace with grad mode enabled "
        f"({describe(t)}). Make the view with grad mode enabled, or write under no_grad() too."
    )


def inplace_inference(op: str, t: Any) -> str:
    return (
        f"{op}_: Inplace update to inference tensor outside InferenceMode is not allowed ({describe(t)}). "
        "You can make a clone to get a normal tensor before doing inplace update."
    )


def inplace_overlap(op: str, t: Any) -> str:
    return (
        f"{op}_: unsupported operation: more than one element of the written-to tensor refers to a single memory "
        f"location (shape {tuple(t.shape)}, strides {t.stride()}). Please clone() the tensor before performing the "
        "operation."
    )


def inplace_dtype(op: str, result: Any, own: Any) -> str:
    return f"{op}_: result type {result} can't be cast to the desired output type {own}"


def inplace_shape(op: str, own: tuple[int, ...], broadcast: tuple[int, ...]) -> str:
    return f"{op}_: output with shape {list(own)} doesn't match the broadcast shape {list(broadcast)}"


def inplace_readonly(op: str, t: Any) -> str:
    return (
        f"{op}_: the memory of this {describe(t)} belongs to a read-only NumPy array; clone() the tensor, or make the "
        "array writeable"
    )


def cannot_broadcast(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> str:
    for i in range(1, min(len(a), len(b)) + 1):
        if a[-i] != b[-i] and a[-i] != 1 and b[-i] != 1:
            return (
                f"{op}: The size of tensor a ({a[-i]}) must match the size of tensor b ({b[-i]}) at non-singleton "
                f"dimension {max(len(a), len(b)) - i}; the shapes are {a} and {b}"
            )
    return f"{op}: shapes {a} and {b} cannot be broadcast together"


def no_grad_root(index: int, t: Any) -> str:
    return (
        f"element {index} of tensors does not require grad and does not have a grad_fn: {why_no_grad(t)} "
        f"({describe(t)})"
    )


def input_without_grad(index: int, t: Any) -> str:
    return (
        f"One of the differentiated Tensors does not require grad: inputs[{index}], a {describe(t)}; {why_no_grad(t)}"
    )


def unused_input(index: int, t: Any) -> str:
    return (
        "One of the differentiated Tensors appears to not have been used in the graph: "
        f"inputs[{index}], a {describe(t)}. Set allow_unused=True if this is the desired behavior (its gradient is "
        "then None), or materialize_grads=True for zeros."
    )


def scalar_root(t: Any) -> str:
    if t.numel() == 1:
        return (
            f"grad can be implicitly created only for real scalar outputs but got {t.dtype}; pass gradient="
        )
    return (
        f"grad can be implicitly created only for scalar outputs: this root has shape {tuple(t.shape)}; pass a "
        "gradient of the same shape, or reduce it first, e.g. with .sum()"
    )


def gradient_shape(index: int, root: Any, gradient: Any) -> str:
    return (
        f"Mismatch in shape: grad_output[{index}] has a shape of {tuple(gradient.shape)} and output[{index}] has a "
        f"shape of {tuple(root.shape)}."
    )


def gradient_dtype(index: int, root: Any, gradient: Any) -> str:
    return (
        f"For complex Tensors, both grad_output and output are required to have the same kind of dtype: "
        f"grad_output[{index}] is {gradient.dtype} and output[{index}] is {root.dtype}"
    )


def formula_shape(node: str, argument: int, got: tuple[int, ...], expected: tuple[int, ...]) -> str:
    return (
        f"Function {node} returned an invalid gradient at index {argument} - got {list(got)} but expected shape "
        f"compatible with {list(expected)}"
    )


def hook_dtype(hook: Any, got: Any, expected: Any) -> str:
    return (
        f"hook '{getattr(hook, '__name__', hook)}' has changed the type of value "
        f"(was {expected.dtype} got {got.dtype}): return a gradient of the same dtype"
    )


def leaf_moved(t: Any) -> str:
    return (
        "leaf variable has been moved into the graph interior: after the forward, an in-place operation made this "
        f"{describe(t)} an output of {type(t.grad_fn).__name__}"
    )


def hook_shape(got: Any, expected: Any) -> str:
    return (
        f"a hook has changed the size of the value: it was given a {describe(expected)} and returned a "
        f"{describe(got)}"
    )
