//! The macro `#[derive(PlainData)]`. Use it through the crate `myelin`, which exports it and documents it beside the
//! trait. `plain_data.rs` makes the implementation; `refuse.rs` makes the errors for types that cannot be plain data.

mod plain_data;
mod refuse;

use proc_macro::TokenStream;

/// Implements `myelin::PlainData` for a struct and proves at compile time what the trait demands.
///
/// The struct must be `#[repr(C)]` or `#[repr(transparent)]` and `Copy`, must not be generic, must
/// have no padding and an alignment of at most 64, and each of its fields must be plain data
/// itself. Anything else is a compile error that says what to do. See `myelin::PlainData`.
#[proc_macro_derive(PlainData)]
pub fn plain_data(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    plain_data::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
