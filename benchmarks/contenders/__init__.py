"""What is measured side by side. Each module runs in a process of its own (`serve`), in its library's environment."""
