from collections.abc import Callable, Sequence
from typing import Any

from ._tensor import Tensor

def set_functions(
    add: Callable[..., Any],
    clone: Callable[..., Any],
    cast: Callable[..., Any],
    sum_to: Callable[..., Any],
    zeros: Callable[..., Any],
) -> None: ...
def set_strict_mode(enabled: bool) -> None: ...
def run_backward(
    roots: list[Tensor],
    gradients: list[Tensor],
    retain_graph: bool,
    create_graph: bool,
    inputs: Sequence[Tensor] | None,
    accumulates: bool,
) -> Any: ...  # list[Tensor | None] with inputs, else None
