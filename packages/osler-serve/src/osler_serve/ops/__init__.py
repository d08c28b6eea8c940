"""What keeps a home over time: backup, forgetting, uploads."""
