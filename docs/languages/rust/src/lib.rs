//! Tests with clusters of a pool; see `tests/pool.rs`.
