mod append;
mod faulty;
mod hints;
mod kept;
mod real;
mod support;
