"""Speed, measured side by side with peers and floors. Each module is one command and writes results/bench/*.json."""
