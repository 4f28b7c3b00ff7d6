"""What one operation costs: a chain of multiplications, and a table of it per library."""
from __future__ import annotations

from typing import Any

import numpy as np

from bench.libraries import Workload, cases
from bench.report import Options, Part, Table, digits, progress
from bench.timing import Timing, compare, control_note

DEPTH = 1000
SIZES = (1, 16, 1024, 100_000)  # elements, of 8 bytes


def chain_forward(names: Any, x: Any, w: Any, depth: int = DEPTH) -> Any:
    """Multiply by `w` again and again, then sum."""
    y = x
    for _ in range(depth):
        y = y * w
    return names.sum(y)


def chain(size: int) -> Workload:
    """Return the chain over `size` float64 elements; both operands of every product require gradients."""
    return Workload(f"chain of mul, {size:,}", chain_forward, [np.ones(size), np.ones(size)])


def workloads() -> list[Workload]:
    """Chains over every size that fits the caches: beyond, it is memory that is measured."""
    return [chain(size) for size in SIZES[:3]]


def measure(size: int, options: Options) -> dict[str, Timing]:
    """Time the chain in every library, in rounds."""
    return compare(cases(chain(size), options.compare), repeats=5 if options.small else 25)


def row(size: int, timings: dict[str, Timing], name: str) -> list[str]:
    """One library's line: nanoseconds per node and phase, and its ratio to fastgrad."""
    timing = timings[name]
    per_node = {phase: timing.phase(phase).divided(DEPTH * 1e-9) for phase in timing.rounds}
    total = timing.total.divided(DEPTH * 1e-9)
    ratio = timing.total.ratio(timings["fastgrad"].total)
    return [f"{size:,}", name, *(digits(per_node[phase].median) if phase in per_node else "-"
                                 for phase in ("forward", "backward", "del")),
            digits(total.median), f"{total.spread:.0%}", f"{digits(ratio.median)} x"]


def run(options: Options) -> Part:
    """Chains of every size, in every library."""
    header = ["elements", "library", "forward", "backward", "del", "total", "spread", "/ fastgrad"]
    table = Table(f"One operation: y = y * w, {DEPTH:,} times, both requiring grad, float64; ns per node", header)
    data = {}
    for size in progress(SIZES[:3] if options.small else SIZES, "overhead"):
        timings = measure(size, options)
        table.rows += [row(size, timings, name) for name in cases(chain(size), options.compare)]
        table.notes = [control_note(timings)]
        data[str(size)] = {name: timing.as_dict() for name, timing in timings.items()}
        data[str(size)]["ratios"] = {name: timing.total.ratio(timings["fastgrad"].total).as_dict()
                                     for name, timing in timings.items()}
    return Part("overhead", tables=[table], data=data)


def bench_overhead(time_phase):
    """One chain, one library, one phase."""
    time_phase()
