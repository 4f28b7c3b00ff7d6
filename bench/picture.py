"""The picture: memory over time, through forward and backward, freed and retained."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

COLORS = {"freed": "#0072b2", "retained": "#d55e00"}  # told apart by colour-blind readers (Okabe and Ito)
LABELS = {"freed": "freed: backward()", "retained": "retained: backward(retain_graph=True)"}
INK = "#333333"
Curve = Sequence[tuple[float, int]]


def split(curve: Curve) -> tuple[np.ndarray, np.ndarray, int]:
    """Milliseconds, megabytes, and the index at which backward begins: the last point on the way forward."""
    seconds, nbytes = np.array(curve, dtype=float).T
    n_hooks = (len(curve) - 4) // 2  # start, n forward, end of forward, n backward, end of backward, end of graph
    return seconds * 1e3, nbytes / 1e6, n_hooks + 1


def draw_curve(axes: Axes, name: str, curve: Curve) -> None:
    """One curve, with a mark where backward begins and one where the graph is deleted."""
    ms, megabytes, turn = split(curve)
    axes.plot(ms, megabytes, color=COLORS[name], linewidth=2, solid_joinstyle="round")
    axes.plot(ms[turn], megabytes[turn], "o", color=COLORS[name], markersize=6)
    axes.plot(ms[-2], megabytes[-2], "s", color=COLORS[name], markersize=5, clip_on=False, zorder=3)


def label_curves(axes: Axes, curves: Mapping[str, Curve]) -> None:
    """Names beside the lines instead of a legend."""
    ms, megabytes, turn = split(curves["retained"])
    middle = (turn + len(ms) - 2) // 2
    axes.annotate(LABELS["retained"], (ms[middle], megabytes[middle]), xytext=(0, 8), textcoords="offset points",
                  ha="center", va="bottom", color=COLORS["retained"], fontweight="bold")
    ms, megabytes, turn = split(curves["freed"])
    middle = turn + (len(ms) - 2 - turn) * 3 // 5
    axes.annotate(LABELS["freed"], (ms[middle], megabytes[middle]), xytext=(-16, -4), textcoords="offset points",
                  ha="right", va="center", color=COLORS["freed"], fontweight="bold")
    axes.annotate("forward ends,\nbackward begins", (ms[turn], megabytes[turn]), xytext=(-14, 0),
                  textcoords="offset points", ha="right", va="center", color=INK)
    ms, megabytes, _ = split(curves["retained"])
    axes.annotate("graph deleted", ((ms[-2] + ms[-1]) / 2, megabytes[-2] / 2), xytext=(10, 0),
                  textcoords="offset points", ha="left", va="center", color=INK)


def draw(curves: Mapping[str, Curve], depth: int, elements: int, out: Path) -> list[Path]:
    """Draw both curves into one pair of axes.

    Parameters
    ----------
    curves : mapping of str to sequence of (seconds, bytes)
        "freed" and "retained", as `bench_memory.trace` records them.
    depth, elements : int
        The graph, for the title.
    out : Path
        Folder to write into.

    Returns
    -------
    list of Path
        The SVG and the PNG file.
    """
    style = {"font.size": 10, "axes.edgecolor": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
             "svg.fonttype": "none", "svg.hashsalt": "fastgrad"}
    with plt.rc_context(style):
        figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
        for name, curve in curves.items():
            draw_curve(axes, name, curve)
        label_curves(axes, curves)
        figure.suptitle("Without retain_graph, memory is handed back while backward runs", x=0.01, ha="left",
                        fontsize=12, fontweight="bold", color=INK)
        axes.set_title(f"Chain y = y * w of {depth:,} nodes, {elements:,} float64 elements each", loc="left",
                       fontsize=10, color=INK)
        axes.set_xlabel("time since the start of forward (ms)")
        axes.set_ylabel("live tensor memory (MB)")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.set_xlim(left=0, right=1.2 * max(curve[-1][0] for curve in curves.values()) * 1e3)
        axes.set_ylim(bottom=0, top=1.15 * max(nbytes for curve in curves.values() for _, nbytes in curve) / 1e6)
        out.mkdir(parents=True, exist_ok=True)
        files = [out / "memory.svg", out / "memory.png"]
        for file in files:
            figure.savefig(file, dpi=150)
        plt.close(figure)
    return files
