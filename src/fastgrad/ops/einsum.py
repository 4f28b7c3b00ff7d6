"""Floor 3: einsum: an equation becomes a plan, and the plan a chain of products of two tensors.

A plan depends on the equation and the shapes only, so it is made once for them. Running it is permuting, reshaping and
`matmul`, whose derivatives it has; nothing here has a formula.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ._declare import composite, functions
from .contractions import permuted

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"     # PyTorch's order, and that of implicit outputs
Labels = tuple[Any, ...]           # one label a dimension: a letter, or a negative number for one of the ellipsis
MAX_PLANS = 512


# --- The equation ----------------------------------------------------------------------------------------------------


def labels_of(term: str, what: str) -> list[Any]:
    """A term's letters and ``...``; RuntimeError for anything else."""
    labels: list[Any] = []
    i = 0
    while i < len(term):
        if term.startswith("...", i):
            if ... in labels:
                raise RuntimeError(f"einsum(): found '.' for {what} for which an ellipsis was already found: '{term}'")
            labels.append(...)
            i += 3
            continue
        if term[i] == ".":
            raise RuntimeError(f"einsum(): found '.' for {what} that is not part of any ellipsis in '{term}'")
        if term[i] not in LETTERS:
            raise RuntimeError(f"einsum(): invalid subscript given at index {i} in '{term}', {what}: subscripts must "
                               "be in [a-zA-Z]")
        labels.append(term[i])
        i += 1
    return labels


def widen(labels: list[Any], ndim: int) -> Labels:
    """Replace ``...`` by as many labels as it stands for: -n to -1, so that they line up from the right."""
    if ... not in labels:
        return tuple(labels)
    i = labels.index(...)
    n = ndim - len(labels) + 1
    return (*labels[:i], *range(-n, 0), *labels[i + 1:])


def parse(equation: str, shapes: Sequence[tuple[int, ...]]) -> tuple[list[Labels], Labels]:
    """The labels of every operand and of the output. RuntimeError for a malformed equation."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        fewer = "more" if len(shapes) > len(terms) else "fewer"
        raise RuntimeError(f"einsum(): {fewer} operands were provided than specified in the equation: {len(shapes)} "
                           f"for '{equation}'")
    operands = []
    for i, (term, shape) in enumerate(zip(terms, shapes)):
        labels = labels_of(term, f"operand {i}")
        n = len(labels) - (... in labels)
        if n > len(shape) or (n < len(shape) and ... not in labels):
            also = "and no ellipsis was given" if ... not in labels else "although the ellipsis may be empty"
            raise RuntimeError(f"einsum(): the number of subscripts in the equation ({n}) does not match the number of "
                               f"dimensions ({len(shape)}) for operand {i} {also}")
        operands.append(widen(labels, len(shape)))
    flat = [label for labels in operands for label in labels]
    widest = -min([label for label in flat if isinstance(label, int)], default=0)
    if arrow:
        given = labels_of(right, "the output")
        output = widen(given, widest + len(given) - (... in given))
    else:
        once = sorted({label for label in flat if isinstance(label, str) and flat.count(label) == 1}, key=LETTERS.index)
        output = (*range(-widest, 0), *once)
    for label in output:
        if output.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        if label not in flat:
            raise RuntimeError(f"einsum(): output subscript {label} does not appear in the equation for any input "
                               "operand")
    return operands, output


def label_sizes(operands: Sequence[Labels], shapes: Sequence[tuple[int, ...]]) -> dict[Any, int]:
    """The size each label stands for; size 1 broadcasts."""
    sizes: dict[Any, int] = {}
    for i, (labels, shape) in enumerate(zip(operands, shapes)):
        own: dict[Any, int] = {}
        for label, n in zip(labels, shape):
            if own.setdefault(label, n) != n:
                raise RuntimeError(f"einsum(): subscript {label} is repeated for operand {i} but the sizes don't "
                                   f"match, {n} != {own[label]}")
        for label, n in own.items():
            known = sizes.setdefault(label, n)
            if known == 1:
                sizes[label] = n
            elif n not in (1, known):
                raise RuntimeError(f"einsum(): subscript {label} has size {n} for operand {i} which does not broadcast "
                                   f"with previously seen size {known}")
    return sizes


@lru_cache(MAX_PLANS)
def plan(equation: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[list[Labels], Labels, list[tuple[int, ...]]]:
    """Operand labels, output labels, and which operands are multiplied in turn (results go to the end of the list)."""
    operands, output = parse(equation, shapes)
    sizes = label_sizes(operands, shapes)
    if len(operands) < 3:
        return operands, output, [tuple(range(len(operands)))] * (len(operands) - 1)
    names = dict(zip(sizes, LETTERS))          # numpy's path knows neither our ellipsis labels nor sizes of 1
    left = ["".join(dict.fromkeys(names[label] for label in labels)) for labels in operands]
    dummies = [np.broadcast_to(np.float64(0), [sizes[label] for label in dict.fromkeys(labels)]) for labels in operands]
    subscripts = f"{','.join(left)}->{''.join(names[label] for label in output)}"
    path = np.einsum_path(subscripts, *dummies, optimize="optimal" if len(operands) <= 4 else "greedy")[0][1:]
    return operands, output, [pair for step in path for pair in pairwise(step)]


def pairwise(step: tuple[int, ...]) -> list[tuple[int, ...]]:
    """A step of a path over several operands as steps over two: later ones take the last result, at the list's end."""
    first, *rest = sorted(step, reverse=True)      # descending, so that what is taken out moves nothing still to come
    return [(position, first if i == 0 else -1) for i, position in enumerate(rest)]


