"""The machine and the process: what a result was measured on, memory as the system sees it, child processes."""
from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("fastgrad", "numpy", "torch", "autograd", "scikit-learn", "matplotlib", "pytest-benchmark")
BLAS_VARIABLES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS")


def rss_bytes() -> int | None:
    """Resident memory of this process in bytes; None where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def available_bytes() -> int | None:
    """Memory that can be had without swapping, in bytes; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    free = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
    except (OSError, ValueError):  # no control group, or the limit reads "max"
        return free
    return min(free, limit - used)


def versions() -> dict[str, str]:
    """Installed versions of what takes part."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def processor() -> str:
    """Name of the processor model."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def blas_kernels() -> list[dict[str, Any]] | str:
    """Which BLAS is loaded and for which processor its kernels were chosen, as threadpoolctl sees it."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return "unknown: threadpoolctl is not installed"
    return [{"library": Path(info["filepath"]).name, "version": info["version"], "threads": info["num_threads"],
             "kernel": info.get("architecture")} for info in threadpool_info() if info["user_api"] == "blas"]


def describe() -> dict[str, Any]:
    """Describe the machine, the versions and the BLAS, for the JSON."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "available_bytes": available_bytes(),
        "versions": versions(),
        "blas": blas_kernels(),
        "blas_environment": {name: os.environ[name] for name in BLAS_VARIABLES if name in os.environ},
    }


def child_environment() -> dict[str, str]:
    """Return the environment for a child that has to find `bench`, from whatever folder this process was started."""
    path = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path)}


def run_child(task: str, **arguments: Any) -> dict[str, Any]:
    """Run one task of `bench.child` in a process of its own.

    Returns
    -------
    dict
        The task's result, or `{"error": ...}` with the last line the child wrote, or the signal that ended it.
    """
    command = [sys.executable, "-m", "bench.child", task, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=child_environment(), check=False)
    if done.returncode == 0:
        return json.loads(done.stdout)
    lines = done.stderr.strip().splitlines()
    return {"error": lines[-1] if lines else f"exit status {done.returncode}"}
