mod damage;
mod fork;
mod rewind;
mod support;
