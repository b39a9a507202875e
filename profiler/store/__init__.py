"""What is in a run directory, written and read: lanes, facts of processes, stacks, and the `Run`
made of them."""
