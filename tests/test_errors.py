"""One case per message of `_errors.py`: the type, PyTorch's phrase, and the facts.

`CASES` is keyed by the function's name; a message without a case fails `test_every_message_has_a_case`.
"""
import copy
import inspect
import re

import numpy as np
import pytest

import fastgrad as fg
from fastgrad import _errors


def leaf(*shape, dtype=fg.float64):
    return fg.ones(*shape, dtype=dtype, requires_grad=True)


def second_backward():
    y = (leaf(2) * leaf(2)).sum()
    y.backward()
    y.backward()


def read_freed():
    y = leaf(2) * leaf(2)
    y.sum().backward()
    y.grad_fn._saved_self  # noqa: B018


def strict_second_backward():
    fg.autograd.set_strict(True)
    try:
        y = leaf(1) + 2
        y.backward()
        y.backward()
    finally:
        fg.autograd.set_strict(False)


def written_after_saving():
    y = leaf(2, 3) * 1.0
    z = y * y
    with fg.no_grad():
        y.add_(1.0)
    z.sum().backward()


def inference_tensor():
    with fg.inference_mode():
        return fg.ones(2, dtype=fg.float64) * 2.0


def view_made_under_no_grad():
    y = leaf(2) * 1.0
    with fg.no_grad():
        return y.reshape(2, 1)


def read_only():
    array = np.ones(2)
    array.flags.writeable = False
    return fg.from_numpy(array)


def assigned_grad(value):
    leaf(2).grad = value


def hooked(result):
    y = leaf(2) * 1.0
    y.register_hook(lambda g: result)
    y.sum().backward()


def grad_of_unused():
    return fg.autograd.grad(leaf(2).sum(), [leaf(3)])


R, T = RuntimeError, TypeError

