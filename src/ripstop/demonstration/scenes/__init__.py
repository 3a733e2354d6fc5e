"""What happened in the demonstration, one module per style: each function is a scene, played at one moment."""
