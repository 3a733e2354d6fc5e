"""What an application does with delivery projects."""
