//! The whole program, as its users see it.
