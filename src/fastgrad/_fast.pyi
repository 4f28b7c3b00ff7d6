from collections.abc import Callable
from typing import Any

from ._operator import Operator

def register(op: Operator, method_type: type) -> None: ...
def set_index_functions(getitem: Callable[..., Any], setitem: Callable[..., Any]) -> None: ...
