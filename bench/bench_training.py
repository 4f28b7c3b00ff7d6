"""A real fit: handwritten digits, by logistic regression and by a two-layer network, trained with fastgrad only."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bench.libraries import ArrayNames, Workload, cases, fg, tensor_libraries
from bench.report import Options, Part, Table, digits, duration, installed, progress, size
from bench.timing import SETUP, Case, Stopwatch, Timing, compare, control_note

SEED = 20240229
N_TEST = 360        # of 1,797 images
BATCH = 64
CLASSES = 10
HIDDEN = 64
EPOCHS = 40
SMALL_EPOCHS = 12
RATE = 0.1
MOMENTUM = 0.9
BAR = 0.95          # test accuracy that the network has to reach


@dataclass(frozen=True)
class Digits:
    """Images of handwritten digits, float32 in [0, 1] of shape (n, 64), and their labels, int64."""

    images: np.ndarray
    labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


@cache
def load() -> Digits:
    """Read the data that scikit-learn ships, in a fixed split."""
    from sklearn.datasets import load_digits
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(images))
    images, labels = (images[order] / 16).astype(np.float32), labels[order].astype(np.int64)
    return Digits(images[N_TEST:], labels[N_TEST:], images[:N_TEST], labels[:N_TEST])


# Models: logits from images, over names that all libraries share.

def logistic(names: Any, images: Any, weight: Any, bias: Any) -> Any:
    """Return the logits of multinomial logistic regression."""
    return images @ weight + bias


def network(names: Any, images: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    """Return the logits of a network with one hidden layer."""
    return names.tanh(images @ w1 + b1) @ w2 + b2


def loss_of(model: Callable[..., Any]) -> Callable[..., Any]:
    """Mean negative log-likelihood, as a function of parameters, images and labels (and row numbers to index with)."""
    def loss(names: Any, *arguments: Any) -> Any:
        *parameters, images, labels, rows = arguments
        log_probability = names.log_softmax(model(names, images, *parameters), 1)
        return -names.mean(log_probability[rows, labels])
    return loss


def start(model: Callable[..., Any]) -> list[np.ndarray]:
    """Return the parameters to start from, float32."""
    sizes = (64, CLASSES) if model is logistic else (64, HIDDEN, CLASSES)
    rng = np.random.default_rng(SEED)
    parameters = []
    for n, m in zip(sizes, sizes[1:], strict=False):
        parameters += [rng.normal(0, n**-0.5, (n, m)).astype(np.float32), np.zeros(m, np.float32)]
    return parameters


class Momentum:
    """Stochastic gradient descent with momentum, in place."""

    def __init__(self, library: Any, parameters: Sequence[Any]) -> None:
        self.library = library
        self.parameters = parameters
        self.velocities = [library.zeros_like(parameter) for parameter in parameters]

    def step(self) -> None:
        """Move the parameters against their gradients, and clear these."""
        with self.library.no_grad():
            for parameter, velocity in zip(self.parameters, self.velocities, strict=True):
                velocity.mul_(MOMENTUM).add_(parameter.grad)
                parameter.sub_(velocity * RATE)
                parameter.grad.zero_()


class Trainer:
    """One model in one tensor library."""

    def __init__(self, library: Any, model: Callable[..., Any], data: Digits) -> None:
        self.library = library
        self.model = model
        self.loss = loss_of(model)
        self.images = library.from_numpy(data.images)
        self.labels = library.from_numpy(data.labels)
        self.rows = library.from_numpy(np.arange(BATCH))
        self.parameters = [library.tensor(array, requires_grad=True) for array in start(model)]
        self.optimizer = Momentum(library, self.parameters)

    def step(self, first: int) -> Any:
        """One step on the batch that begins at an image; returns its loss."""
        images, labels = self.images[first:first + BATCH], self.labels[first:first + BATCH]
        loss = self.loss(self.library, *self.parameters, images, labels, self.rows)
        loss.backward()
        self.optimizer.step()
        return loss

    def epoch(self) -> float:
        """Go through the images once (a last batch that is not full is left out); returns the mean loss."""
        firsts = range(0, len(self.images) - BATCH + 1, BATCH)
        return sum(self.step(first).item() for first in firsts) / len(firsts)

    def accuracy(self, images: np.ndarray, labels: np.ndarray) -> float:
        """Fraction of images classified as labelled."""
        with self.library.no_grad():
            logits = self.model(self.library, self.library.from_numpy(images), *self.parameters)
        return float((logits.numpy().argmax(1) == labels).mean())


def fit(model: Callable[..., Any], options: Options) -> dict[str, Any]:
    """Train with fastgrad; returns what there is to say about it."""
    data = load()
    trainer = Trainer(fg, model, data)
    epochs = SMALL_EPOCHS if options.small else EPOCHS
    fg.memory.reset_peak()
    watch = Stopwatch()
    losses = [trainer.epoch() for _ in progress(range(epochs), f"digits, {model.__name__}")]
    seconds = watch.elapsed()
    return {"model": model.__name__, "epochs": epochs, "seconds": seconds,
            "steps": epochs * (len(data.images) // BATCH), "losses": losses,
            "train_accuracy": trainer.accuracy(data.images, data.labels),
            "test_accuracy": trainer.accuracy(data.test_images, data.test_labels),
            "peak_bytes": fg.memory.peak_bytes(), "saved_bytes": fg.memory.saved_bytes()}


def fit_row(result: dict[str, Any]) -> list[str]:
    """One model's line."""
    return [result["model"], str(result["epochs"]), f"{result['losses'][-1]:.4f}", f"{result['train_accuracy']:.1%}",
            f"{result['test_accuracy']:.1%}", duration(result["seconds"]),
            duration(result["seconds"] / result["steps"]), size(result["peak_bytes"])]


