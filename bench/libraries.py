"""The library that is measured, and those it is measured against.

fastgrad is imported here and nowhere else in `bench`. A *workload* is written
once, over names that all libraries share; a *driver* turns it into a case for
`timing`: fastgrad and PyTorch run it forward and backward through tensors,
HIPS autograd through `make_vjp`, NumPy forward alone.
"""
from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

import fastgrad as fg
from bench.report import installed
from bench.timing import SETUP, Case

PEERS = {"numpy": "NumPy, forward only", "torch": "PyTorch", "autograd": "HIPS autograd"}
PHASES = ("forward", "backward", "del")


@cache
def peer(name: str) -> ModuleType | None:
    """Import a library to compare with, limited to one thread; None where it is not installed."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        return None
    if name == "torch":
        module.set_num_threads(1)
    return module


def tensor_libraries(peers: bool) -> dict[str, Any]:
    """Return the libraries with PyTorch's names: fastgrad, and PyTorch itself where asked for and installed."""
    torch = peer("torch") if peers else None
    return {"fastgrad": fg} | ({} if torch is None else {"torch": torch})


def installed_peers() -> list[str]:
    """Modules of the peers that are installed."""
    return [name for name in PEERS if installed(name)]


def missing_peers() -> list[str]:
    """Titles of the peers that are not installed."""
    return [title for name, title in PEERS.items() if not installed(name)]


@dataclass(frozen=True)
class Workload:
    """A function of arrays, and what it is evaluated on.

    Attributes
    ----------
    name : str
        Short, for tables.
    forward : callable
        Called as `forward(names, *leaves, *constants)`, where `names` is the namespace of a library.
    leaves : sequence of ndarray
        What it is differentiated with respect to.
    constants : sequence of ndarray
        Further arguments, without gradients.
    shape : tuple of int
        Shape of the result. Backward starts from ones; a scalar needs none to be given.
    """

    name: str
    forward: Callable[..., Any]
    leaves: Sequence[np.ndarray]
    constants: Sequence[np.ndarray] = ()
    shape: tuple[int, ...] = ()


class ArrayNames:
    """NumPy's names (or those of HIPS autograd's copy of it), with the ones added that only tensor libraries have."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        """Everything else is the module's."""
        return getattr(self._module, name)

    def log_softmax(self, x: Any, dim: int) -> Any:
        """Logarithm of the softmax along `dim`."""
        shifted = x - self._module.max(x, axis=dim, keepdims=True)
        return shifted - self._module.log(self._module.sum(self._module.exp(shifted), axis=dim, keepdims=True))


def tensor_case(library: Any, workload: Workload) -> Case:
    """Forward and backward through tensors (fastgrad, PyTorch)."""
    constants = [library.from_numpy(array) for array in workload.constants]
    gradient = library.tensor(np.ones(workload.shape)) if workload.shape else None

    def case() -> Iterator[str]:
        leaves = [library.tensor(array, requires_grad=True) for array in workload.leaves]
        yield SETUP
        result = workload.forward(library, *leaves, *constants)
        yield "forward"
        result.backward(gradient)
        yield "backward"
        del result
        yield "del"

    return case


def numpy_case(workload: Workload) -> Case:
    """Forward alone, on plain arrays."""
    names = ArrayNames(np)

    def case() -> Iterator[str]:
        yield SETUP
        workload.forward(names, *workload.leaves, *workload.constants)
        yield "forward"

    return case


def hips_case(autograd: Any, workload: Workload) -> Case:
    """Forward and backward through HIPS autograd's boxes."""
    names = ArrayNames(importlib.import_module("autograd.numpy"))
    gradient = np.ones(workload.shape) if workload.shape else 1.0
    make_vjp = autograd.differential_operators.make_vjp(
        lambda *args: workload.forward(names, *args), tuple(range(len(workload.leaves))))

    def case() -> Iterator[str]:
        yield SETUP
        vjp, result = make_vjp(*workload.leaves, *workload.constants)
        yield "forward"
        vjp(gradient)
        yield "backward"
        del vjp, result
        yield "del"

    return case


def cases(workload: Workload, peers: bool) -> dict[str, Case]:
    """The workload's case for every library that is installed (for fastgrad alone without `peers`)."""
    found = {"fastgrad": tensor_case(fg, workload)}
    if peers:
        found["numpy"] = numpy_case(workload)
        if peer("torch"):
            found["torch"] = tensor_case(peer("torch"), workload)
        if peer("autograd"):
            found["autograd"] = hips_case(peer("autograd"), workload)
    return found
