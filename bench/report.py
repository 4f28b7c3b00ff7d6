"""What a part of the benchmark hands back, and how it is shown: tables, units, a progress bar."""
from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

Item = TypeVar("Item")
BAR_WIDTH = 30  # characters


@dataclass(frozen=True)
class Options:
    """What the command line asked for.

    Attributes
    ----------
    compare : bool
        Add columns for the other libraries.
    small : bool
        Fewer, smaller cases, for a run of seconds.
    budget : int
        Bytes that a single graph may take.
    depth_max : int
        Deepest graph.
    out : Path
        Folder for JSON and pictures.
    """

    compare: bool = False
    small: bool = False
    budget: int = 2 << 30
    depth_max: int = 10**6
    out: Path = Path("results")


@dataclass
class Table:
    """Rows of text under a title, with notes below."""

    title: str
    header: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Columns aligned: the first to the left, the others to the right."""
        cells = [list(self.header), *map(list, self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.header))]

        def line(row: Sequence[str]) -> str:
            aligned = [row[0].ljust(widths[0])]
            aligned += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            return "  ".join(aligned).rstrip()

        ruler = "  ".join("-" * width for width in widths)
        return "\n".join([self.title, line(cells[0]), ruler, *map(line, cells[1:]), *self.notes])


@dataclass
class Part:
    """What one part of the benchmark found: for people (text, tables) and for programs (data)."""

    name: str
    text: str = ""
    tables: list[Table] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)

    def __str__(self) -> str:
        """Everything for people, one block after the other."""
        written = [f"wrote {', '.join(path.name for path in self.files)}"] if self.files else []
        return "\n\n".join(block for block in [self.text, *map(str, self.tables), *written] if block)


def duration(seconds: float) -> str:
    """Seconds with three digits and a unit: `12.3 µs`."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= scale:
            return f"{digits(seconds / scale)} {unit}"
    return f"{digits(seconds * 1e9)} ns"


def digits(value: float) -> str:
    """Three significant digits, without an exponent."""
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{decimals}f}"


def size(nbytes: float) -> str:
    """Bytes with a decimal unit: `160 MB`."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(nbytes) >= scale:
            return f"{digits(nbytes / scale)} {unit}"
    return f"{nbytes:.0f} B"


def installed(name: str) -> bool:
    """Whether a package can be imported, without importing it."""
    return importlib.util.find_spec(name) is not None


def progress(items: Sequence[Item], label: str) -> Iterator[Item]:
    """Iterate with a bar on the terminal; without one where the error stream is a file or a pipe."""
    if not sys.stderr.isatty():
        yield from items
    elif installed("tqdm"):
        from tqdm import tqdm
        yield from tqdm(items, desc=label, leave=False)
    else:
        yield from _plain_bar(items, label)


def _plain_bar(items: Sequence[Item], label: str) -> Iterator[Item]:
    try:
        for i, item in enumerate(items):
            done = BAR_WIDTH * i // len(items)
            sys.stderr.write(f"\r{label}: [{'#' * done}{'.' * (BAR_WIDTH - done)}] {i}/{len(items)}")
            sys.stderr.flush()
            yield item
    finally:
        sys.stderr.write("\r\x1b[K")  # carriage return, erase the line: the tables take its place
        sys.stderr.flush()
