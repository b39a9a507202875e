"""The tests themselves: programs they start get the signals that they send, however the tests were
started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SENDING = (
    "tests/advisors/storage_probe/test_scratch.py::test_the_folder_goes_when_the_process_is_ended"
)
IN_THE_BACKGROUND = f"""
import signal, sys, pytest
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", {SENDING!r}]))
"""


def test_tests_that_send_signals_pass_where_signals_are_ignored() -> None:
    """As in a background job of a shell, under nohup, or below a supervisor that blocks signals."""
    result = subprocess.run(
        [sys.executable, "-c", IN_THE_BACKGROUND],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    assert "3 passed" in result.stdout
