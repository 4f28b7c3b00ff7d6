"""Floor 5: ``fastgrad.autograd``: differentiating what was recorded."""
from __future__ import annotations

from . import graph
from ._backward import Variable, backward, grad, is_strict, set_strict
from .grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .gradcheck import GradcheckError, gradcheck, gradgradcheck

__all__ = [
    "GradcheckError",
    "Variable",
    "backward",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_strict",
    "no_grad",
    "set_grad_enabled",
    "set_strict",
]
