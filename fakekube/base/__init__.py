"""What every room may use and that knows nothing of Kubernetes: the clock, threads, deep recursion, bounded caches, Go's
texts."""
