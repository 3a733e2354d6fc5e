"""What is checked before a run starts or continues."""


# What an application does with a style, above engine and worker: one package per style.
