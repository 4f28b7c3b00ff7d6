"""Dtypes: fourteen singletons, PyTorch's promotion rules as a table, and the default dtype.

A dtype has a *code*, its position in ``DTYPES``. The compiled floors keep the code in a byte and index their tables by
it, so the order below is a contract with them. The codes fall into four *categories* (bool < integer < float <
complex); most rules of promotion ask for the category first.

Three *levels* take part in a promotion: dimensioned tensors, then 0-dim tensors, then numbers. A lower level changes
the result only where its category is higher, so that ``float32 tensor * 2.0`` and ``float32 tensor * float64 scalar``
both stay float32.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeAlias

import numpy as np

__all__ = [
    "can_cast", "cdouble", "cfloat", "complex128", "complex64", "double", "dtype", "finfo", "float16", "float32",
    "float64", "get_default_dtype", "half", "iinfo", "int16", "int32", "int64", "int8", "long", "promote_types",
    "result_type", "set_default_dtype", "short", "uint16", "uint32", "uint64", "uint8",
]  # fmt: skip

# What arguments called `dtype` take; `as_dtype` says how each is read.
DtypeLike: TypeAlias = "dtype | np.dtype[Any] | type | str"
_Dtype: TypeAlias = "dtype"  # the class, where its own attribute of that name hides it

CATEGORY_BOOL, CATEGORY_INTEGER, CATEGORY_FLOAT, CATEGORY_COMPLEX = range(4)


class dtype:  # lower case as in PyTorch and NumPy
    """The element type of a tensor, one immutable object for each.

    It compares equal to the NumPy dtype and scalar type of the same elements, hashes as that NumPy dtype, and NumPy
    takes it wherever it takes a dtype. There are fourteen of them (``fastgrad.float32``, ``fastgrad.int64``, ...), and
    no other can be made.

    Attributes
    ----------
    name : str
        The name without the package's, ``"float32"``.
    code : int
        The position in the tables of the compiled floors, 0 to 13.
    numpy, dtype : numpy.dtype
        The NumPy dtype, in native byte order. Under the second name NumPy finds it.
    itemsize : int
        Bytes of one element.
    category : int
        0 bool, 1 integer, 2 float, 3 complex.
    is_floating_point, is_complex, is_signed : bool
        What the names say; a complex dtype is signed and not floating point.

    Examples
    --------
    >>> import numpy as np
    >>> import fastgrad as fg
    >>> fg.float32 == np.float32, fg.float32.itemsize, fg.complex64.to_real()
    (True, 4, fastgrad.float32)
    >>> np.zeros(2, dtype=fg.int8).dtype
    dtype('int8')
    """

    __slots__ = (
        "category",
        "code",
        "dtype",
        "is_complex",
        "is_floating_point",
        "is_signed",
        "itemsize",
        "name",
        "numpy",
    )

    name: str
    code: int
    numpy: np.dtype[Any]
    dtype: np.dtype[Any]
    itemsize: int
    category: int
    is_floating_point: bool
    is_complex: bool
    is_signed: bool

    def __init__(self) -> None:
        raise TypeError("cannot create 'fastgrad.dtype' instances; use fastgrad.float32, fastgrad.int64, ...")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"fastgrad.dtype is immutable: cannot set '{name}' of {self!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"fastgrad.dtype is immutable: cannot delete '{name}' of {self!r}")

    def to_real(self) -> _Dtype:
        """Return the dtype of the real part: itself unless complex."""
        return {12: float32, 13: float64}.get(self.code, self)

    def to_complex(self) -> _Dtype:
        """Return the complex dtype whose parts have this dtype.

        Returns
        -------
        dtype
            Itself if complex. complex64 for float16, since NumPy has no complex numbers of two halves.

        Raises
        ------
        RuntimeError
            For bool and integers.
        """
        if self.category < CATEGORY_FLOAT:
            raise RuntimeError(f"Unknown Complex ScalarType for {self!r}; only floating point dtypes have one")
        return complex128 if self.code in (11, 13) else complex64

    def __eq__(self, other: object) -> bool:
        if isinstance(other, dtype):
            return self is other
        if isinstance(other, np.dtype) or (isinstance(other, type) and issubclass(other, np.generic)):
            return bool(self.numpy == other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.numpy)

    def __repr__(self) -> str:
        return f"fastgrad.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


def _make(code: int, name: str) -> dtype:
    native = np.dtype(name)
    category = {"b": CATEGORY_BOOL, "i": CATEGORY_INTEGER, "u": CATEGORY_INTEGER, "f": CATEGORY_FLOAT}
    fields = {
        "name": name,
        "code": code,
        "numpy": native,
        "dtype": native,
        "itemsize": native.itemsize,
        "category": category.get(native.kind, CATEGORY_COMPLEX),
        "is_floating_point": native.kind == "f",
        "is_complex": native.kind == "c",
        "is_signed": native.kind in "ifc",
    }
    made = object.__new__(dtype)
    for field, value in fields.items():
        object.__setattr__(made, field, value)
    return made


bool_ = _make(0, "bool")
uint8 = _make(1, "uint8")
int8 = _make(2, "int8")
int16 = _make(3, "int16")
int32 = _make(4, "int32")
int64 = _make(5, "int64")
uint16 = _make(6, "uint16")
uint32 = _make(7, "uint32")
uint64 = _make(8, "uint64")
float16 = _make(9, "float16")
float32 = _make(10, "float32")
float64 = _make(11, "float64")
complex64 = _make(12, "complex64")
complex128 = _make(13, "complex128")

# fmt: off
DTYPES: tuple[dtype, ...] = (
    bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64, float16, float32, float64, complex64, complex128,
)
# fmt: on
N_DTYPES = len(DTYPES)

# PyTorch's short names. fastgrad exports bool_, int_ and float_ without the underscore; here it would hide builtins.
half, float_, double = float16, float32, float64
short, int_, long = int16, int32, int64
cfloat, cdouble = complex64, complex128

# What `dtype=` may be given. PyTorch reads Python's types as NumPy does: float is float64 and not the default dtype.
_BY_KEY: dict[Any, dtype] = {d.name: d for d in DTYPES}
_BY_KEY |= {d.numpy: d for d in DTYPES}
_BY_KEY |= {d.numpy.type: d for d in DTYPES}
_BY_KEY |= {bool: bool_, int: int64, float: float64, complex: complex128}
_BY_KIND = {(d.numpy.kind, d.itemsize): d for d in DTYPES}

_SUPPORTED = ", ".join(d.name for d in DTYPES)


def as_dtype(x: object) -> dtype:
    """Convert whatever names a dtype into the dtype.

    Parameters
    ----------
    x : dtype, numpy.dtype, type or str
        A dtype of fastgrad or NumPy, a NumPy scalar type, one of Python's ``bool``, ``int`` (int64), ``float``
        (float64), ``complex`` (complex128), or a name. A foreign byte order gives the native dtype.

    Returns
    -------
    dtype
        One of the fourteen.

    Raises
    ------
    TypeError
        If ``x`` names no dtype, or one that fastgrad does not have.
    """
    if type(x) is dtype:
        return x
    try:
        return _BY_KEY[x]
    except (KeyError, TypeError):  # TypeError: not hashable
        pass
    if isinstance(x, type) and issubclass(x, np.generic):  # np.longlong and other second names of a dtype
        x = np.dtype(x)
    if isinstance(x, np.dtype):
        found = _BY_KIND.get((x.kind, x.itemsize))
        if found is not None:
            return found
        raise TypeError(f"can't convert NumPy dtype {x}. The only supported types are: {_SUPPORTED}")
    given = f"{x!r}" if isinstance(x, str | type) else f"an object of type {type(x).__name__}"
    raise TypeError(f"dtype must be fastgrad.dtype, not {given}. The only supported types are: {_SUPPORTED}")


def _promoted_code(a: dtype, b: dtype) -> int:
    if a.category == b.category and a.category < CATEGORY_FLOAT:
        # Also for uint16, uint32 and uint64 against other integers, which PyTorch refuses: NumPy's answer, a type that
        # holds both, and float64 for uint64 with a signed one.
        return as_dtype(np.promote_types(a.numpy, b.numpy)).code
    low, high = (a, b) if a.category <= b.category else (b, a)
    if low.category < CATEGORY_FLOAT:
        return high.code  # a higher category wins whole: int64 with float16 is float16
    if high.category == CATEGORY_COMPLEX and 11 in (low.code, low.to_real().code, high.to_real().code):
        return complex128.code
    return max(low.code, high.code)


# PROMOTE[a * 14 + b] is the code of promote_types(DTYPES[a], DTYPES[b]).
PROMOTE: bytes = bytes(_promoted_code(a, b) for a in DTYPES for b in DTYPES)


def _combined_code(higher: dtype, lower: dtype) -> int:
    if lower.category <= higher.category:
        return higher.code
    if higher.category == CATEGORY_FLOAT:  # a complex scalar makes a float32 tensor complex64, whatever its own width
        return higher.to_complex().code
    return _promoted_code(higher, lower)


# COMBINE[a * 14 + b] is the code that an operand of code b leaves of the code a found on the levels above its own.
COMBINE: bytes = bytes(_combined_code(a, b) for a in DTYPES for b in DTYPES)

_default = float32  # replaced as a whole by set_default_dtype, so a reader in another thread sees one or the other


def get_default_dtype() -> dtype:
    """Return the dtype that Python floats get, float32 unless changed.

    Returns
    -------
    dtype
        A floating point dtype.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.get_default_dtype()
    fastgrad.float32
    """
    return _default


def set_default_dtype(d: object, /) -> None:
    """Set the dtype that Python floats and integers under ``exp`` or ``/`` get, for all threads.

    Parameters
    ----------
    d : dtype
        A floating point dtype of fastgrad or NumPy. Its complex partner becomes the default for complex numbers.

    Raises
    ------
    TypeError
        If ``d`` is not a floating point dtype, or is Python's ``float``, as in PyTorch.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.set_default_dtype(fg.float64)
    >>> fg.tensor([0.5]).dtype
    fastgrad.float64
    >>> fg.set_default_dtype(fg.float32)
    """
    global _default
    found = None if d is float else as_dtype(d)
    if found is None or not found.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, not {d!r}; use fastgrad.float64")
    _default = found


def default_complex() -> dtype:
    """Return the dtype that Python's complex numbers get: the complex partner of the default dtype."""
    return _default.to_complex()


