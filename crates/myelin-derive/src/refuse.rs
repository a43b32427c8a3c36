//! Refuses structs that cannot be plain data, with a reason, before the compiler reports them in
//! its own words. This is not a proof: the proof is in the code that `plain_data` generates,
//! whatever a type is called.

use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Type};

/// The fields of a struct that may be plain data.
pub fn fields_of(input: &DeriveInput) -> Result<&Fields, Error> {
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(_) => return Err(Error::new(input.ident.span(), NO_ENUM)),
        Data::Union(_) => return Err(Error::new(input.ident.span(), NO_UNION)),
    };
    if !input.generics.params.is_empty() {
        return Err(Error::new(input.generics.span(), NO_GENERICS));
    }
    if !has_fixed_order(&input.attrs)? {
        return Err(Error::new(input.ident.span(), NO_REPR));
    }
    fields.iter().try_for_each(|field| check(&field.ty))?;
    Ok(fields)
}

/// Whether the struct has `#[repr(C)]` or `#[repr(transparent)]`.
fn has_fixed_order(attributes: &[Attribute]) -> Result<bool, Error> {
    let mut fixed = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            fixed |= meta.path.is_ident("C") || meta.path.is_ident("transparent");
            if meta.input.peek(syn::token::Paren) {
                let argument;
                syn::parenthesized!(argument in meta.input);
                argument.parse::<syn::LitInt>()?;
            }
            Ok(())
        })?;
    }
    Ok(fixed)
}

fn check(ty: &Type) -> Result<(), Error> {
    let reason = match ty {
        Type::Reference(_) => NO_REFERENCE,
        Type::Ptr(_) | Type::FnPtr(_) => NO_POINTER,
        Type::Tuple(tuple) if !tuple.elems.is_empty() => NO_TUPLE,
        Type::Array(array) => return check(&array.elem),
        Type::Paren(inner) => return check(&inner.elem),
        Type::Group(inner) => return check(&inner.elem),
        Type::Path(path) if path.path.is_ident("bool") => NO_BOOL,
        Type::Path(path) if path.path.is_ident("char") => NO_CHAR,
        _ => return Ok(()),
    };
    Err(Error::new(ty.span(), reason))
}

const NO_ENUM: &str = "an enum is not plain data: a peer could send a number that is no variant; \
                       carry an integer and convert it";
const NO_UNION: &str = "a union is not plain data: some of its bytes may be uninitialised; use a \
                        struct, or [u8; N]";
const NO_GENERICS: &str = "a generic type is not plain data: its layout is not known here; derive \
                           it for a struct without parameters";
const NO_REPR: &str = "plain data needs #[repr(C)] (or #[repr(transparent)]): without it the order \
                       of the fields may differ between two programs";
const NO_REFERENCE: &str = "a reference is not plain data: it means nothing in another process; \
                            carry the value, or an index";
const NO_POINTER: &str = "a pointer is not plain data: it means nothing in another process; carry \
                          the value, or an index";
const NO_TUPLE: &str = "a tuple is not plain data: the order of its fields is not fixed; use a \
                        #[repr(C)] struct";
const NO_BOOL: &str =
    "bool is not plain data: a peer could send a byte other than 0 and 1; use myelin::Bool";
const NO_CHAR: &str = "char is not plain data: a peer could send a number that is no character; \
                       use u32 and char::from_u32";
