"""What is checked before a run starts or continues."""
