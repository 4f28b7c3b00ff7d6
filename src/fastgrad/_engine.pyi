from collections.abc import Sequence
from typing import Any

from ._tensor import Tensor

def set_strict_mode(enabled: bool) -> None: ...
def run_backward(
    roots: list[Tensor],
    gradients: list[Tensor],
    retain_graph: bool,
    create_graph: bool,
    inputs: Sequence[Tensor] | None,
    accumulates: bool,
) -> Any: ...  # list[Tensor | None] with inputs, else None
