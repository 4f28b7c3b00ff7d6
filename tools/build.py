"""The build of the extension modules: what is compiled, with which flags, and what to say when that cannot be.

Environment variables
---------------------
FASTGRAD_DEBUG=1          compiles in the invariants that are too slow for a release
FASTGRAD_SANITIZE=address adds the address sanitizer (any list that the compiler's -fsanitize= takes)
FASTGRAD_WERROR=1         turns warnings of Cython and of the C compiler into errors
"""
from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from setuptools import Extension
from setuptools.command.build_ext import build_ext
from setuptools.errors import PlatformError

from tools.declarations import DeclarationError, read_declarations

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path("src")                    # relative paths: they end up in the sdist's list and in the generated C
PACKAGE = SOURCE / "fastgrad"
FUSED_HEADER = PACKAGE / "_fused.h"
GENERATED = Path("build") / "cython"    # the C that Cython writes stays out of the source tree

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "embedsignature": True,
}

# One target for all of NumPy 2: an extension compiled against any of them runs on all of them.
MACROS: list[tuple[str, str | None]] = [
    ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
    ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION"),
]

# Nothing here may change a result: no reassociation, no contraction of products and sums, NaN and inf as in IEEE 754.
# What is given up is errno and the trap flags, which nobody reads and which keep loops from being vectorised.
# Objects are seen through more than one struct (a Tensor by its class and by its C fields, as CPython's own are), which
# the rules of strict aliasing do not allow.
UNIX_COMPILE = [
    "-O3", "-fno-strict-aliasing", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fvisibility=hidden",
]
UNIX_WARNINGS = [
    "-Wall",
    "-Wextra",
    # Cython's own code, not ours, makes these: slots take parameters they ignore, method tables cast functions,
    # type objects and module definitions are initialised up to the last field that matters.
    "-Wno-unused-parameter",
    "-Wno-cast-function-type",
    "-Wno-missing-field-initializers",
]
MSVC_COMPILE = ["/O2", "/fp:precise", "/W3"]

NO_COMPILER = (
    "fastgrad needs a C compiler, and {command!r} is not one that works: install gcc or clang with the C library's "
    "headers (Debian, Ubuntu: apt install build-essential; Fedora: dnf install gcc; Alpine: apk add build-base; macOS: "
    "xcode-select --install), or set CC"
)
NO_MSVC = (
    "fastgrad needs a C compiler: install Microsoft's C++ Build Tools "
    "(winget install Microsoft.VisualStudio.2022.BuildTools)"
)
NO_HEADERS = (
    "fastgrad needs the headers of Python {version} (Python.h): install them "
    "(Debian, Ubuntu: apt install python{version}-dev; Fedora: dnf install python3-devel; Alpine: apk add python3-dev)"
)


def flag(name: str) -> bool:
    """Whether an environment variable asks for something: set, and neither empty nor 0."""
    return os.environ.get(name, "") not in ("", "0")


def extensions() -> list[Extension]:
    """One extension for every ``.pyx`` of the package, subpackages included."""
    found = []
    for path in sorted((ROOT / PACKAGE).rglob("*.pyx")):
        relative = path.relative_to(ROOT)
        module = ".".join(relative.relative_to(SOURCE).with_suffix("").parts)
        found.append(Extension(module, [relative.as_posix()]))
    return found


