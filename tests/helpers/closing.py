"""Ends the recording of this process while it goes on, which no user's program does."""

import atexit
import sys
from typing import Any


def close_session(sessions: Any = None) -> None:
    """The next loop opens a new run. `sessions` is the module of the form in use."""
    sessions = sessions or sys.modules["loaderscope.profiler.record.session.session"]
    session = sessions.current()
    sessions._process.__init__()
    if session is None:
        return
    step_log = sys.modules.get("loaderscope.profiler.record.device.step_log")
    if step_log is not None:
        step_log.read_logs()
        step_log._logs.clear()
    for recorder in session.recorders:
        for lane in (*recorder._lanes, recorder._epochs):
            if lane is not None:
                lane.close()
        if recorder.fetch_probe is not None:
            recorder.fetch_probe.close()
        recorder._leave_session()
    session.workers.close()
    session.finish()
    if session.arena is not None:
        session.arena.close()
    atexit.unregister(session.finish_at_exit)
