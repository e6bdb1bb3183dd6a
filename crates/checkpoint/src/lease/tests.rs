mod damage;
mod handover;
mod lock;
mod look;
pub(in crate::lease) mod support;
