//! Streaming SQL in micro-batches: triggers, plans, batches, progress.
