"""The only timer of the benchmarks.

A *case* is a function without arguments that does some work. A plain function
is one phase, called "total". A generator function divides its work into
phases: it yields the name of each phase when that phase has ended, and
`SETUP` where what went before is not to be counted. What follows the last
`yield` is not counted either, so a case that wants destruction measured
writes `del` and yields once more.

Cases are compared in rounds (A B A B ...), never one after the other: a
machine that slows down for a second then slows all of them. A ratio is the
median over rounds of the ratios within a round. A *control* that touches none
of the libraries runs in every round; where its spread is large, the machine
was busy and the figures beside it deserve less trust.
"""
from __future__ import annotations

import gc
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

SETUP = "(setup)"
CONTROL = "control"
MIN_SAMPLE_SECONDS = 0.005  # 50,000 times the clock's resolution; short cases repeat until a sample takes this long
MAX_CALLS = 2000            # calls per sample of the very shortest cases

Case = Callable[[], object]


@dataclass(frozen=True)
class Sample:
    """Seconds per call of one phase (or of a whole case), one value per round."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median over the rounds, in seconds."""
        return float(np.median(self.values))

    @property
    def iqr(self) -> float:
        """Interquartile range over the rounds, in seconds."""
        low, high = np.percentile(self.values, [25, 75])
        return float(high - low)

    @property
    def spread(self) -> float:
        """Interquartile range as a fraction of the median."""
        return self.iqr / self.median if self.median else 0.0

    def ratio(self, other: Sample) -> Sample:
        """Round by round quotients self / other, as a sample."""
        return Sample(tuple(a / b for a, b in zip(self.values, other.values, strict=True)))

    def minus(self, other: Sample) -> Sample:
        """Round by round differences self - other, as a sample."""
        return Sample(tuple(a - b for a, b in zip(self.values, other.values, strict=True)))

    def divided(self, n: float) -> Sample:
        """The same sample per node, per step or per whatever there are `n` of."""
        return Sample(tuple(value / n for value in self.values))

    def as_dict(self) -> dict[str, object]:
        """What goes into the JSON: median, interquartile range and number of rounds."""
        return {"median": self.median, "iqr": self.iqr, "rounds": len(self.values)}


@dataclass
class Timing:
    """What was measured of one case: a list of seconds per phase, one value per round."""

    rounds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, phases: Mapping[str, float]) -> None:
        """Append one round."""
        for name, seconds in phases.items():
            self.rounds.setdefault(name, []).append(seconds)

    def phase(self, name: str) -> Sample:
        """One phase of the case."""
        return Sample(tuple(self.rounds[name]))

    @property
    def total(self) -> Sample:
        """All counted phases of the case together."""
        return Sample(tuple(map(sum, zip(*self.rounds.values(), strict=True))))

    def as_dict(self) -> dict[str, object]:
        """What goes into the JSON: every phase and the total."""
        return {name: self.phase(name).as_dict() for name in self.rounds} | {"total": self.total.as_dict()}


def call(case: Case) -> dict[str, float]:
    """Run a case once.

    Returns
    -------
    dict
        Seconds per counted phase, in the order in which the phases ended.
    """
    seconds: dict[str, float] = {}
    start = perf_counter()
    steps = case()
    if not inspect.isgenerator(steps):
        return {"total": perf_counter() - start}
    for name in steps:
        elapsed = perf_counter() - start
        if name != SETUP:
            seconds[name] = seconds.get(name, 0.0) + elapsed
        start = perf_counter()
    return seconds


def call_often(case: Case, calls: int) -> dict[str, float]:
    """Seconds per phase of one call, as the mean over `calls` of them."""
    if calls > 1:
        call(case)  # what ran before has taken the caches
    sums = call(case)
    for _ in range(calls - 1):
        for name, seconds in call(case).items():
            sums[name] += seconds
    return {name: seconds / calls for name, seconds in sums.items()}


_MATRIX = np.linspace(-1.0, 1.0, 96 * 96).reshape(96, 96)


def numpy_dot() -> None:
    """Multiply small matrices: the control."""
    for _ in range(10):
        _MATRIX @ _MATRIX


@contextmanager
def quiet_collector() -> Iterator[None]:
    """Keep what exists already out of garbage collections.

    The collector stays on, because its cost is part of a library's. But the objects made by importing one library
    should not make the collections during another library's turn longer.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def compare(
    cases: Mapping[str, Case],
    *,
    repeats: int = 15,
    warmup: int = 1,
    control: Case | None = numpy_dot,
    min_seconds: float = MIN_SAMPLE_SECONDS,
) -> dict[str, Timing]:
    """Time several cases in rounds.

    Parameters
    ----------
    cases : mapping of str to case
        What to time, in the order of a round.
    repeats : int
        Number of rounds.
    warmup : int
        Calls of each case before the first round, beside the one that finds how many calls a sample needs.
    control : case, optional
        Work that touches none of the libraries, added to every round under the name `CONTROL`.
    min_seconds : float
        Length of a sample; shorter cases are called several times and the mean is taken.

    Returns
    -------
    dict of str to Timing
        One entry per case, and one for the control.
    """
    everything = dict(cases)
    if control is not None:
        everything[CONTROL] = control
    timings = {name: Timing() for name in everything}
    calls: dict[str, int] = {}
    for name, case in everything.items():
        for _ in range(warmup):
            call(case)
        once = max(sum(call(case).values()), 1e-9)
        calls[name] = min(MAX_CALLS, max(1, math.ceil(min_seconds / once)))
    with quiet_collector():
        for _ in range(repeats):
            for name, case in everything.items():
                timings[name].add(call_often(case, calls[name]))
                gc.collect()  # one case's garbage is not the next one's time
    return timings


def control_note(timings: Mapping[str, Timing]) -> str:
    """One line about the control, to stand under a table."""
    control = timings[CONTROL].total
    return f"control (NumPy dot, no library): {control.median * 1e3:.3g} ms, spread {control.spread:.0%}"


class Stopwatch:
    """Seconds since it was made; for records of something over time."""

    def __init__(self) -> None:
        self._start = perf_counter()

    def elapsed(self) -> float:
        """Seconds since the stopwatch was made."""
        return perf_counter() - self._start
