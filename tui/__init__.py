"""The dashboard, live and replay."""
