"""What an application does with a style, above engine and worker: one package per style."""