# --- Running it ------------------------------------------------------------------------------------------------------


def distinct(t: Any, labels: Labels) -> tuple[Any, Labels]:
    """The diagonal over every label that a tensor has twice."""
    while len(set(labels)) < len(labels):
        label = next(k for k in labels if labels.count(k) > 1)
        i = labels.index(label)
        j = labels.index(label, i + 1)
        t = functions["diagonal"](t, 0, i, j)
        labels = (*(k for n, k in enumerate(labels) if n not in (i, j)), label)
    return t, labels


def summed(t: Any, labels: Labels, keep: set[Any]) -> tuple[Any, Labels]:
    """The sum over every label that nobody needs any more."""
    dims = tuple(i for i, label in enumerate(labels) if label not in keep)
    if not dims:
        return t, labels
    return t.sum(dims).to(t.dtype), tuple(label for label in labels if label in keep)


def without_ones(t: Any, labels: Labels, other: Any, other_labels: Labels) -> tuple[Any, Labels]:
    """Drop the dimensions of size 1 that broadcast against another size of the same label in ``other``."""
    sizes = dict(zip(other_labels, other.shape))
    dims = tuple(i for i, label in enumerate(labels) if t.shape[i] == 1 and sizes.get(label, 1) != 1)
    if not dims:
        return t, labels
    return t.squeeze(dims), tuple(label for i, label in enumerate(labels) if i not in dims)


def arranged(t: Any, labels: Labels, order: Sequence[Any]) -> Any:
    return permuted(t, [labels.index(label) for label in order])


def contract(a: Any, a_labels: Labels, b: Any, b_labels: Labels, keep: set[Any]) -> tuple[Any, Labels]:
    """The product of two tensors, summed over the labels that are not kept."""
    a, a_labels = without_ones(a, a_labels, b, b_labels)
    b, b_labels = without_ones(b, b_labels, a, a_labels)
    a, a_labels = summed(a, a_labels, keep | set(b_labels))
    b, b_labels = summed(b, b_labels, keep | set(a_labels))
    shared = [label for label in a_labels if label in b_labels]
    batch = [label for label in shared if label in keep]
    inner = [label for label in shared if label not in keep]
    rows = [label for label in a_labels if label not in shared]
    columns = [label for label in b_labels if label not in shared]
    sizes = dict(zip(b_labels, b.shape)) | dict(zip(a_labels, a.shape))
    shape = [sizes[label] for label in (*batch, *rows, *columns)]
    a = arranged(a, a_labels, batch + rows + inner)
    b = arranged(b, b_labels, batch + inner + columns)
    n_batch, n_rows, n_inner, n_columns = (
        [sizes[k] for k in batch], *(math.prod(sizes[k] for k in group) for group in (rows, inner, columns)))
    if not inner:
        a = a.reshape([*a.shape, *[1] * len(columns)]) if columns else a
        b = b.reshape([*n_batch, *[1] * len(rows), *b.shape[len(batch):]]) if rows else b
        return a * b, (*batch, *rows, *columns)
    a = shaped(a, [*n_batch, n_rows, n_inner] if rows or batch else [n_inner])
    b = shaped(b, [*n_batch, n_inner, n_columns] if columns or batch else [n_inner])
    return shaped(a @ b, shape), (*batch, *rows, *columns)


