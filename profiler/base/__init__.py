"""What every room may use: the clock, errors, the schema of records, liveness of processes, atomic
writes, mounts."""
