"""`python -m loaderscope.profiler.daemon RUN_DIR SYSTEM_DIR [--interval SECONDS]`."""

import sys

from .loop import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
