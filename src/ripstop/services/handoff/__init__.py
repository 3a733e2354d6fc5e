"""Working with a folder of hand-off documents: what people and programs do with them, and what agents do."""
