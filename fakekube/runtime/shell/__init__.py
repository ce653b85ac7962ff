"""The shell of containers: `parser` reads programs into a `syntax` tree, `expansion` expands words, `interpreter` runs them."""
