"""The system sampler: a small process that records CPU, memory, I/O and GPU while training runs, a
few times a second, and copies the training's batches to files.

It is a process and not a thread, so it takes no share of the training's interpreter lock. It
imports neither torch nor NumPy. It ends by itself after the training, even if that was killed.

    loop.py           a tick, and when it ends
    registry.py       which training processes and workers there are
    keeper.py         the memory of training processes, copied to their files
    processes.py      the use of one process
    machine.py        the machine and its use; cgroup.py: the container
    gpu.py            GPUs, by NVML
    stack_capture/    bursts of py-spy
    pace.py           limits to what all this may cost
    reasons.py        why a figure is missing
"""