def promote_types(type1: object, type2: object) -> dtype:
    """Return the dtype in which elements of two dtypes are computed together.

    Parameters
    ----------
    type1, type2 : dtype
        Dtypes of fastgrad or NumPy.

    Returns
    -------
    dtype
        The wider one within a category, else the one of the higher category; complex128 if either side needs doubles.

    Notes
    -----
    PyTorch refuses uint16, uint32 and uint64 with other integers, with bool, and with complex. With integers and bool
    the result here is NumPy's (int32 for uint16 with int8, float64 for uint64 with int64), with complex it is complex.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.promote_types(fg.int64, fg.float16), fg.promote_types(fg.float64, fg.complex64)
    (fastgrad.float16, fastgrad.complex128)
    """
    return DTYPES[PROMOTE[as_dtype(type1).code * N_DTYPES + as_dtype(type2).code]]


def can_cast(from_: object, to: object) -> bool:
    """Tell whether an in-place operation may write results of one dtype into another.

    Parameters
    ----------
    from_, to : dtype
        Dtypes of fastgrad or NumPy.

    Returns
    -------
    bool
        False where the category would fall (complex to float, float to integer, anything to bool), True otherwise,
        whatever the widths.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.can_cast(fg.float64, fg.float16), fg.can_cast(fg.float64, fg.int64)
    (True, False)
    """
    return as_dtype(from_).category <= as_dtype(to).category


