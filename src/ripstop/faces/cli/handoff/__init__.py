"""The commands for hand-off documents."""
