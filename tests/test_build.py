"""The build: reading declarations without importing them, and what is said when something is missing."""
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("setuptools")

from tools.build import ROOT, check_compiler, extensions, flags, write_if_changed
from tools.declarations import Declaration, DeclarationError, read_declarations

MUL = """\
operator("mul(input, other)",
    forward=np.multiply,
    fused=dict(forward="input * other", input="g * other", other="g * input"))
"""


@pytest.fixture
def read(tmp_path):
    """Reads declarations from text."""

    def read(*texts):
        paths = []
        for number, text in enumerate(texts):
            paths.append(tmp_path / f"ops{number}.py")
            paths[-1].write_text(text, encoding="utf-8")
        return read_declarations(paths)

    return read


def test_declaration_with_dict_call(read):
    assert read(MUL) == [
        Declaration(
            "mul", ("input", "other"), {"forward": "input * other", "input": "g * other", "other": "g * input"}
        )
    ]


def test_declaration_with_dict_literal(read):
    (tanh,) = read("""operator("tanh(input)", fused={"forward": "tanh(input)", "input": "g - g * result * result"})""")
    assert tanh.fused == {"forward": "tanh(input)", "input": "g - g * result * result"}


def test_adjacent_literals_are_one(read):
    (declaration,) = read("""operator("f(input)", fused=dict(forward="a"\n    " + b"))""")
    assert declaration.fused == {"forward": "a + b"}


def test_declarations_without_fused_are_left_out(read):
    assert read("""operator("sum(input, dim=None, *, keepdim=False)", forward=sum_forward)""") == []


def test_nothing_is_imported_or_run(read):
    assert [d.name for d in read("import no_such_module\n1 / 0\n" + MUL)] == ["mul"]


def test_order_is_that_of_the_files(read):
    second = MUL.replace("mul(", "div(")
    assert [d.name for d in read(MUL.replace("mul(", "sub(") + MUL, second)] == ["sub", "mul", "div"]


def test_arguments_default_to_input_and_other(read):
    (clamp,) = read("""operator("clamp(input, min=None, max=None)", fused=dict(forward="input"))""")
    assert clamp.arguments == ("input",)


def test_tensors_names_the_arguments(read):
    (lerp,) = read("""operator("lerp(input, end, weight)", tensors="input end weight", fused=dict(end="g * weight"))""")
    assert lerp.arguments == ("input", "end", "weight")


@pytest.mark.parametrize(
    ("text", "place", "phrase"),
    [
        ("operator(NAME,\n fused=dict(forward='x'))", ":1:", "must be a string literal, not NAME"),
        ("operator('mul(input)', fused=FUSED)", ":1:", "mul: fused= must be written out"),
        ("operator('mul(input)',\n fused=dict(\n  forward=f'{x}'))", ":3:", "mul: fused 'forward' must be a string"),
        ("operator('mul(input)', fused=dict(forward='x' * 2))", ":1:", "must be a string literal, not 'x' * 2"),
        ("operator('mul(input)', fused=dict(**MORE))", ":1:", "no ** in it"),
        ("operator('mul(input)', fused={**MORE})", ":1:", "no ** in it"),
        ("operator('mul(input)', fused={KEY: 'x'})", ":1:", "a key of fused= must be a string literal, not KEY"),
        ("operator('mul(input)', fused={'input': 'g', 'input': 'g'})", ":1:", "given twice"),
        ("operator('mul(input)', fused=dict(other='g'))", ":1:", "'other' is neither 'forward' nor a tensor argument"),
        ("operator('mul input', fused=dict(forward='x'))", ":1:", "is not a signature"),
        ("operator('mul(input): pass\\nx(', fused=dict(forward='x'))", ":1:", "is not a signature"),
        ("operator(fused=dict(forward='x'))", ":1:", "needs its signature first"),
        ("operator('f(input)', tensors='z', fused=dict(forward='x'))", ":1:", "names 'z', which 'f(input)' has not"),
        ("operator('f(input)', tensors=T, fused=dict(forward='x'))", ":1:", "tensors= must be a string literal, not T"),
        ("\n\noperator(", ":3:", "never closed"),
        (MUL + MUL, ":4:", "mul is declared already at"),
    ],
)
def test_errors_name_file_and_line(read, text, place, phrase):
    with pytest.raises(DeclarationError) as info:
        read(text)
    assert f"ops0.py{place}" in str(info.value)
    assert phrase in str(info.value)


def test_every_module_is_found():
    names = {extension.name: extension.sources for extension in extensions()}
    expected = {path.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("*.pyx")}
    assert {source for sources in names.values() for source in sources} == expected
    for name, (source,) in names.items():
        assert source == "src/" + name.replace(".", "/") + ".pyx"


def test_same_text_is_not_written_again(tmp_path):
    path = tmp_path / "made.h"
    assert write_if_changed(path, "one\n")
    os.utime(path, (1, 1))
    assert not write_if_changed(path, "one\n")
    assert path.stat().st_mtime == 1
    assert write_if_changed(path, "two\n")
    assert path.stat().st_mtime != 1
    assert path.read_text(encoding="utf-8") == "two\n"


def test_flags_keep_ieee_results():
    for compiler in ("unix", "msvc"):
        compile_args, _ = flags(compiler, debug=False, sanitize="")
        assert not {"-ffast-math", "-Ofast", "/fp:fast"} & set(compile_args)
    assert "-ffp-contract=off" in flags("unix", debug=False, sanitize="")[0]


def test_sanitizer_is_compiled_and_linked():
    compile_args, link_args = flags("unix", debug=True, sanitize="address")
    assert "-fsanitize=address" in compile_args
    assert "-fsanitize=address" in link_args
    assert "-s" not in link_args


def test_missing_compiler_is_one_line(tmp_path):
    compiler = SimpleNamespace(compiler_type="unix", compiler_so=[str(tmp_path / "cc")], include_dirs=[])
    with pytest.raises(SystemExit) as info:
        check_compiler(compiler)
    assert "needs a C compiler" in info.value.code
    assert "build-essential" in info.value.code
    assert "\n" not in info.value.code


@pytest.mark.skipif(os.name != "posix", reason="fakes the compiler with /bin/true")
def test_missing_python_header_is_one_line(tmp_path):
    compiler = SimpleNamespace(compiler_type="unix", compiler_so=["true"], include_dirs=[str(tmp_path)])
    with pytest.raises(SystemExit) as info:
        check_compiler(compiler)
    assert "Python.h" in info.value.code
    assert "python{}.{}-dev".format(*sys.version_info) in info.value.code
    assert "\n" not in info.value.code
    (tmp_path / "Python.h").touch()
    check_compiler(compiler)


@pytest.mark.skipif(os.name != "posix", reason="CC is for Unix compilers")
def test_build_without_a_compiler_ends_without_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", "--build-lib", str(tmp_path)],
        cwd=ROOT, env={**os.environ, "CC": str(tmp_path / "cc")}, capture_output=True, text=True, timeout=120,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("fastgrad needs a C compiler")


def test_version_is_the_packages():
    fastgrad = pytest.importorskip("fastgrad")
    text = Path(ROOT, "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{fastgrad.__version__}"' in text
