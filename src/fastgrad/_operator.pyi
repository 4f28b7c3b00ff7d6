from collections.abc import Callable, Iterable
from inspect import Signature
from typing import Any

import numpy as np

from ._tensor import Tensor

class Operator:
    name: str
    parameters: tuple[str, ...]
    tensor_names: tuple[str, ...]
    spec: Any
    __name__: str
    __qualname__: str
    __signature__: Signature
    def __init__(
        self,
        name: str,
        parameters: tuple[str, ...],
        defaults: tuple[Any, ...],
        n_positional: int,
        varargs: int,
        tensor_positions: tuple[int, ...],
        is_sequence: bool,
        forward: Callable[..., Any],
        vjp: dict[str, Callable[..., Any]],
        node_name: str,
        dtype_rule: int,
        is_view: bool,
        outputs: tuple[str, ...] | None,
        differentiable: tuple[int, ...] | None,
    ) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def inplace(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def limit_loops(self, codes: Iterable[int]) -> None: ...
    def set_reduction(self, ufunc: np.ufunc, mean: bool) -> None: ...
    def set_outputs(self, result_class: Callable[..., Any] | None, multi_view: bool) -> None: ...
    def saves(self, *names: str) -> tuple[str, ...]: ...
    @property
    def differentiable_arguments(self) -> tuple[str, ...]: ...

def find_operator(name: str) -> Operator: ...
def operators() -> tuple[Operator, ...]: ...
def required() -> Any: ...
