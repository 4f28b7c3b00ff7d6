"""fastgrad: PyTorch's autograd over NumPy arrays, with a compiled engine.

Examples
--------
>>> import fastgrad as fg
>>> x = fg.tensor([1.0, 2.0], requires_grad=True)
>>> y = (x * x).sum()
>>> y.backward()
>>> x.grad
tensor([2., 4.])
"""
from . import _gc, _methods, autograd, linalg, memory, numpy_interop, random
from ._device import *  # noqa: F403
from ._dtypes import *  # noqa: F403
from ._dtypes import bool_ as bool, float_ as float, int_ as int
from ._printing import *  # noqa: F403
from ._size import Size
from ._tensor import Tensor
from .autograd import (
    Variable,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .creation import *  # noqa: F403
from .ops import functions as _functions
from .random import *  # noqa: F403

__version__ = "0.1.0"

globals().update({name: function for name, function in _functions.items() if not name.startswith("_")})
