"""What was published and what can be made of it: post-processing."""
