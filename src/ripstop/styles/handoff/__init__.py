"""Folders of hand-off documents as definitions."""


# The commands for hand-off documents.


# Hand-off documents: text files in a folder that many processes, people and their editors share.


# Working with a folder of hand-off documents: what people and programs do with them, and what agents do.
