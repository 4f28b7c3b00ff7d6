"""The main job: the founding example, freeing against retaining, and a real fit; with `--compare` also the peers."""
from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import (
    bench_graphs,
    bench_memory,
    bench_operators,
    bench_overhead,
    bench_training,
    claims,
    founding,
    machine,
)
from bench.libraries import missing_peers
from bench.report import Options, Part
from bench.timing import Stopwatch

DEFAULT_BUDGET = 2 << 30  # bytes
SMALL_BUDGET = 256 << 20
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

Results = dict[str, Part]
MAIN_PARTS = ("founding", "freeing", "digits")
PARTS: dict[str, Callable[[Options, Results], Part]] = {
    "founding": lambda options, results: founding.run(options),
    "freeing": lambda options, results: bench_memory.run(options),
    "digits": lambda options, results: bench_training.run(options),
    "overhead": lambda options, results: bench_overhead.run(options),
    "graphs": lambda options, results: bench_graphs.run(options),
    "operators": lambda options, results: bench_operators.run(options),
    "claims": claims.run,
}


def nbytes(text: str) -> int:
    """Read a number of bytes with an optional K, M or G: `1.5G`."""
    unit = UNITS.get(text[-1:].upper())
    return int(float(text[:-1]) * unit) if unit else int(text)


def parser() -> argparse.ArgumentParser:
    """Build the command line."""
    made = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    made.add_argument("--compare", action="store_true",
                      help="columns for NumPy, PyTorch and HIPS autograd where installed, and the claims")
    made.add_argument("--small", action="store_true", help="a run of seconds, with fewer and smaller cases")
    made.add_argument("--only", action="append", choices=PARTS, metavar="PART",
                      help=f"one part, may be given several times: {', '.join(PARTS)}")
    made.add_argument("--out", type=Path, default=Path(__file__).parent / "results", metavar="FOLDER",
                      help="where results.json and the picture go (default: bench/results)")
    made.add_argument("--json", action="store_true", help="JSON on the output, in place of tables")
    made.add_argument("--budget", type=nbytes, metavar="BYTES",
                      help="what one graph may take, as 500M or 4G (default: 2G, or half of what is available)")
    made.add_argument("--depth-max", type=int, default=10**6, metavar="N",
                      help="deepest graph of the grid (default: 10^6)")
    return made


def options_of(arguments: argparse.Namespace) -> Options:
    """Turn the command line into options; the budget never exceeds half of the memory at hand unless asked to."""
    budget = arguments.budget
    if budget is None:
        budget = min(SMALL_BUDGET if arguments.small else DEFAULT_BUDGET, (machine.available_bytes() or 4 << 30) // 2)
    return Options(arguments.compare, arguments.small, budget, arguments.depth_max, arguments.out)


def header(options: Options) -> str:
    """Say what runs where, and what is missing."""
    about = machine.describe()
    lines = [f"fastgrad {about['versions']['fastgrad']}, NumPy {about['versions']['numpy']}, "
             f"Python {about['versions']['python']}; {about['processor']}, {about['cores']} cores, one thread used"]
    if options.compare and missing_peers():
        lines.append(f"not compared with {', '.join(missing_peers())}: not installed (pip install '.[peers]')")
    kernels = [name for name in machine.BLAS_VARIABLES[:2] if name in os.environ]
    if kernels:
        lines.append(f"{' and '.join(kernels)} set: NumPy's products may use kernels made for another processor")
    return "\n".join(lines)


def chosen(arguments: argparse.Namespace) -> list[str]:
    """Parts to run, in their order; the claims come last because they reuse what others measured."""
    if arguments.only:
        return [name for name in PARTS if name in arguments.only]
    return list(PARTS) if arguments.compare else list(MAIN_PARTS)


def write_json(results: Results, options: Options, seconds: float) -> dict[str, Any]:
    """Write everything that was measured; returns it."""
    settings = {"compare": options.compare, "small": options.small, "budget": options.budget,
                "depth_max": options.depth_max}
    found = {"machine": machine.describe(), "options": settings, "seconds": seconds,
             "parts": {name: part.data for name, part in results.items()}}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_text(json.dumps(found, indent=1) + "\n")
    return found


def main(argv: list[str] | None = None) -> int:
    """Run the chosen parts, print as they finish, and write the results."""
    arguments = parser().parse_args(argv)
    options = options_of(arguments)

    def show(text: str) -> None:
        if not arguments.json:
            print(text, end="\n\n", flush=True)

    watch = Stopwatch()
    results: Results = {}
    show(header(options))
    for name in chosen(arguments):
        results[name] = PARTS[name](options, results)
        show(str(results[name]))
    found = write_json(results, options, watch.elapsed())
    show(f"{watch.elapsed():.0f} s; results.json and pictures are in {arguments.out}")
    if arguments.json:
        print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
