"""The SQLite journal: one file, several processes, group commit."""
