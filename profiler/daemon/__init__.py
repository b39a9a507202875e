"""The system sampler: a small process beside the training that records CPU, memory, I/O and GPU a
few times a second.

It is a process and not a thread, so that it takes no share of the training's interpreter lock; it
imports neither torch nor NumPy, and it ends by itself when the training has ended, however that
ended.

    loop.py        what it does, tick by tick, and when it ends
    detach.py      letting go of the terminal and of everything it inherited
    host.py        host.json: what stays the same for a whole run
    registry.py    which training processes and workers there are
    lane_tail.py   reading a lane that is still being written
    processes.py   the use of one process; smaps.py: its memory in detail, as rarely as that is dear
    machine.py     the use of the machine; cgroup.py: of the container
    gpu.py         NVML
    pace.py        the bounds on what all this may cost
    reasons.py     why a figure is missing
"""
