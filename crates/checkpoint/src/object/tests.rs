mod append;
mod faulty;
mod hints;
mod kept;
mod real;
mod second_look;
mod support;
