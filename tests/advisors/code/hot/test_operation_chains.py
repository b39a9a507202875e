"""Chains of element-wise operations are told from other code, and torch's own operator is named
where there is one."""

from __future__ import annotations

import pytest

from loaderscope.advisors.code.hot.operation_chains import operation_chain

TANH = "        y = 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))"


def source(*lines: str) -> tuple[str, ...]:
    return (
        "def __getitem__(self, index):",
        "        x = self.values[index]",
        *lines,
        "        return y",
    )


@pytest.mark.parametrize(
    ("lines", "operator"),
    [
        ((TANH,), 'approximate="tanh"'),
        (
            (
                "        inner = x + 0.044715 * x.pow(3)",
                "        y = 0.5 * x * (1 + (0.8 * inner).tanh())",
            ),
            "tanh",
        ),
        (("        y = x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))",), "gelu(x)"),
        (("        y = ((x / 255 - 0.5) / 0.25).clamp(-2, 2) * 1.5",), None),
        (("        y = np.sqrt(np.abs(x - x.mean())) * np.exp(-x) + 1",), None),
    ],
)
def test_a_chain_is_seen(lines: tuple[str, ...], operator: str | None) -> None:
    found = operation_chain(source(*lines))
    assert (
        found is not None
        and found.operations >= 4
        and found.lines == {line.strip() for line in lines}
    )
    assert (found.operator is None) is (operator is None) and (operator or "") in (
        found.operator or ""
    )
    best, worst = found.left
    assert 0 < best < worst < 1
    code = found.code("__getitem__ of Rows")
    assert code.startswith("# By hand") and all(line.startswith("#") for line in code.splitlines())
    assert ("torch.compile" in code) is (operator is None)


@pytest.mark.parametrize(
    "lines",
    [
        ("        y = x * 2 + 1",),
        ("        y = torch.tanh(x)",),
        ("        a = index * 3 + 4", "        y = x[a : a + 5 * 2]"),
        ("        y = math.exp(1) * math.sqrt(2) * math.pi / 3 * x",),
        ("        y = sum(math.tanh(v) * 0.5 + v**3 - 2 * v / 7 for v in x)",),
        ("        y = (",),
        (),
    ],
)
def test_what_is_none(lines: tuple[str, ...]) -> None:
    assert operation_chain(source(*lines)) is None
    assert operation_chain(()) is None and operation_chain(("x = 1",)) is None