# message -> (call, type, phrases and facts that the text contains)
CASES = {
    "unsupported_dtype": (lambda: fg.from_numpy(np.array(["a"])), T, ["The only supported types are", "bool"]),
    "not_one_element": (lambda: fg.ones(3).item(), R,
                        ["a Tensor with 3 elements cannot be converted to Scalar", "(3,)"]),
    "ambiguous_bool": (lambda: bool(fg.ones(2)), R,
                       ["Boolean value of Tensor with more than one value is ambiguous", "(2,)"]),
    "not_a_leaf_flag": (lambda: (leaf(1) * 2.0).requires_grad_(False), R,
                        ["you can only change requires_grad flags of leaf variables", "MulBackward0", "detach()"]),
    "cannot_require_grad": (lambda: fg.ones(2, dtype=fg.int64).requires_grad_(), R,
                            ["Only Tensors of floating point and complex dtype can require gradients", "int64",
                             "(2,)"]),
    "inference_requires_grad": (lambda: inference_tensor().requires_grad_(), R,
                                ["Setting requires_grad=True on inference tensor outside InferenceMode", "clone()"]),
    "inference_saved": (lambda: leaf(2) * inference_tensor(), R,
                        ["Inference tensors cannot be saved for backward", "mul"]),
    "grad_assignment": (lambda: assigned_grad(fg.ones(3, dtype=fg.float64)), R,
                        ["assigned grad has data of a different size", "(2,)", "(3,)"]),
    "numpy_requires_grad": (lambda: leaf(2).numpy(), R,
                            ["Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."]),
    "dim_out_of_range": (lambda: fg.ones(2, 3).sum(dim=2), IndexError,
                         ["Dimension out of range (expected to be in range of [-2, 1], but got 2)"]),
    "freed": (second_backward, R, ["Trying to backward through the graph a second time", "retain_graph=True",
                                   "MulBackward0", "argument 'other'|argument 'input'", "float64", "(2,)"]),
    "accessed_freed": (read_freed, R, ["after they have already been freed", "MulBackward0", "_saved_"]),
    "strict_second_backward": (strict_second_backward, R,
                               ["Trying to backward through the graph a second time", "AddBackward0", "set_strict"]),
    "modified": (written_after_saving, R, ["modified by an inplace operation", "float64", "(2, 3)", "MulBackward0",
                                           "is at version 1; expected version 0 instead"]),
    "inplace_leaf": (lambda: leaf(2).add_(1.0), R,
                     ["add_", "a leaf Variable that requires grad is being used in an in-place operation", "(2,)",
                      "no_grad()"]),
    "inplace_view_of_leaf": (lambda: leaf(2).reshape(2, 1).add_(1.0), R,
                             ["add_",
                              "a view of a leaf Variable that requires grad is being used in an in-place operation"]),
    "inplace_multi_view": (lambda: (leaf(2) * 1.0).unbind(0)[1].add_(1.0), R,
                           ["Output 1 of UnbindBackward0 is a view and is being modified inplace",
                            "function that returns multiple views"]),
    "inplace_no_grad_view": (lambda: view_made_under_no_grad().mul_(leaf(2, 1)), R,
                             ["A view was created in no_grad mode and is being modified inplace with grad mode "
                              "enabled"]),
    "inplace_inference": (lambda: inference_tensor().add_(1.0), R,
                          ["Inplace update to inference tensor outside InferenceMode is not allowed", "add_"]),
    "inplace_overlap": (lambda: fg.ones(3).expand(2, 3).add_(1.0), R,
                        ["more than one element of the written-to tensor refers to a single memory location", "(2, 3)",
                         "(0, 1)"]),
    "inplace_dtype": (lambda: fg.ones(2, dtype=fg.int64).add_(1.5), R,
                      ["result type", "float32", "can't be cast to the desired output type", "int64"]),
    "inplace_shape": (lambda: fg.ones(3).add_(fg.ones(2, 3)), R,
                      ["output with shape [3] doesn't match the broadcast shape [2, 3]"]),
    "inplace_readonly": (lambda: read_only().add_(1.0), R, ["read-only NumPy array", "add_", "(2,)"]),
    "cannot_broadcast": (lambda: fg.ones(2, 3) + fg.ones(4), R,
                         ["The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
                          "add", "(2, 3)", "(4,)"]),
    "no_grad_root": (lambda: fg.ones(()).backward(), R,
                     ["element 0 of tensors does not require grad and does not have a grad_fn",
                                                        "made from data", "float32"]),
    "why_no_grad": (lambda: (leaf(1) * 2.0).detach().backward(), R, ["made by detach()"]),
    "input_without_grad": (lambda: fg.autograd.grad(leaf(1) * 2.0, fg.ones(1)), R,
                           ["One of the differentiated Tensors does not require grad", "inputs[0]", "(1,)"]),
    "unused_input": (grad_of_unused, R, ["One of the differentiated Tensors appears to not have been used in the graph",
                                         "inputs[0]", "allow_unused=True", "(3,)"]),
    "scalar_root": (lambda: (leaf(2) * 2.0).backward(), R,
                    ["grad can be implicitly created only for scalar outputs", "(2,)", ".sum()"]),
    "gradient_shape": (lambda: (leaf(2) * 2.0).backward(fg.ones(3)), R,
                       ["Mismatch in shape: grad_output[0] has a shape of (3,) and output[0] has a shape of (2,)."]),
    "gradient_dtype": (lambda: (leaf(2) * 2.0).backward(fg.ones(2, dtype=fg.complex128)), R,
                       ["For complex Tensors, both grad_output and output are required to have the same", "complex128",
                        "float64"]),
    "hook_dtype": (lambda: hooked_by(lambda g: g.long()), R, ["has changed the type of value", "float32", "int64"]),
    "leaf_moved": (lambda: moved_leaf(), R, ["moved into the graph interior", "MulBackward0"]),
    "hook_shape": (lambda: hooked(fg.ones(3, dtype=fg.float64)), R,
                   ["a hook has changed the size of the value", "(3,)", "(2,)"]),
    "describe": (lambda: leaf(2, 3).add_(1.0), R, ["float64 tensor of shape (2, 3)"]),
}
# Messages that nothing in the public interface can bring about: a wrong declaration does, or the test is elsewhere.
ELSEWHERE = {
    "formula_shape": "test_formula_of_a_wrong_shape",
    "warn_grad_of_non_leaf": "test_grad_of_an_intermediate_warns",
}


@pytest.mark.parametrize("name", CASES)
def test_message(name):
    call, kind, facts = CASES[name]
    with pytest.raises(kind) as error:
        call()
    assert error.type is kind or issubclass(error.type, kind)
    for fact in facts:
        alternatives = fact.split("|")
        assert any(a in str(error.value) for a in alternatives), f"{fact!r} is not in: {error.value}"


