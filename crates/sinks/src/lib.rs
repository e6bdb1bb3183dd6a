//! Where the rows of a batch go: console, noop, memory, foreachBatch.
