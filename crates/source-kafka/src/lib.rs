//! Kafka offset ranges as streams of Arrow record batches.
