"""Graphs of different shapes, and the small and large workloads people run."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.libraries import Workload, cases, tensor_libraries
from bench.report import Options, Part, Table, digits, duration, progress
from bench.timing import Case, Timing, compare, control_note

STEPS = 50      # of a recurrent net and of an integrator
WIDTH = 16      # of a recurrent net
FAN = 300       # consumers of one tensor, and inputs of one
LEAPFROG = 20   # steps of one Hamiltonian Monte Carlo proposal


def _random(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return scale * np.random.default_rng(seed).standard_normal(shape)


# Shapes of graphs.

def short(names: Any, x: Any, w: Any) -> Any:
    """Return a graph of three nodes."""
    return names.sum(names.tanh(x * w))


def long(names: Any, x: Any, w: Any) -> Any:
    """Return a narrow graph of 900 nodes."""
    for _ in range(300):
        x = names.tanh(x * w + 0.1)
    return names.sum(x)


def fan_out(names: Any, x: Any, w: Any) -> Any:
    """One tensor with many consumers, whose gradients are accumulated."""
    total = x * 0.0
    y = x * w
    for i in range(FAN):
        total = total + y * (0.001 * i)
    return names.sum(total)


def fan_in(names: Any, x: Any, w: Any) -> Any:
    """One node with many inputs."""
    return names.sum(names.tanh(names.stack([x * w for _ in range(FAN)])))


# Small workloads: little arithmetic per operation.

def scalar_net(names: Any, *weights: Any) -> Any:
    """Return a net of scalars, 2-4-1, one 0-dimensional tensor per weight."""
    inputs, values = (0.3, -0.7), iter(weights)
    hidden = [names.tanh(next(values) * inputs[0] + next(values) * inputs[1] + next(values)) for _ in range(4)]
    out = next(values)
    for unit in hidden:
        out = out + unit * next(values)
    return names.tanh(out)


def rnn(names: Any, w: Any, u: Any, b: Any, inputs: Any) -> Any:
    """Return a plain recurrent net over a sequence."""
    h = inputs[0] * 0.0
    for i in range(STEPS):
        h = names.tanh(inputs[i] @ w + h @ u + b)
    return names.sum(h * h)


def _sigmoid(names: Any, x: Any) -> Any:
    return 1.0 / (1.0 + names.exp(-x))


def lstm(names: Any, w: Any, u: Any, b: Any, inputs: Any) -> Any:
    """Long short-term memory over a sequence."""
    h = inputs[0] * 0.0
    c = h
    for i in range(STEPS):
        gates = inputs[i] @ w + h @ u + b
        forget, enter, leave = (_sigmoid(names, gates[:, k * WIDTH:(k + 1) * WIDTH]) for k in range(3))
        c = forget * c + enter * names.tanh(gates[:, 3 * WIDTH:])
        h = leave * names.tanh(c)
    return names.sum(h * h)


def rk4(names: Any, state: Any, rates: Any) -> Any:
    """Predators and prey (Lotka and Volterra) by the classical Runge-Kutta method."""
    step = 0.05
    a, b, c, d = (rates[i] for i in range(4))

    def slope(prey: Any, predators: Any) -> tuple[Any, Any]:
        return prey * (a - b * predators), predators * (d * prey - c)

    u, v = state[0], state[1]
    for _ in range(STEPS):
        u1, v1 = slope(u, v)
        u2, v2 = slope(u + 0.5 * step * u1, v + 0.5 * step * v1)
        u3, v3 = slope(u + 0.5 * step * u2, v + 0.5 * step * v2)
        u4, v4 = slope(u + step * u3, v + step * v3)
        u = u + step / 6 * (u1 + 2 * u2 + 2 * u3 + u4)
        v = v + step / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
    return u * u + v * v


def mlp(names: Any, w1: Any, b1: Any, w2: Any, b2: Any, inputs: Any, targets: Any) -> Any:
    """Two layers and a squared error."""
    error = names.tanh(inputs @ w1 + b1) @ w2 + b2 - targets
    return names.mean(error * error)


def elementwise(names: Any, x: Any, w: Any) -> Any:
    """Ten operations on many elements."""
    y = x
    for _ in range(5):
        y = names.tanh(y * w)
    return names.sum(y)


def _recurrent(name: str, forward: Any, gates: int) -> Workload:
    weights = [_random(1, WIDTH, gates * WIDTH, scale=0.2), _random(2, WIDTH, gates * WIDTH, scale=0.2)]
    return Workload(name, forward, [*weights, np.zeros(gates * WIDTH)], [_random(3, STEPS, 4, WIDTH)])


def _perceptron(name: str, batch: int, inputs: int, hidden: int, outputs: int) -> Workload:
    leaves = [_random(4, inputs, hidden, scale=0.1), np.zeros(hidden), _random(5, hidden, outputs, scale=0.1),
              np.zeros(outputs)]
    return Workload(name, mlp, leaves, [_random(6, batch, inputs), _random(7, batch, outputs)])


def shapes() -> list[Workload]:
    """Return graphs that differ in shape, over 16 elements."""
    leaves = [_random(8, 16), _random(9, 16)]
    return [Workload("short", short, leaves), Workload("long", long, leaves), Workload("fan out", fan_out, leaves),
            Workload("fan in", fan_in, leaves)]


def small() -> list[Workload]:
    """Workloads bound by the cost of an operation."""
    return [
        Workload("scalar net", scalar_net, [_random(10 + i).reshape(()) for i in range(17)]),
        _recurrent("RNN", rnn, 1),
        _recurrent("LSTM", lstm, 4),
        Workload("RK4", rk4, [np.array([1.0, 0.5]), np.array([1.1, 0.4, 0.4, 0.1])]),
        _perceptron("small MLP", 32, 16, 32, 1),
    ]


def large() -> list[Workload]:
    """Workloads bound by memory and by the BLAS."""
    return [Workload("1M elementwise", elementwise, [_random(30, 10**6), _random(31, 10**6)]),
            _perceptron("large MLP", 256, 784, 512, 10)]


def workloads() -> list[Workload]:
    """Everything above."""
    return [*shapes(), *small(), *large()]


# Workloads that differentiate inside: not one forward and one backward.

def hmc_case(library: Any) -> Case:
    """One proposal of Hamiltonian Monte Carlo for a Gaussian in ten dimensions."""
    precision = library.from_numpy(np.eye(10) + 0.1)
    start, momentum = _random(40, 10), library.from_numpy(_random(41, 10))
    step = 0.1

    def force(q: Any) -> Any:
        q = q.detach().requires_grad_()
        energy = 0.5 * (q @ precision @ q)
        return -library.autograd.grad(energy, q)[0]

    def case() -> Iterator[str]:
        q, p = library.from_numpy(start), momentum
        for _ in range(LEAPFROG):
            p = p + 0.5 * step * force(q)
            q = q + step * p
            p = p + 0.5 * step * force(q)
        yield "total"

    return case


def hessian_case(library: Any) -> Case:
    """Rosenbrock's function in six dimensions: a gradient with a graph, then one row after the other."""
    start = _random(42, 6)

    def case() -> Iterator[str]:
        x = library.tensor(start, requires_grad=True)
        valley, walls = x[1:] - x[:-1] * x[:-1], 1.0 - x[:-1]
        value = (100.0 * valley * valley + walls * walls).sum()
        gradient, = library.autograd.grad(value, x, create_graph=True)
        library.stack([library.autograd.grad(gradient[i], x, retain_graph=True)[0] for i in range(6)])
        yield "total"

    return case


