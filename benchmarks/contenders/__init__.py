"""What is measured side by side. Each module is a process of its own, in the environment that has its library."""
