"""What stack samples show: functions, lines, libraries and flame graphs of each stage."""
