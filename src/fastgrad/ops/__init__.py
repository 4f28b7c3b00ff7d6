"""Floor 3: operators, one declaration each, by family."""
from .. import _engine
from . import elementwise, reductions, regions, views
from ._declare import declarations, functions
from ._wiring import wire

wire()

__all__ = ["declarations", "functions"]
