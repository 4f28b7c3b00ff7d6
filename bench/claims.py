"""What fastgrad claims about itself: figure, bar, and whether it holds on this machine."""
from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bench import bench_memory, bench_overhead, machine
from bench.libraries import fg, installed_peers
from bench.report import Options, Part, Table, digits, progress, size
from bench.timing import Timing, compare

MILLION = 10**6
STACK_BYTES = 256 * 1024
NODE_BYTES = 256             # bar: bytes a node of a chain of one-element tensors takes
DEEP_BYTES = 400             # bytes a node may need before a deep chain is not tried, with room for the interpreter
FREED = (2000, 10_000)       # depth and elements of the chain that freeing is judged by
GROWTH_STEPS = 10_000
RSS_NOISE = 1 << 20          # bytes by which resident memory may move without being growth
OBJECT_NOISE = 20            # objects that the interpreter itself makes between two counts
CHAIN_BARS = {"numpy": {1: 0.6, 16: 0.6}, "torch": {1: 40.0, 16: 40.0, 1024: 8.0}}
SMALL_WORKLOADS = ("scalar net", "RNN", "LSTM", "HMC", "RK4", "small MLP", "Hessian")
LARGE_BARS = {"1M elementwise": 2.0, "large MLP": 1.0}
Results = Mapping[str, Part]


@dataclass(frozen=True)
class Claim:
    """One figure and its bar.

    Attributes
    ----------
    name : str
        What is measured.
    value : float or None
        What was found; None where it could not be measured, and `reason` says why.
    bar : float
        The least or the most it may be.
    at_least : bool
        Whether the bar is a lower one.
    show : callable
        Value to text.
    reason : str
        Why there is no value, or why it is what it is.
    iqr : float or None
        Interquartile range over the rounds, of a figure that was timed.
    """

    name: str
    value: float | None
    bar: float
    at_least: bool = False
    show: Callable[[float], str] = digits
    reason: str = ""
    iqr: float | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the figure is on the right side of its bar; None where there is no figure."""
        if self.value is None:
            return None
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def row(self) -> list[str]:
        """Figure, bar and verdict."""
        verdict = {True: "pass", False: "FAIL", None: "not measured"}[self.holds]
        sign = "" if self.show is outcome else ">= " if self.at_least else "<= "
        return [self.name, "-" if self.value is None else self.show(self.value),
                "" if self.iqr is None else f"± {self.show(self.iqr / 2)}", sign + self.show(self.bar),
                verdict]

    def as_dict(self) -> dict[str, Any]:
        """What goes into the JSON."""
        return {"name": self.name, "value": self.value, "bar": self.bar, "at_least": self.at_least,
                "holds": self.holds, "reason": self.reason, "iqr": self.iqr}


def times(value: float) -> str:
    """A ratio as text."""
    return f"{digits(value)} x"


def milliseconds(value: float) -> str:
    """Seconds as text, in milliseconds."""
    return f"{value * 1e3:.1f} ms"


def count(value: float) -> str:
    """A whole number as text."""
    return f"{value:,.0f}"


def outcome(value: float) -> str:
    """Return 1 or 0 as text."""
    return "works" if value else "fails"


# Each of the following returns claims, and what was measured for the JSON.

Found = tuple[list[Claim], dict[str, Any]]


def chain_claims(options: Options, results: Results) -> Found:
    """One operation against NumPy's forward loop and against PyTorch."""
    part = results.get("overhead") or bench_overhead.run(replace(options, compare=True))
    claims = []
    for elements in bench_overhead.SIZES[:3]:
        ratios = part.data[str(elements)]["ratios"]
        for peer, bars in CHAIN_BARS.items():
            if elements not in bars:
                continue
            name = f"chain of mul, {elements:,} element{'s' if elements > 1 else ''}: "
            if peer == "torch":
                claims.append(faster(name, ratios, bars[elements]))
                continue
            slower = ratios[peer]["median"]
            claims.append(Claim(f"{name}time over NumPy's forward alone", 1 / slower, bars[elements], show=times,
                                iqr=ratios[peer]["iqr"] / slower**2))
    return claims, {}


