"""Running the service: health, metrics, logs, backups, the supervisor and the demo."""
