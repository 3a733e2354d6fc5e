"""The commands for blackboards."""
