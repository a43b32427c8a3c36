//! Payload types, as the program describes them.

use std::ffi::c_char;

use myelin::{DynamicType, Layout};

use crate::error::Failure;
use crate::sized::{self, sized};
use crate::text;

/// The kind of a value.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the program's, read as numbers")]
pub enum myelin_kind {
    MYELIN_U8 = 1,
    MYELIN_U16 = 2,
    MYELIN_U32 = 3,
    MYELIN_U64 = 4,
    MYELIN_U128 = 5,
    MYELIN_I8 = 6,
    MYELIN_I16 = 7,
    MYELIN_I32 = 8,
    MYELIN_I64 = 9,
    MYELIN_I128 = 10,
    MYELIN_F32 = 11,
    MYELIN_F64 = 12,
    /// Rust's usize: not the same as u64.
    MYELIN_USIZE = 13,
    MYELIN_ISIZE = 14,
    /// A byte: 0 is false, any other true.
    MYELIN_BOOL = 15,
    /// The struct that `structure` describes.
    MYELIN_STRUCT = 16,
}

/// A type: a number, a struct, or an array of these.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_type {
    /// `enum myelin_kind`.
    pub kind: i32,
    /// For MYELIN_STRUCT; otherwise NULL.
    pub structure: *const myelin_struct,
    /// The lengths of an array, the outermost first; 0 ends them. {0}: no array.
    pub lengths: [usize; 4],
}

/// A field of a struct.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_field {
    /// Its name, as in Rust.
    pub name: *const c_char,
    /// Its offset in bytes.
    pub offset: usize,
    /// Its type.
    pub r#type: myelin_type,
}

/// A struct. Its fields follow one another without padding: fill gaps with fields like
/// `uint8_t _pad[4]`. Names, types and offsets of the fields make the layout hash that both sides of a
/// topic compare; `MYELIN_STRUCT_OF` describes it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_struct {
    /// sizeof(struct myelin_struct).
    pub size: usize,
    /// Its name for messages.
    pub name: *const c_char,
    /// sizeof the described struct.
    pub bytes: usize,
    /// Its alignment: at most 64.
    pub align: usize,
    /// Its fields, in order.
    pub fields: *const myelin_field,
    /// How many.
    pub field_count: usize,
    /// sizeof(struct myelin_field).
    pub field_size: usize,
}

/// How many values a sample has.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the program's, read as numbers")]
pub enum myelin_form {
    /// One value of `type`. In Rust `T`.
    MYELIN_VALUE = 0,
    /// A slice of `type` whose length each sample chooses. In Rust `[T]`.
    MYELIN_SLICE = 1,
    /// A `header`, then a slice of `type` whose length each sample chooses. The slice begins at the
    /// first byte behind the header that is aligned for its elements. In Rust `(H, [T])`.
    MYELIN_HEADER_SLICE = 2,
}

/// The payload of a topic. The call that gets it reads it, and does not keep it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_payload {
    /// sizeof(struct myelin_payload).
    pub size: usize,
    /// `enum myelin_form`.
    pub form: i32,
    /// The value, or an element.
    pub r#type: myelin_type,
    /// The header of MYELIN_HEADER_SLICE.
    pub header: myelin_type,
}

sized! {
    myelin_struct up to field_size: usize;
    myelin_payload up to header: myelin_type;
}

