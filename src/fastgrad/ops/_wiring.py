"""Floor 3: hand the engine the operators that it composes with."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import _pass
from .._operator import find_operator
from .._tensor import Tensor, from_ndarray


def zeros(shape: tuple[int, ...], dtype: Any) -> Tensor:
    """The cotangent of an output that nothing came back for."""
    return from_ndarray(np.zeros(shape, dtype.numpy))


def wire() -> None:
    """Called once, when every operator has been declared."""
    _pass.set_functions(
        add=find_operator("add"), clone=find_operator("clone"), cast=find_operator("_to_copy"),
        sum_to=find_operator("sum_to_size"), zeros=zeros,
    )
