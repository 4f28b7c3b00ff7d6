"""Freeing against retaining: time and peak memory of deep graphs, phase by phase."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.libraries import Workload, fg, tensor_libraries
from bench.report import Options, Part, Table, digits, installed, progress, size
from bench.timing import SETUP, Case, Stopwatch, Timing, compare, control_note

DEPTHS = (10**3, 10**4, 10**5, 10**6)
SIZES = (1, 16, 1000, 100_000)  # elements, of ITEM bytes
ITEM = 8
NODE_BYTES = 256                # upper bound for what a node takes beside its buffer, for the budget
NODE_BYTES_TORCH = 1400         # as measured with PyTorch 2.13, for the same
PEER_DEPTH_MAX = 10**5          # PyTorch takes about 10 µs a node: deeper graphs would take most of the run
PHASES = ("forward", "freed backward", "retained backward", "second backward")
PICTURE = (2000, 10_000)        # depth and elements of the graph that the picture shows
SMALL_PICTURE = (400, 10_000)
PICTURE_POINTS = 100            # places in the graph where memory is read, each on the way forward and backward


@dataclass(frozen=True)
class Usage:
    """Memory at the end of a phase, in bytes beyond what was live before the graph was built.

    Attributes
    ----------
    peak : int
        Highest number of live bytes during the phase.
    live : int
        Live bytes at its end.
    saved : int
        Bytes held by saved tensors at its end.
    """

    peak: int
    live: int
    saved: int


def leaves(library: Any, elements: int) -> tuple[Any, Any]:
    """Return the two leaves of a chain; ones, so that every product is 1 and the gradient of `w` is the depth."""
    ones = np.ones(elements)
    return library.tensor(ones, requires_grad=True), library.tensor(ones, requires_grad=True)


def chain(x: Any, w: Any, depth: int) -> Any:
    """Multiply `depth` times and sum: every node saves both operands."""
    y = x
    for _ in range(depth):
        y = y * w
    return y.sum()


def freeing(library: Any, depth: int, elements: int) -> Case:
    """Forward, and a backward that frees."""
    def case() -> Iterator[str]:
        x, w = leaves(library, elements)
        yield SETUP
        y = chain(x, w, depth)
        yield "forward"
        y.backward()
        yield "freed backward"
        del y
        yield SETUP
        check_gradient(w, depth)

    return case


def retaining(library: Any, depth: int, elements: int) -> Case:
    """Forward, a backward that retains, and a second one that frees."""
    def case() -> Iterator[str]:
        x, w = leaves(library, elements)
        yield SETUP
        y = chain(x, w, depth)
        yield SETUP  # the forward pass is counted in the freeing case
        y.backward(retain_graph=True)
        yield "retained backward"
        y.backward()
        yield "second backward"
        del y
        yield SETUP
        check_gradient(w, 2 * depth)

    return case


def numpy_forward(depth: int, elements: int) -> Case:
    """Forward alone, on plain arrays."""
    x, w = np.ones(elements), np.ones(elements)

    def case() -> Iterator[str]:
        yield SETUP
        chain(x, w, depth)
        yield "forward"

    return case


def check_gradient(w: Any, expected: int) -> None:
    """Stop where a gradient is wrong: every figure beside it would be meaningless."""
    found = w.grad.tolist()[0]
    assert found == expected, f"the gradient of w is {found}, not {expected}"


def natural_loop(depth: int, elements: int, retain_graph: bool, iterations: int = 3) -> Case:
    """Return the loop as users write it: one graph dies when the next has taken its name."""
    def case() -> Iterator[str]:
        x, w = leaves(fg, elements)
        yield SETUP
        for _ in range(iterations):
            y = chain(x, w, depth)
            y.backward(retain_graph=retain_graph)
        del y
        yield "loop"

    return case


def usage(case: Case) -> dict[str, Usage]:
    """Run a case once and read memory at the end of each phase; the first phase is the setup."""
    fg.memory.reset_peak()
    base = fg.memory.live_bytes()
    found: dict[str, Usage] = {}
    for name in case():
        live, saved = fg.memory.live_bytes(), fg.memory.saved_bytes()
        if not found:
            base = live
        found.setdefault(name, Usage(fg.memory.peak_bytes() - base, live - base, saved))
        fg.memory.reset_peak()
    return found


def grid(options: Options) -> tuple[list[tuple[int, int]], list[str]]:
    """Depths and sizes within the budget, and a line for each that is not."""
    depths = DEPTHS[:2] if options.small else DEPTHS
    wanted = [(depth, elements) for elements in SIZES for depth in depths if depth <= options.depth_max]
    fits = [(depth, elements) for depth, elements in wanted if graph_bytes(depth, elements) <= options.budget]
    skipped = [f"skipped: {depth:,} deep with {elements:,} elements needs {size(graph_bytes(depth, elements))}"
               f" (budget {size(options.budget)})" for depth, elements in wanted if (depth, elements) not in fits]
    return fits, skipped


def graph_bytes(depth: int, elements: int, node_bytes: int = NODE_BYTES) -> int:
    """Upper bound of what a chain takes."""
    return depth * (elements * ITEM + node_bytes)


def measure(depth: int, elements: int, options: Options) -> dict[str, dict[str, Timing]]:
    """Time freeing and retaining in rounds, in every library; the keys are `(library, case)` joined by a space."""
    cases: dict[str, Case] = {}
    shallow = depth <= PEER_DEPTH_MAX and graph_bytes(depth, elements, NODE_BYTES_TORCH) <= options.budget
    for name, library in tensor_libraries(options.compare and shallow).items():
        cases[f"{name} freeing"] = freeing(library, depth, elements)
        cases[f"{name} retaining"] = retaining(library, depth, elements)
    if options.compare:
        cases["numpy"] = numpy_forward(depth, elements)
    work = depth * (elements + 1000)  # an operation costs about as much as 1,000 elements
    repeats = 3 if options.small or work > 5 * 10**7 else 5
    return compare(cases, repeats=repeats, warmup=0 if work > 5 * 10**7 else 1)


def time_row(depth: int, elements: int, timings: dict[str, Timing], library: str) -> list[str]:
    """One library's line of the table of times."""
    freed, retained = timings[f"{library} freeing"], timings[f"{library} retaining"]
    phases = [freed.phase(name) for name in PHASES[:2]] + [retained.phase(name) for name in PHASES[2:]]
    ratio = freed.phase("freed backward").ratio(retained.phase("retained backward"))
    cells = [f"{depth:,}", f"{elements:,}", library, *(digits(phase.divided(depth * 1e-9).median) for phase in phases)]
    cells += [f"{max(phase.spread for phase in phases):.0%}", f"{digits(ratio.median)} x"]
    return cells


