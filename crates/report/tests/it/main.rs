//! Pages as a browser sees them.

mod browser;
mod page;
mod sample;
