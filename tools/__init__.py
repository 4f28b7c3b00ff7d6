"""What the build needs and the package does not."""
