from collections.abc import Callable
from typing import Any

def set_functions(
    add: Callable[..., Any],
    clone: Callable[..., Any],
    cast: Callable[..., Any],
    sum_to: Callable[..., Any],
    zeros: Callable[..., Any],
) -> None: ...
