"""fastgrad: PyTorch's autograd over NumPy arrays, with a compiled engine."""
from . import _gc, autograd, memory, ops, tensor as _methods
from . import creation as _creation, ranges as _ranges, sharing as _sharing
from ._dtypes import *
from ._tensor import Tensor
from .autograd import *
from .creation import *
from .ops import functions as _functions
from .ranges import *
from .sharing import *

globals().update({name: value for name, value in _functions.items() if not name.startswith("_")})
