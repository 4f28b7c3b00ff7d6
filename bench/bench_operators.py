"""One operator at a time, forward and backward."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.libraries import ArrayNames, Workload, cases
from bench.report import Options, Part, Table, digits, duration, progress
from bench.timing import compare, control_note

SIZES = (16, 1024, 100_000)  # elements
REPEATED = 20                # times each operator is applied in one graph, so that starting backward hardly counts

# Operators by name, over names that all libraries share; both operands are positive.
ELEMENTWISE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda names, x, w: x + w,
    "mul": lambda names, x, w: x * w,
    "mul by number": lambda names, x, w: x * 3.0,
    "div": lambda names, x, w: x / w,
    "pow": lambda names, x, w: x ** 2,
    "exp": lambda names, x, w: names.exp(x),
    "log": lambda names, x, w: names.log(x),
    "sqrt": lambda names, x, w: names.sqrt(x),
    "tanh": lambda names, x, w: names.tanh(x),
    "sin": lambda names, x, w: names.sin(x),
    "maximum": lambda names, x, w: names.maximum(x, w),
    "where": lambda names, x, w: names.where(x > w, x, w),
}
SHAPED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum of rows": lambda names, x, w: names.sum(x, 1),
    "mean of columns": lambda names, x, w: names.mean(x, 0),
    "broadcast add": lambda names, x, w: x + w[0],
    "log_softmax": lambda names, x, w: names.log_softmax(x, 1),
    "slice": lambda names, x, w: x[:, 1:],
    "transpose": lambda names, x, w: x.T * 1.0,
    "reshape": lambda names, x, w: names.reshape(x, (-1,)),
    "stack": lambda names, x, w: names.stack([x, w]),
}


def repeated(operator: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    """Apply an operator to the same operands several times and add the results."""
    def forward(names: Any, x: Any, w: Any) -> Any:
        total = operator(names, x, w)
        for _ in range(REPEATED - 1):
            total = total + operator(names, x, w)
        return total
    return forward


def workload(name: str, operator: Callable[[Any, Any, Any], Any], x: np.ndarray, w: np.ndarray) -> Workload:
    """Return an operator's workload on two arrays."""
    forward = repeated(operator)
    return Workload(name, forward, [x, w], shape=forward(ArrayNames(np), x, w).shape)


def vectors(size: int) -> list[Workload]:
    """Elementwise operators on vectors."""
    x, w = np.linspace(0.5, 1.5, size), np.linspace(1.5, 0.5, size)
    return [workload(f"{name}, {size:,}", operator, x, w) for name, operator in ELEMENTWISE.items()]


def matrices(size: int) -> list[Workload]:
    """Operators that see the shape, on matrices with 8 columns (32 from 1,000 elements on)."""
    columns = 8 if size < 1000 else 32
    x, w = np.linspace(0.5, 1.5, size).reshape(-1, columns), np.linspace(1.5, 0.5, size).reshape(-1, columns)
    every = [workload(f"{name}, {size:,}", operator, x, w) for name, operator in SHAPED.items()]
    side = min(256, int(size**0.5))  # its work grows faster than its operands
    x, w = (np.resize(array, (side, side)) for array in (x, w))
    return [*every, workload(f"matmul, {side} by {side}", lambda names, x, w: x @ w, x, w)]


def workloads(sizes: tuple[int, ...] = SIZES[1:2]) -> list[Workload]:
    """Every operator at every size; under pytest-benchmark at one."""
    return [entry for size in sizes for entry in vectors(size) + matrices(size)]


def run(options: Options) -> Part:
    """One line per operator; with peers, their ratios to fastgrad beside it."""
    every = workloads(SIZES[:1] if options.small else SIZES)
    libraries = [name for name in cases(every[0], options.compare) if name != "fastgrad"]
    table = Table("Operators (each with an addition after it): time of one, and other libraries' time over fastgrad's",
                  ["operator", "forward", "backward", "total", "spread", *libraries])
    data = {}
    for entry in progress(every, "operators"):
        timings = compare(cases(entry, options.compare), repeats=3 if options.small else 7, min_seconds=0.003)
        own = timings["fastgrad"]
        ratios = {name: timings[name].total.ratio(own.total) for name in libraries}
        table.rows.append([
            entry.name, *(duration(own.phase(phase).median / REPEATED) for phase in ("forward", "backward")),
            duration(own.total.median / REPEATED), f"{own.total.spread:.0%}",
            *(f"{digits(ratio.median)} x" for ratio in ratios.values())])
        table.notes = ["numpy is its forward pass alone; what is above 1 x is slower than fastgrad",
                       control_note(timings)]
        data[entry.name] = {name: timing.as_dict() for name, timing in timings.items()}
        data[entry.name]["ratios"] = {name: ratio.as_dict() for name, ratio in ratios.items()}
    return Part("operators", tables=[table], data=data)


def bench_operators(time_phase):
    """One operator, one library, one phase."""
    time_phase()
