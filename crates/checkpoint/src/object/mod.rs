//! The log on shared storage (`s3://`, `gs://`, `az://`): the storage half of a checkpoint that machines share.

mod slot;

pub use slot::{Answer, Event, Patience, Put, ReadBack, Slot};
