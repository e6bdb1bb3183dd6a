//! Exclusive ownership of a checkpoint, its write-ahead log, and the hand-over between owners.
