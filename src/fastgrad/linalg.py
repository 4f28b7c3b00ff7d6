"""Floor 5: the namespace ``fastgrad.linalg``: linear algebra under PyTorch's names.

Every operator declared as ``linalg_<name>`` is here as ``<name>``.

Examples
--------
>>> import fastgrad as fg
>>> a = fg.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
>>> fg.linalg.det(a).backward()
>>> a.grad
tensor([[ 3., -1.],
        [-1.,  2.]])
"""
from __future__ import annotations

from typing import Any

from .ops import declarations as _declarations, functions as _operators
from .ops._matrices import LinAlgError as LinAlgError


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The diagonal of every matrix of a batch; a view."""
    return A.diagonal(offset, dim1, dim2)


matmul = _operators["matmul"]
_PREFIX = "linalg_"
_functions = {name[len(_PREFIX):]: d.function for name, d in _declarations.items() if name.startswith(_PREFIX)}
globals().update(_functions)

__all__ = sorted(["LinAlgError", "diagonal", "matmul", *_functions])
