//! Pages of trials from made-up results, and all kinds of pages in a browser.

mod browser;
mod made_up;
mod trials;