def shaped(t: Any, shape: Sequence[int]) -> Any:
    return t if list(t.shape) == list(shape) else t.reshape(tuple(shape))


def from_sublists(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """``einsum(a, [0, 1], b, [1, 2], [0, 2])`` as an equation and tensors."""

    def term(sublist: Any) -> str:
        if not isinstance(sublist, (list, tuple)):
            raise TypeError("einsum(): expected an equation first, or tensors each followed by a list of subscripts, "
                            f"got {type(sublist).__name__} as a list of subscripts")
        for k in sublist:
            if k is not ... and not 0 <= k < len(LETTERS):
                raise RuntimeError(f"einsum(): subscripts in a list must be from 0 to {len(LETTERS) - 1}, got {k}")
        return "".join("..." if k is ... else LETTERS[k] for k in sublist)

    pairs = len(operands) // 2
    equation = ",".join(term(operands[2 * i + 1]) for i in range(pairs))
    if len(operands) % 2:
        equation += "->" + term(operands[-1])
    return equation, [operands[2 * i] for i in range(pairs)]


def einsum_samples(make: Any) -> list[Any]:
    equations: list[tuple[str, list[tuple[int, ...]]]] = [
        ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]), ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]), ("i,j->ij", [(2,), (3,)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]), ("i,i->", [(3,), (3,)]),
        ("...ij,...jk->...ik", [(4, 2, 3), (3, 2)]), ("bi,bi->b", [(2, 3), (2, 3)]), ("ij,j", [(2, 3), (1,)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]), ("ijk,il,jm,kn->lmn", [(2, 3, 2), (2, 3), (3, 2), (2, 2)]),
    ]
    return [((equation, *(make(*shape) for shape in shapes)), {}) for equation, shapes in equations]


@composite("einsum(equation, *operands)", method=False, samples=einsum_samples)
def einsum(equation: Any, *operands: Any) -> Any:
    """Sums of products over labelled dimensions: ``einsum("ij,jk->ik", a, b)`` is ``a @ b``.

    Parameters
    ----------
    equation : str
        Letters for the dimensions of every operand, separated by commas, and after ``->`` those of the result.
        Without ``->`` the result has the labels that occur once, in alphabetical order. ``...`` stands for
        further dimensions, which broadcast. Lists of numbers after each operand do as well.
    *operands : Tensor
        Of one dtype, where dimensions are summed over in a product.

    Returns
    -------
    Tensor
        A view for a mere permutation.

    Notes
    -----
    Three operands and more are multiplied two at a time in the order found by ``numpy.einsum_path``.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.einsum("ij,ij->i", fg.ones(2, 3), fg.ones(2, 3))
    tensor([3., 3.])
    """
    if not isinstance(equation, str):
        equation, operands = from_sublists((equation, *operands))  # type: ignore[assignment]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    operand_labels, output, steps = plan(equation, tuple(tuple(t.shape) for t in operands))
    work = [distinct(t, labels) for t, labels in zip(operands, operand_labels)]
    for i, j in steps:
        i, j = i % len(work), j % len(work)
        (a, a_labels), (b, b_labels) = work[i], work[j]
        work = [pair for k, pair in enumerate(work) if k not in (i, j)]
        keep = set(output).union(*(labels for _, labels in work))
        work.append(contract(a, a_labels, b, b_labels, keep))
    t, labels = summed(*work[0], set(output))
    return arranged(t, labels, output)
