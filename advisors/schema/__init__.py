"""The types of a report, their JSON, and figures in words."""
