"""Folders of hand-off documents as definitions."""
