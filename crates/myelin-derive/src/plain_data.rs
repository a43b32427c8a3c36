//! The code of the derive: one assertion per demand of the trait, then the implementation.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, Field, Ident, Index, Member};

use crate::refuse;

/// The implementation of `PlainData` for `input`, with its proof.
pub fn expand(input: &DeriveInput) -> Result<TokenStream, Error> {
    let fields: Vec<&Field> = refuse::fields_of(input)?.iter().collect();
    let ty = &input.ident;
    let begins = (0..fields.len()).map(|at| prove_begin(ty, &fields, at));
    let whole = prove_whole(ty, &fields);
    let described = describe(ty, &fields);
    let name = ty.to_string();
    Ok(quote! {
        const _: () = {
            #(#begins)*
            #whole
            const FIELDS: &[::myelin::layout::Field<'static>] = &[#(#described),*];
            const LAYOUT: ::myelin::LayoutHash = ::myelin::LayoutHash::of_fields(FIELDS);
            // SAFETY: `repr(C)` or `repr(transparent)`; each field begins where the previous one
            // ends, nothing follows the last, and the alignment is at most 64: asserted above; all
            // fields are plain data, or `Field::of` would not take them.
            unsafe impl ::myelin::PlainData for #ty {
                const LAYOUT_HASH: u64 = LAYOUT.end_struct::<#ty>();
                const FIRST_ALIGN: usize = LAYOUT.first_align();
                fn type_name() -> ::std::borrow::Cow<'static, str> {
                    ::std::borrow::Cow::Borrowed(#name)
                }
                fn layout() -> ::std::string::String {
                    ::myelin::layout::of_struct::<#ty>(FIELDS)
                }
            }
        };
    })
}

/// The proof that a field begins where the previous one ends.
fn prove_begin(ty: &Ident, fields: &[&Field], at: usize) -> TokenStream {
    let member = member(at, fields[at]);
    let before = end_of(ty, &fields[..at]);
    let padding = format!(
        "there is padding before field `{}` of `{ty}`: order the fields from large to small, or fill \
         the gap with a field like `_pad: [u8; N]`",
        text(&member)
    );
    quote_spanned! {fields[at].ty.span()=>
        const _: () =
            ::core::assert!(::core::mem::offset_of!(#ty, #member) == #before, #padding);
    }
}

/// The proof that nothing follows the last field, and of the alignment.
fn prove_whole(ty: &Ident, fields: &[&Field]) -> TokenStream {
    let end = end_of(ty, fields);
    let padding = format!(
        "there is padding at the end of `{ty}`: fill it with a last field like `_pad: [u8; N]`"
    );
    let align =
        format!("`{ty}` is aligned to more than 64 bytes, which shared memory does not keep");
    quote_spanned! {ty.span()=>
        const _: () = ::core::assert!(::core::mem::align_of::<#ty>() <= 64, #align);
        const _: () = ::core::assert!(::core::mem::size_of::<#ty>() == #end, #padding);
    }
}

/// Where the last of `fields` ends, counted from the first field of the struct.
fn end_of(ty: &Ident, fields: &[&Field]) -> TokenStream {
    let Some(last) = fields.last() else { return quote!(0) };
    let (member, field_ty) = (member(fields.len() - 1, last), &last.ty);
    quote! { ::core::mem::offset_of!(#ty, #member) + ::core::mem::size_of::<#field_ty>() }
}

/// Each field with its type, name and offset.
fn describe(ty: &Ident, fields: &[&Field]) -> Vec<TokenStream> {
    let describe = |(at, field): (usize, &&Field)| {
        let (member, field_ty) = (member(at, field), &field.ty);
        let name = text(&member);
        quote_spanned! {field_ty.span()=>
            ::myelin::layout::Field::of::<#field_ty>(#name, ::core::mem::offset_of!(#ty, #member))
        }
    };
    fields.iter().enumerate().map(describe).collect()
}

fn member(at: usize, field: &Field) -> Member {
    match &field.ident {
        Some(name) => Member::Named(name.clone()),
        None => Member::Unnamed(Index::from(at)),
    }
}

fn text(member: &Member) -> String {
    match member {
        Member::Named(name) => name.to_string().trim_start_matches("r#").to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}