def hooked_by(hook):
    y = fg.ones(3, requires_grad=True) * 2
    y.register_hook(hook)
    y.sum().backward()


def moved_leaf():
    x, w = fg.ones(3, requires_grad=True), fg.ones(3, requires_grad=True)
    y = x * 2
    x.requires_grad_(False)
    x.mul_(w)
    y.sum().backward()


def test_every_message_has_a_case():
    messages = {n for n, f in vars(_errors).items() if inspect.isfunction(f) and not n.startswith("_")}
    assert messages - set(CASES) - set(ELSEWHERE) == set()
    assert set(ELSEWHERE.values()) <= set(globals())


def test_formula_of_a_wrong_shape():
    text = _errors.formula_shape("MulBackward0", 1, (3,), (2,))
    phrase = "Function MulBackward0 returned an invalid gradient at index 1 - got [3] but expected shape compatible"
    assert f"{phrase} with [2]" in text


def test_grad_of_an_intermediate_warns():
    y = leaf(2) * 2.0
    with pytest.warns(UserWarning,
                      match=r"The \.grad attribute of a Tensor that is not a leaf Tensor is being accessed") as seen:
        assert y.grad is None
    assert "MulBackward0" in str(seen[0].message) and seen[0].filename == __file__


@pytest.mark.parametrize(("call", "kind", "facts"), [
    (lambda: bool(fg.ones(0)), R, ["Boolean value of Tensor with no values is ambiguous"]),
    (lambda: assigned_grad(fg.ones(2)), R, ["assigned grad has data of a different type", "float64", "float32"]),
    (lambda: assigned_grad([1.0, 2.0]), T, ["assigned grad must be a Tensor", "list"]),
    (lambda: fg.tensor([1j]).requires_grad_().sum().backward(), R, ["only for real scalar outputs", "complex64"]),
    (lambda: len(fg.ones(())), T, ["0-d tensor"]),
    (lambda: iter(fg.ones(())), T, ["iteration over a 0-d tensor"]),
    (lambda: fg.ones(1.5), T, []),
    (lambda: fg.tensor([[1.0], [2.0, 3.0]]), ValueError, []),
    (lambda: fg.tensor(object()), (T, R), []),
    (lambda: fg.tensor("a"), T, []),
    (lambda: fg.tensor(np.array([object()])), T, ["object"]),
    (lambda: fg.ones(2) + None, T, ["unsupported operand"]),
    (lambda: fg.ones(2) + "a", T, ["unsupported operand"]),
    (lambda: fg.add(1, 2), T, ["add", "must be Tensor, not int"]),
    (lambda: fg.ones(2).add(), T, ["missing", "other"]),
    (lambda: fg.ones(2).add(1, 2, 3), T, ["positional argument"]),
    (lambda: fg.ones(2).add(1, wrong=2), T, ["unexpected keyword argument 'wrong'"]),
    (lambda: fg.ones(2).add(1, other=2), T, ["multiple values for argument 'other'"]),
    (lambda: fg.ones(2).no_such_method, AttributeError, ["no_such_method"]),
    (lambda: pow(fg.ones(2), 2, 3), T, ["modulus"]),
    (lambda: fg.ones(2).__delitem__(0), T, ["cannot be deleted"]),
    (lambda: fg.ones(2)[2], IndexError, []),
    (lambda: fg.ones(2)["a"], (IndexError, T), []),
    (lambda: fg.ones(2)[0, 0], IndexError, []),
    (lambda: fg.ones(2).reshape(3), R, ["shape '[3]' is invalid for input of size 2"]),
    (lambda: copy.deepcopy(leaf(1) * 2.0), R, ["deepcopy"]),
    (lambda: fg.autograd.backward("text"), T, []),
    (lambda: fg.autograd.backward([1.0]), T, ["tensors[0]", "float"]),
    (lambda: fg.autograd.grad(leaf(1), []), RuntimeError, ["non-empty inputs"]),
    (lambda: fg.autograd.graph.Node(), T, ["Node"]),
], ids=lambda v: None)
def test_other_precise_errors(call, kind, facts):
    with pytest.raises(kind) as error:
        call()
    for fact in facts:
        assert re.search(re.escape(fact), str(error.value)), f"{fact!r} is not in: {error.value}"