def write_if_changed(path: Path, text: str) -> bool:
    """Write, and say so; where nothing changed the file's time is left alone, so that nothing is rebuilt for it."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return True


def generate() -> None:
    """Write the fused loops that the operator declarations ask for."""
    from tools.emit import emit

    try:
        text = emit(read_declarations(sorted((PACKAGE / "ops").glob("*.py"))))
    except (DeclarationError, ValueError) as error:
        raise SystemExit(f"fastgrad: {error}") from None
    write_if_changed(FUSED_HEADER, text)


class BuildExtensions(build_ext):
    """Generates the loops, runs Cython, compiles."""

    def finalize_options(self) -> None:
        super().finalize_options()
        if self.parallel is None:
            self.parallel = os.cpu_count() or 1

    def run(self) -> None:
        os.chdir(ROOT)
        super().run()

    def build_extensions(self) -> None:
        check_compiler(self.compiler)
        generate()
        self.configure()
        self.cythonize()
        super().build_extensions()

    def configure(self) -> None:
        """Give every extension its flags, and a file to depend on that changes when they do."""
        import Cython
        import numpy

        debug, sanitize = flag("FASTGRAD_DEBUG"), os.environ.get("FASTGRAD_SANITIZE", "")
        compile_args, link_args = flags(self.compiler.compiler_type, debug, sanitize)
        macros = [*MACROS, ("FASTGRAD_DEBUG", "1" if debug else "0")]
        record = GENERATED.parent / f"flags-{sysconfig.get_config_var('SOABI') or sys.implementation.cache_tag}.txt"
        settings = [compile_args, link_args, macros, DIRECTIVES, Cython.__version__, numpy.__version__]
        if write_if_changed(record, "".join(f"{setting}\n" for setting in settings)):
            self.force = True   # Cython compares times only, and would keep what it made under other directives
        # Cython adds the headers that a module names itself; these may also be included by others. The fused loops are
        # left to it, so that an edit of one does not rebuild everything.
        headers = [path.as_posix() for path in sorted(PACKAGE.rglob("*.h")) if path != FUSED_HEADER]
        for extension in self.extensions:
            extension.include_dirs += [PACKAGE.as_posix(), numpy.get_include()]
            extension.define_macros += macros
            extension.extra_compile_args += compile_args
            extension.extra_link_args += link_args
            extension.depends += [*headers, record.as_posix()]

    def cythonize(self) -> None:
        """Replace every ``.pyx`` by the C made from it; what a ``.pxd`` includes is followed by Cython."""
        from Cython.Build import cythonize
        from Cython.Compiler import Options
        from Cython.Compiler.Errors import CompileError

        Options.warning_errors = flag("FASTGRAD_WERROR")
        try:
            made = cythonize(
                self.extensions, build_dir=str(GENERATED), compiler_directives=DIRECTIVES, include_path=[str(SOURCE)],
                quiet=True, force=bool(self.force),
            )
        except CompileError as error:   # Cython has shown file, line and reason above
            raise SystemExit(f"fastgrad: Cython cannot compile {error}") from None
        # Cython gives copies, which lack what setuptools has noted on ours.
        copies = {extension.name: extension for extension in made}
        for extension in self.extensions:
            extension.sources = copies[extension.name].sources
            extension.depends = copies[extension.name].depends


def flags(compiler_type: str, debug: bool, sanitize: str) -> tuple[list[str], list[str]]:
    """Arguments for the compiler and for the linker."""
    if compiler_type == "msvc":
        return [*MSVC_COMPILE, *(["/WX"] if flag("FASTGRAD_WERROR") else [])], []
    compile_args = [*UNIX_COMPILE, *UNIX_WARNINGS]
    link_args = []
    if flag("FASTGRAD_WERROR"):
        compile_args.append("-Werror")
    if sanitize:
        compile_args += [f"-fsanitize={sanitize}", "-fno-omit-frame-pointer"]
        link_args.append(f"-fsanitize={sanitize}")
    if debug or sanitize:
        compile_args.append("-g")
    else:
        compile_args.append("-g0")
        if sys.platform.startswith("linux"):
            link_args.append("-s")
    return compile_args, link_args


def check_compiler(compiler: Any) -> None:
    """End with one line that says what to install, where a C compiler or Python's headers are missing."""
    if compiler.compiler_type == "msvc":
        try:
            compiler.initialize()
        except PlatformError:
            raise SystemExit(NO_MSVC) from None
    else:
        command = list(compiler.compiler_so)
        if not compiles(command):
            raise SystemExit(NO_COMPILER.format(command=command[0]))
    # build_ext has put all folders there in which this Python's headers can be.
    if not any((Path(folder) / "Python.h").exists() for folder in compiler.include_dirs):
        raise SystemExit(NO_HEADERS.format(version="{}.{}".format(*sys.version_info)))


def compiles(command: list[str]) -> bool:
    """Whether a C compiler is there, and with it the C library's headers (some systems package them apart)."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "try.c"
        source.write_text("#include <math.h>\n#include <stdlib.h>\nint answer(void) { return 42; }\n", encoding="ascii")
        try:
            done = subprocess.run(
                [*command, "-c", str(source), "-o", str(source.with_suffix(".o"))],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
        except OSError:     # no such program, or not one that can be run
            return False
        return done.returncode == 0
