"""What the user's files were before a run changed them."""