def faster(name: str, ratios: Mapping[str, Mapping[str, float]], bar: float) -> Claim:
    """Claim that something takes a fraction of PyTorch's time, where PyTorch is installed."""
    found = ratios.get("torch", {})
    return Claim(f"{name}times faster than PyTorch", found.get("median"), bar, True, times,
                 "" if found else "PyTorch is not installed", found.get("iqr"))


def deep_claims(options: Options, results: Results) -> Found:
    """Chains of one and ten million nodes, on the default stack and on a small one, each in its own process."""
    claims: list[Claim] = []
    data: dict[str, Any] = {}
    for depth in (MILLION,) if options.small else (MILLION, 10 * MILLION):
        for stack in (0, STACK_BYTES):
            label = f"{depth // MILLION}M nodes deep{', thread with 256 KiB stack' if stack else ''}"
            found = child_with_memory(depth, "deep", depth=depth, stack_bytes=stack)
            data[label] = found
            reason = found.get("error", "")
            done = None if "skipped" in found else float(not reason)
            claims.append(Claim(f"{label}: forward, backward, del", done, 1.0, at_least=True,
                                show=outcome, reason=reason))
            if not stack:
                claims += [Claim(f"{label}: {what} a node", found.get(key) and found[key] / depth, NODE_BYTES,
                                 show=size, reason=reason)
                           for key, what in (("rss_bytes", "resident bytes"), ("live_bytes", "live bytes"))]
    if not options.small:
        found = child_with_memory(10 * MILLION, "depths", shallow=10_000, deep=10 * MILLION, repeats=3)
        data["depths"] = found
        claims.append(Claim("time per node, 10M deep over 10k deep", found.get("ratio", {}).get("median"), 1.3,
                            show=times, reason=found.get("error", ""), iqr=found.get("ratio", {}).get("iqr")))
    return claims, data


def child_with_memory(nodes: int, task: str, **arguments: Any) -> dict[str, Any]:
    """Run a child, unless what its graph needs is not there."""
    available = machine.available_bytes()
    if available is not None and available < nodes * DEEP_BYTES:
        return {"skipped": True, "error": f"needs {size(nodes * DEEP_BYTES)}, {size(available)} are available"}
    return machine.run_child(task, **arguments)


def freed_claims(options: Options, results: Results) -> Found:
    """Peak, saved bytes and time of a freed backward, against forward and against a retained one."""
    depth, elements = (500, FREED[1]) if options.small else FREED
    found = bench_memory.usage(bench_memory.freeing(fg, depth, elements))
    buffers = (found["freed backward"].peak - found["forward"].peak) / (elements * bench_memory.ITEM)
    timings = compare({
        "freeing": bench_memory.freeing(fg, depth, elements),
        "retaining": bench_memory.retaining(fg, depth, elements),
        "freed loop": bench_memory.natural_loop(depth, elements, retain_graph=False),
        "retained loop": bench_memory.natural_loop(depth, elements, retain_graph=True),
    }, repeats=3 if options.small else 9)
    backward = timings["freeing"].phase("freed backward").ratio(timings["retaining"].phase("retained backward"))
    loop = timings["freed loop"].total.ratio(timings["retained loop"].total)
    label = f"{depth:,} nodes of {elements:,}: "
    fg.memory.empty_pool()
    return [
        Claim(f"{label}buffers of freed backward's peak beyond forward's", buffers, 2.0),
        Claim(f"{label}saved bytes after a freed backward", found["freed backward"].saved, 0, show=size),
        Claim(f"{label}freed over retained, loop of forward and backward", loop.median, 0.9, show=times,
              iqr=loop.iqr),
        Claim(f"{label}freed over retained, backward alone", backward.median, 0.9, show=times,
              iqr=backward.iqr),
    ], timing_data(timings) | {"memory": {name: vars(value) for name, value in found.items()}}