def number_code(x: object) -> int:
    """Return the code a number has in a promotion, on its level below every tensor.

    NumPy's scalars count as Python numbers of their kind: ``np.float64(2)`` does not widen a float32 tensor.
    """
    if isinstance(x, bool | np.bool_):
        return bool_.code
    if isinstance(x, int | np.integer):
        return int64.code
    if isinstance(x, float | np.floating):
        return _default.code
    if isinstance(x, complex | np.complexfloating):
        return default_complex().code
    raise TypeError(f"expected a tensor or a number, not {type(x).__name__}")


def result_type(*operands: Any) -> dtype:
    """Return the dtype that an arithmetic operation on the operands gives.

    Parameters
    ----------
    *operands : Tensor, dtype or number
        At least one. A dtype counts as a tensor with dimensions.

    Returns
    -------
    dtype
        By PyTorch's three levels: a 0-dim tensor, and below it a number, counts only where its category is higher.

    Raises
    ------
    TypeError
        If there is no operand, or one is none of these.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.result_type(fg.ones(3), 2), fg.result_type(fg.tensor([1, 2]), 2.5)
    (fastgrad.float32, fastgrad.float32)
    >>> fg.result_type(fg.ones(3), fg.tensor(1.0, dtype=fg.float64))
    fastgrad.float32
    """
    if not operands:
        raise TypeError("result_type() needs at least one operand")
    levels: list[int | None] = [None, None, None]  # codes of dimensioned tensors, 0-dim tensors, numbers
    for operand in operands:
        level, code = _level_and_code(operand)
        present = levels[level]
        levels[level] = code if present is None else PROMOTE[present * N_DTYPES + code]
    present_codes = [code for code in levels if code is not None]
    result = present_codes[0]
    for code in present_codes[1:]:
        result = COMBINE[result * N_DTYPES + code]
    return DTYPES[result]


