"""When a benchmark's cases fail, and when it cannot be decided; with benchmarks made up."""

from __future__ import annotations

from typing import Any

import pytest

import judged_cases

CASES = ("a", "b", "c", "d")


def benchmark(monkeypatch, wrong):
    """Cases wrong at first, as often as a share of CPU time is withheld; what was asked."""
    asked: list[list[str]] = []

    def told(script: str, *options: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
        names = [word for word in options if word in CASES] or list(CASES)
        asked.append(names)
        cases = {}
        for name in names:
            left = wrong.get(name, [])
            cases[name] = {"ok": not left, "withheld_share": left.pop(0) if left else 0.0}
        return {"cases": cases, "left_out": {}}

    monkeypatch.setattr(judged_cases, "told", told)
    return asked


def judge(least: int = 4) -> None:
    judged_cases.cases_are_right("made_up.py", least=least, right=lambda case: bool(case["ok"]))


def test_what_is_wrong_once_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = benchmark(monkeypatch, {"b": [0.0], "c": [0.8, 0.0]})
    judge()
    assert asked == [[*CASES], ["b", "c"], ["c"]]


@pytest.mark.parametrize("withheld", [[0.0, 0.0], [0.5, 0.0, 0.5, 0.02], [None, 0.3, None]])
def test_what_is_wrong_twice_on_a_quiet_machine_is_wrong(monkeypatch, withheld):
    benchmark(monkeypatch, {"b": withheld})
    with pytest.raises(AssertionError, match='"b"'):
        judge()


def test_what_only_a_machine_held_back_got_wrong_is_not_decided(monkeypatch):
    asked = benchmark(monkeypatch, {"b": [0.8, 0.0, 0.6, 0.7]})
    with pytest.raises(pytest.skip.Exception, match="b 70%"):
        judge()
    assert len(asked) == judged_cases.ROUNDS


def test_most_must_be_right_wherever_they_run_and_none_be_missing(monkeypatch) -> None:
    benchmark(monkeypatch, {name: [0.9] * judged_cases.ROUNDS for name in "abc"})
    with pytest.raises(AssertionError):
        judge()
    benchmark(monkeypatch, {})
    with pytest.raises(AssertionError):
        judge(least=5)
