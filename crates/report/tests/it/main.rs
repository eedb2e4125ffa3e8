//! What pages hold. How a browser shows them is tested in `shelflife-page`.

mod page;
mod sample;
