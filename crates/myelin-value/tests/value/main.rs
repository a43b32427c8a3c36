//! Values of real types, of random types, and of hostile schemas and bytes.

mod hostile;
mod hostile_input;
mod layouts;
mod messages;
mod round_trips;
