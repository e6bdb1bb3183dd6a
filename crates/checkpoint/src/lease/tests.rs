mod damage;
mod handover;
mod lock;
mod look;
mod support;
