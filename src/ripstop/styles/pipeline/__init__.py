"""Delivery projects: an idea becomes code in stages, with a person's review; drafts and data are in `.cowork/`."""