def growth_claims(options: Options, results: Results) -> Found:
    """Whether anything grows over ten thousand training steps."""
    found = machine.run_child("growth", steps=GROWTH_STEPS // 10 if options.small else GROWTH_STEPS)
    steps = f"{GROWTH_STEPS // 10 if options.small else GROWTH_STEPS:,} training steps: growth of "
    bars = {"live_bytes": ("live bytes", 0, size), "objects": ("Python's objects", OBJECT_NOISE, count),
            "rss_bytes": ("resident memory", RSS_NOISE, size)}
    claims = []
    for key, (what, bar, show) in bars.items():
        grown = None
        if "error" not in found and found["after"][key] is not None:
            grown = found["after"][key] - found["before"][key]
        claims.append(Claim(steps + what, grown, bar, show=show, reason=found.get("error", "")))
    return claims, found


def import_claims(options: Options, results: Results) -> Found:
    """What `import fastgrad` takes beyond `import numpy`, in fresh interpreters that alternate."""
    # NumPy's bytecode was compiled when it was installed; the warm-up has to be allowed to keep fastgrad's.
    environment = machine.child_environment()
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def start(statement: str) -> Callable[[], None]:
        command = [sys.executable, "-c", statement]
        return lambda: subprocess.run(command, check=True, env=environment) and None

    timings = compare({"numpy": start("import numpy"), "fastgrad": start("import fastgrad")},
                      repeats=5 if options.small else 15, control=start("pass"), min_seconds=0.0)
    extra = timings["fastgrad"].total.minus(timings["numpy"].total)
    claim = Claim("import fastgrad beyond import numpy", extra.median, 0.030, show=milliseconds, iqr=extra.iqr)
    return [claim], timing_data(timings)


def timing_data(timings: Mapping[str, Timing]) -> dict[str, Any]:
    """All timings for the JSON."""
    return {name: timing.as_dict() for name, timing in timings.items()}


def workload_claims(options: Options, results: Results) -> Found:
    """Small workloads together, and the large ones, against PyTorch; only where the graphs were measured."""
    if "graphs" not in results or "torch" not in installed_peers():
        return [], {}
    ratios = {name: found["ratios"] for name, found in results["graphs"].data.items()}
    mean = float(np.exp(np.mean([np.log(ratios[name]["torch"]["median"]) for name in SMALL_WORKLOADS])))
    claims = [Claim("small workloads, geometric mean: times faster than PyTorch", mean, 10.0, True, times)]
    if not options.small:
        claims += [faster(f"{name}: ", ratios[name], bar) for name, bar in LARGE_BARS.items()]
    return claims, {}


GROUPS: dict[str, Callable[[Options, Results], Found]] = {
    "chain": chain_claims, "deep": deep_claims, "freed": freed_claims, "growth": growth_claims,
    "import": import_claims, "workloads": workload_claims,
}


def run(options: Options, results: Results) -> Part:
    """Measure what the other parts have not, and hold every figure against its bar."""
    table = Table("Claims", ["figure", "measured", "", "bar", "verdict"])
    data: dict[str, Any] = {"claims": []}
    for group in progress(list(GROUPS), "claims"):
        claims, data[group] = GROUPS[group](options, results)
        table.rows += [claim.row() for claim in claims]
        table.notes += [f"{claim.name}: {claim.reason}" for claim in claims if claim.reason]
        data["claims"] += [claim.as_dict() for claim in claims]
    held = [claim["holds"] for claim in data["claims"]]
    table.notes.append("± is half the interquartile range over the rounds")
    table.notes.append(f"{held.count(True)} hold, {held.count(False)} fail, {held.count(None)} not measured")
    return Part("claims", tables=[table], data=data)
