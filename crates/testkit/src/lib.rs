//! Development only: manual clock, scripted sources, conformance suites, the Kafka lab.
