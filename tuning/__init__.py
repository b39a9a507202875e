"""Tuning: a loader's settings are tried live, on the training that goes on; the best proven one
stays."""
