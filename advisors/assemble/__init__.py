"""From a run to its report: rules applied, probes tried."""
