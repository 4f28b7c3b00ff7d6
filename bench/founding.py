"""The founding question: why does a second backward without `retain_graph` sometimes work?"""
from __future__ import annotations

from bench.libraries import fg
from bench.report import Options, Part


def add_twice() -> list[str]:
    """Differentiate `y = x + 2` twice: addition saves nothing, so the first pass freed nothing the second needs."""
    x = fg.ones(2, 2, requires_grad=True)
    y = x + 2
    y.backward(fg.ones(2, 2))
    y.backward(fg.ones(2, 2))
    return x.grad.tolist()


def square_twice() -> str:
    """Differentiate `y = x * x` twice: multiplication saves its operands, and the first pass has let go of them."""
    x = fg.ones(2, 2, requires_grad=True)
    y = x * x
    y.backward(fg.ones(2, 2))
    try:
        y.backward(fg.ones(2, 2))
    except RuntimeError as error:
        return str(error)
    raise AssertionError("the second backward through x * x was accepted, although its saved tensors were freed")


def run(options: Options) -> Part:
    """Show both ways of the example."""
    gradient = add_twice()
    error = square_twice()
    text = (
        "The founding example: backward twice, without retain_graph\n"
        f"  y = x + 2    saves nothing; the second backward works:  x.grad = {gradient}\n"
        f"  y = x * x    saves x; the second backward raises:\n"
        f"    RuntimeError: {error}"
    )
    return Part("founding", text=text, data={"add_twice": gradient, "square_twice": error})