def numpy_row(depth: int, elements: int, timings: dict[str, Timing]) -> list[str]:
    """NumPy's line of the same table: forward alone."""
    forward = timings["numpy"].phase("forward")
    return [f"{depth:,}", f"{elements:,}", "numpy", digits(forward.divided(depth * 1e-9).median), "-", "-", "-",
            f"{forward.spread:.0%}", "-"]


def memory_row(depth: int, elements: int, found: dict[str, Usage]) -> list[str]:
    """One line of the table of memory."""
    return [f"{depth:,}", f"{elements:,}", *(size(found[name].peak) for name in PHASES),
            size(found["freed backward"].saved), size(found["retained backward"].saved),
            size(found["second backward"].saved)]


def run(options: Options) -> Part:
    """Time and memory over the grid, and the picture."""
    times = Table("Freeing against retaining: time, ns per node",
                  ["depth", "elements", "library", *PHASES, "spread", "freed/retained"])
    memory = Table("Freeing against retaining: peak of live bytes in each phase, and saved bytes after it (fastgrad)",
                   ["depth", "elements", *(f"{name} peak" for name in PHASES),
                    "saved: freed", "retained", "second"])
    fits, memory.notes = grid(options)
    rows = []
    for depth, elements in progress(fits, "freeing"):
        found = usage(freeing(fg, depth, elements)) | {
            name: value for name, value in usage(retaining(fg, depth, elements)).items() if name in PHASES[2:]}
        timings = measure(depth, elements, options)
        libraries = [name.removesuffix(" freeing") for name in timings if name.endswith(" freeing")]
        times.rows += [time_row(depth, elements, timings, library) for library in libraries]
        times.rows += [numpy_row(depth, elements, timings)] if "numpy" in timings else []
        times.notes = [control_note(timings)]
        memory.rows.append(memory_row(depth, elements, found))
        rows.append({"depth": depth, "elements": elements,
                     "memory": {name: vars(value) for name, value in found.items()},
                     "time": {name: timing.as_dict() for name, timing in timings.items()}})
        fg.memory.empty_pool()
    part = Part("freeing", tables=[times, memory], data={"grid": rows, "skipped": memory.notes})
    add_picture(part, options)
    return part


def trace(depth: int, elements: int, retain_graph: bool) -> list[tuple[float, int]]:
    """Live bytes over time, through forward, backward and the end of the graph.

    Memory is read by hooks on every few nodes, in the thread that runs backward: a thread that watches from outside
    would wait for the lock that backward holds.

    Returns
    -------
    list of (seconds, bytes)
        With the start of forward at 0 s, and the bytes that were live then at 0.
    """
    x, w = leaves(fg, elements)
    points: list[tuple[float, int]] = []
    base, watch = fg.memory.live_bytes(), Stopwatch()

    def read(_gradient: Any = None) -> None:
        points.append((watch.elapsed(), fg.memory.live_bytes() - base))

    read()
    y = x
    for i in range(depth):
        y = y * w
        if i % (depth // PICTURE_POINTS) == 0:
            read()
            y.register_hook(read)
    y = y.sum()
    read()
    y.backward(retain_graph=retain_graph)
    read()
    del y
    read()
    return points


def add_picture(part: Part, options: Options) -> None:
    """Record both curves, and draw them where matplotlib is installed."""
    depth, elements = SMALL_PICTURE if options.small else PICTURE
    for retain_graph in (False, True):
        trace(depth, elements, retain_graph)  # warm-up: the pool has its blocks from here on
    curves = {"freed": trace(depth, elements, False), "retained": trace(depth, elements, True)}
    part.data["trace"] = {"depth": depth, "elements": elements, **curves}
    if not installed("matplotlib"):
        part.text = "skipped: the picture of memory over time, because matplotlib is not installed"
        return
    from bench.picture import draw
    part.files = draw(curves, depth, elements, options.out)


def deep_chain(names: Any, x: Any, w: Any) -> Any:
    """Build a chain of 10,000 nodes."""
    return chain(x, w, 10_000)


def workloads() -> list[Workload]:
    """Deep chains for pytest-benchmark, where every library takes part."""
    return [Workload(f"10,000 deep, {elements}", deep_chain, [np.ones(elements), np.ones(elements)])
            for elements in SIZES[:2]]


def bench_memory(time_phase):
    """One deep chain, one library, one phase."""
    time_phase()


def bench_retained_loop(benchmark):
    """Loop as users write it, retaining."""
    benchmark(lambda: list(natural_loop(1000, 1000, retain_graph=True)()))


def bench_freed_loop(benchmark):
    """Loop as users write it, freeing."""
    benchmark(lambda: list(natural_loop(1000, 1000, retain_graph=False)()))
