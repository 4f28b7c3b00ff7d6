"""What the stubs call the kinds of arguments. For type checkers only: there is no such module at run time."""
from collections.abc import Sequence
from types import EllipsisType
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from ._tensor import Tensor

# Under these names where Tensor and fastgrad have others of their own.
_bool: TypeAlias = bool
_int: TypeAlias = int
_float: TypeAlias = float
_complex: TypeAlias = complex

Array: TypeAlias = npt.NDArray[Any]
Number: TypeAlias = int | float | complex | np.bool_ | np.number[Any]
Operand: TypeAlias = Tensor | Number | Array            # the second operand of arithmetic and comparisons
Dims: TypeAlias = int | Sequence[int]                   # one dimension or several
Sizes: TypeAlias = SupportsIndex | Sequence[SupportsIndex]   # *sizes: separate numbers, or one sequence
_Item: TypeAlias = SupportsIndex | slice | EllipsisType | Tensor | Array | Sequence[Any] | None
Index: TypeAlias = _Item | tuple[_Item, ...]            # what stands between brackets