def nested(peers: bool) -> dict[str, dict[str, Case]]:
    """Cases of the workloads that differentiate inside, by workload and library."""
    libraries = tensor_libraries(peers)
    return {"HMC": {name: hmc_case(library) for name, library in libraries.items()},
            "Hessian": {name: hessian_case(library) for name, library in libraries.items()}}


def row(workload: str, name: str, timings: dict[str, Timing]) -> list[str]:
    """One library's line: time per phase, and its ratio to fastgrad."""
    timing = timings[name]
    phases = [duration(timing.phase(phase).median) if phase in timing.rounds else "-"
              for phase in ("forward", "backward")]
    ratio = timing.total.ratio(timings["fastgrad"].total)
    return [workload, name, *phases, duration(timing.total.median), f"{timing.total.spread:.0%}",
            f"{digits(ratio.median)} x"]


def run(options: Options) -> Part:
    """Every workload, in every library."""
    table = Table("Graphs: time of one forward and backward",
                  ["workload", "library", "forward", "backward", "total", "spread", "/ fastgrad"])
    every = {workload.name: cases(workload, options.compare)
             for workload in (shapes() + small() if options.small else workloads())}
    every |= nested(options.compare)
    data = {}
    for name in progress(list(every), "graphs"):
        timings = compare(every[name], repeats=3 if options.small else 9)
        table.rows += [row(name, library, timings) for library in every[name]]
        table.notes = [control_note(timings)]
        data[name] = {library: timing.as_dict() for library, timing in timings.items()}
        data[name]["ratios"] = {library: timing.total.ratio(timings["fastgrad"].total).as_dict()
                                for library, timing in timings.items()}
    return Part("graphs", tables=[table], data=data)


def bench_graphs(time_phase):
    """One graph, one library, one phase."""
    time_phase()


def bench_nested(benchmark):
    """Compute the Hessian, in fastgrad."""
    benchmark(lambda: list(nested(False)["Hessian"]["fastgrad"]()))