/// The type that a program describes; NULL is any number of bytes.
///
/// # Safety
/// NULL or a description all of whose pointers are valid.
///
/// # Errors
/// The fault in the description.
pub unsafe fn dynamic_type(payload: *const myelin_payload) -> Result<DynamicType, Failure> {
    if payload.is_null() {
        let byte = Layout::scalar("u8").expect("a number");
        return Ok(DynamicType::slice(&byte)?);
    }
    // SAFETY: as the caller promises.
    let payload = unsafe { sized::read(payload)? };
    // SAFETY: as the caller promises.
    let value = unsafe { layout(&payload.r#type, 0)? };
    match payload.form {
        0 => Ok(DynamicType::value(&value)),
        1 => Ok(DynamicType::slice(&value)?),
        // SAFETY: as the caller promises.
        2 => Ok(DynamicType::header_slice(&unsafe { layout(&payload.header, 0)? }, &value)?),
        form => Err(Failure::setting(format_args!(
            "myelin_payload.form is {form}; set it to MYELIN_VALUE, MYELIN_SLICE or MYELIN_HEADER_SLICE"
        ))),
    }
}

unsafe fn layout(of: &myelin_type, depth: usize) -> Result<Layout, Failure> {
    let mut layout = match SCALARS.get(of.kind.wrapping_sub(1) as usize) {
        Some(name) => Layout::scalar(name).expect("the names of `Layout`"),
        None if of.kind == myelin_kind::MYELIN_STRUCT as i32 => {
            // SAFETY: as the caller promises.
            unsafe { structure(of.structure, depth)? }
        }
        None => {
            let kind = of.kind;
            return Err(Failure::setting(format_args!(
                "myelin_type.kind is {kind}; set it to one of enum myelin_kind"
            )));
        }
    };
    let dimensions = of.lengths.iter().take_while(|length| **length != 0).count();
    for length in of.lengths[..dimensions].iter().rev() {
        layout = Layout::array(&layout, *length)?;
    }
    Ok(layout)
}

unsafe fn structure(of: *const myelin_struct, depth: usize) -> Result<Layout, Failure> {
    if of.is_null() || depth == DEPTH_MAX {
        return Err(Failure::setting(format_args!(
            "myelin_type.structure is NULL, or structs are nested more than {DEPTH_MAX} deep; point it to \
             the description of the struct"
        )));
    }
    // SAFETY: as the caller promises.
    let of = unsafe { sized::read(of)? };
    // SAFETY: as the caller promises.
    let name = unsafe { text::required(of.name, "myelin_struct.name")? };
    if of.field_size < size_of::<myelin_field>() || of.field_count > FIELDS_MAX {
        return Err(Failure::setting(format_args!(
            "myelin_struct {name}: field_size is {}, field_count {}; set them as MYELIN_STRUCT_OF does, to \
             sizeof(struct myelin_field) and at most {FIELDS_MAX}",
            of.field_size, of.field_count
        )));
    }
    if of.fields.is_null() && of.field_count > 0 {
        return Err(Failure::setting(format_args!("myelin_struct {name}: fields is NULL")));
    }
    let mut fields = Vec::with_capacity(of.field_count);
    for index in 0..of.field_count {
        // SAFETY: within the program's array, whose elements have this size.
        let field = unsafe { of.fields.byte_add(index * of.field_size).read() };
        // SAFETY: as the caller promises.
        let name = unsafe { text::required(field.name, "myelin_field.name")? };
        // SAFETY: as the caller promises.
        fields.push((name, unsafe { layout(&field.r#type, depth + 1)? }, field.offset));
    }
    let fields: Vec<_> = fields.iter().map(|(name, layout, at)| (*name, layout, *at)).collect();
    Ok(Layout::structure(name, &fields, of.bytes, of.align)?)
}

/// Checks that so many bytes are a payload of the type.
#[inline]
pub fn check(dynamic_type: &DynamicType, bytes: usize) -> Result<(), Failure> {
    if dynamic_type.fits(bytes) { Ok(()) } else { Err(misfit(dynamic_type, bytes)) }
}

#[cold]
#[inline(never)]
fn misfit(dynamic_type: &DynamicType, bytes: usize) -> Failure {
    Failure::length(bytes, dynamic_type.type_name())
}

/// The layout hash of a described payload, which both sides of a topic compare: the same as for a
/// Rust type with the same fields. Any thread.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_payload_hash(
    payload: *const myelin_payload,
    hash: *mut u64,
) -> crate::error::myelin_code {
    // SAFETY: as the caller promises.
    crate::error::enter(|| unsafe {
        text::put(hash, dynamic_type(payload)?.hash(), "hash")?;
        Ok(crate::error::MYELIN_OK)
    })
}

/// The names of the scalars, by `myelin_kind`.
const SCALARS: [&str; 15] = [
    "u8", "u16", "u32", "u64", "u128", "i8", "i16", "i32", "i64", "i128", "f32", "f64", "usize",
    "isize", "bool",
];
const DEPTH_MAX: usize = 16;
const FIELDS_MAX: usize = 1024;