def run(options: Options) -> Part:
    """Both fits; with peers, also the time of a step in each library."""
    if not installed("sklearn"):
        return Part("digits", text="skipped: the fit of the digits, because scikit-learn, which ships them, is not "
                                   "installed", data={"skipped": "scikit-learn is not installed"})
    data = load()
    results = [fit(model, options) for model in (logistic, network)]
    table = Table(f"Digits: {len(data.images):,} images to train on, {len(data.test_images)} to test, "
                  "float32, batches of 64, SGD with momentum, fastgrad only",
                  ["model", "epochs", "loss", "train accuracy", "test accuracy", "time", "per step", "peak"])
    table.rows = [fit_row(result) for result in results]
    reached = results[1]["test_accuracy"] >= BAR
    table.notes = [f"the network has to reach {BAR:.0%} on the test images: {'reached' if reached else 'MISSED'}"]
    part = Part("digits", tables=[table], data={result["model"]: result for result in results})
    if options.compare:
        add_comparison(part, options)
    return part


# One step in every library.

def step_case(library: Any, model: Callable[..., Any]) -> Case:
    """Forward, backward and update on the first batch, through tensors."""
    trainer = Trainer(library, model, load())

    def case() -> Iterator[str]:
        yield SETUP
        trainer.step(0)
        yield "step"

    return case


def batch(model: Callable[..., Any]) -> Workload:
    """Return the loss on the first batch, for libraries of arrays."""
    data = load()
    constants = [data.images[:BATCH], data.labels[:BATCH], np.arange(BATCH)]
    return Workload(f"digits, {model.__name__}", loss_of(model), start(model), constants)


def hips_step_case(model: Callable[..., Any]) -> Case:
    """Forward, backward and update through HIPS autograd and NumPy."""
    import autograd
    import autograd.numpy as anp
    workload = batch(model)
    parameters = [array.copy() for array in workload.leaves]
    velocities = [np.zeros_like(array) for array in parameters]
    names = ArrayNames(anp)
    gradients = autograd.grad(lambda leaves: workload.forward(names, *leaves, *workload.constants))

    def case() -> Iterator[str]:
        yield SETUP
        for parameter, velocity, gradient in zip(parameters, velocities, gradients(parameters), strict=True):
            velocity *= MOMENTUM
            velocity += gradient
            parameter -= RATE * velocity
        yield "step"

    return case


def step_cases(model: Callable[..., Any]) -> dict[str, Case]:
    """A training step in every library that is installed; forward alone in NumPy."""
    found = {name: step_case(library, model) for name, library in tensor_libraries(peers=True).items()}
    found["numpy"] = cases(batch(model), peers=True)["numpy"]
    if installed("autograd"):
        found["autograd"] = hips_step_case(model)
    return found


def step_row(model: str, name: str, timings: dict[str, Timing]) -> list[str]:
    """One library's line."""
    total = timings[name].total
    return [model, name, duration(total.median), f"{total.spread:.0%}",
            f"{digits(total.ratio(timings['fastgrad'].total).median)} x"]


def add_comparison(part: Part, options: Options) -> None:
    """Time a step of both models in every library."""
    table = Table("Digits: one step (numpy: forward alone)", ["model", "library", "step", "spread", "/ fastgrad"])
    part.data["steps"] = {}
    for model in (logistic, network):
        timings = compare(step_cases(model), repeats=5 if options.small else 15)
        table.rows += [step_row(model.__name__, name, timings) for name in step_cases(model)]
        table.notes = [control_note(timings)]
        part.data["steps"][model.__name__] = {name: timing.as_dict() for name, timing in timings.items()}
    part.tables.append(table)


def workloads() -> list[Workload]:
    """Return the losses of both models, for pytest-benchmark; none where scikit-learn is missing."""
    return [batch(logistic), batch(network)] if installed("sklearn") else []


def bench_training(time_phase):
    """One model, one library, one phase of a step."""
    time_phase()
