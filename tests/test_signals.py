"""Programs that tests start get the signals they send, however the tests were started."""

from __future__ import annotations

from pathlib import Path

from started import python

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
    result = python("-c", IN_THE_BACKGROUND, cwd=ROOT)
    assert result.returncode == 0, result.stdout
    assert "3 passed" in result.stdout
