from collections.abc import Sequence
from typing import Any

from ._operator import Operator
from ._tensor import Tensor

def write_through(op: Operator, target: Tensor, values: Sequence[Any], array: Any) -> Tensor: ...
def replace_history(op: Operator, target: Tensor, values: Sequence[Any]) -> Tensor: ...
