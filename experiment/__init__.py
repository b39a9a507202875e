"""A change of code, tried: the script as it is and with the change, in turns, in copies of the
project."""