def _level_and_code(operand: Any) -> tuple[int, int]:
    if isinstance(operand, dtype | np.dtype):
        return 0, as_dtype(operand).code
    if hasattr(operand, "ndim") and not isinstance(operand, np.generic):
        return (0 if operand.ndim else 1), as_dtype(operand.dtype).code
    return 2, number_code(operand)


class finfo:  # lower case as in PyTorch and NumPy
    """Limits of a floating point dtype.

    Parameters
    ----------
    type : dtype, optional
        Floating point or complex (then of its parts); the default dtype if not given.

    Attributes
    ----------
    bits : int
        Bits of one number.
    eps, max, min, tiny, smallest_normal : float
        As ``numpy.finfo``.
    resolution : float
        The power of ten that the decimal digits resolve.
    dtype : str
        The name of the dtype, as in PyTorch.

    Raises
    ------
    TypeError
        For bool and integers.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.finfo(fg.float64).eps == 2.0**-52
    True
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: object = None) -> None:
        given = _default if type is None else as_dtype(type)
        if given.category < CATEGORY_FLOAT:
            raise TypeError(f"finfo() requires a floating point input type, not {given!r}. Use fastgrad.iinfo")
        real = given.to_real()
        info: Any = np.finfo(real.numpy)
        self.bits = 8 * real.itemsize
        self.dtype = real.name
        self.eps = float(info.eps)
        self.max = float(info.max)
        self.min = float(info.min)
        self.resolution = float(f"1e-{info.precision}")
        self.smallest_normal = float(info.smallest_normal)
        self.tiny = self.smallest_normal

    def __eq__(self, other: object) -> bool:
        return self.dtype == other.dtype if isinstance(other, finfo) else NotImplemented

    def __hash__(self) -> int:
        return hash(("finfo", self.dtype))

    def __repr__(self) -> str:
        numbers = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        shown = ", ".join(f"{name}={getattr(self, name):g}" for name in numbers)
        return f"finfo({shown}, dtype={self.dtype})"


class iinfo:  # lower case as in PyTorch and NumPy
    """Limits of an integer dtype.

    Parameters
    ----------
    type : dtype
        An integer dtype.

    Attributes
    ----------
    bits, min, max : int
        As ``numpy.iinfo``.
    dtype : str
        The name of the dtype, as in PyTorch.

    Raises
    ------
    TypeError
        For every other dtype.

    Examples
    --------
    >>> import fastgrad as fg
    >>> fg.iinfo(fg.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: object) -> None:
        given = as_dtype(type)
        if given.category == CATEGORY_BOOL:
            raise TypeError("fastgrad.bool is not supported by fastgrad.iinfo")
        if given.category != CATEGORY_INTEGER:
            raise TypeError(f"iinfo() requires an integer input type, not {given!r}. Use fastgrad.finfo")
        info = np.iinfo(given.numpy)
        self.bits = 8 * given.itemsize
        self.dtype = given.name
        self.max = int(info.max)
        self.min = int(info.min)

    def __eq__(self, other: object) -> bool:
        return self.dtype == other.dtype if isinstance(other, iinfo) else NotImplemented

    def __hash__(self) -> int:
        return hash(("iinfo", self.dtype))

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
