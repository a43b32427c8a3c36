//! Types of values as numpy's dtypes, and the rows of an array of messages.

use std::borrow::Cow;

use myelin::value::{Kind, Primitive, Scalar, Type, Value};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::any::numpy_code;

/// What is in each row of an array of messages, behind the times and the number of the message.
#[derive(PartialEq)]
pub enum Sort {
    /// A value of plain data.
    Plain(Box<Type>),
    /// Numbers: their type, the order of their bytes, and their shape, which is empty for one.
    Numbers { element: Primitive, big_endian: bool, shape: Vec<usize> },
}

impl Sort {
    pub fn is_of(&self, layout: &Type) -> bool {
        matches!(self, Sort::Plain(plain) if **plain == *layout)
    }

    fn bytes(&self) -> usize {
        match self {
            Sort::Plain(plain) => plain.bytes_min(),
            Sort::Numbers { element, shape, .. } => {
                shape.iter().fold(element.bytes(), |bytes, length| bytes.saturating_mul(*length))
            }
        }
    }

    /// The bytes of a row.
    pub fn row_bytes(&self) -> usize {
        (HEAD_BYTES + self.bytes()).next_multiple_of(ALIGN)
    }

    /// What `numpy.dtype` takes for a row.
    pub fn row<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value = match self {
            Sort::Plain(plain) => dtype_of(py, plain)?,
            Sort::Numbers { element, big_endian, shape } => {
                let order = if *big_endian { '>' } else { '<' };
                let number = number(py, *element, order)?;
                let is_one = shape.is_empty();
                if is_one { number } else { (number, shape.clone()).into_bound_py_any(py)? }
            }
        };
        let whole = |code: &str| code.into_bound_py_any(py);
        // Signed, so that differences are. It is enough until the year 2262.
        let fields = [
            ("publish_time_ns", whole("<i8")?, 0),
            ("log_time_ns", whole("<i8")?, 8),
            ("sequence", whole("<i8")?, 16),
            ("value", value, HEAD_BYTES),
        ];
        structure(py, fields, self.row_bytes())
    }
}

/// What a value is in a row, and its bytes.
pub fn sort_of<'a>(value: &Value<'a>) -> Result<(Sort, Cow<'a, [u8]>), String> {
    if let Kind::Primitive(element) = *value.ty().kind() {
        let scalar = value.scalar().map_err(|error| error.to_string())?;
        let bytes = match scalar {
            Scalar::Bool(value) => vec![u8::from(value)],
            Scalar::Signed(value) => value.to_le_bytes()[..element.bytes()].to_vec(),
            Scalar::Unsigned(value) => value.to_le_bytes()[..element.bytes()].to_vec(),
            Scalar::F32(value) => value.to_le_bytes().to_vec(),
            Scalar::F64(value) => value.to_le_bytes().to_vec(),
        };
        let sort = Sort::Numbers { element, big_endian: false, shape: Vec::new() };
        return Ok((sort, bytes.into()));
    }
    let numbers = value.as_slice().map_err(|error| error.to_string())?;
    let (element, big_endian, shape) = (numbers.element, numbers.big_endian, numbers.shape);
    Ok((Sort::Numbers { element, big_endian, shape }, numbers.bytes.into()))
}

/// Of plain data: the elements of the slice at the end, and where they begin.
pub fn elements_of(ty: &Type) -> Option<(&Type, usize)> {
    match ty.kind() {
        Kind::Sequence { element, bound: None } => Some((element, 0)),
        Kind::Struct { fields, .. } => {
            let last = fields.last()?;
            let (element, at) = elements_of(&last.ty)?;
            Some((element, last.offset + at))
        }
        _ => None,
    }
}

/// What `numpy.dtype` takes for plain data without a slice.
pub fn dtype_of<'py>(py: Python<'py>, ty: &Type) -> PyResult<Bound<'py, PyAny>> {
    match ty.kind() {
        Kind::Primitive(primitive) => number(py, *primitive, '<'),
        Kind::Array { element, length } => {
            (dtype_of(py, element)?, (*length,)).into_bound_py_any(py)
        }
        Kind::String { bound } => {
            let text = format!("S{}", bound.unwrap_or(0)).into_bound_py_any(py)?;
            let length = "<u4".into_bound_py_any(py)?;
            structure(py, [("length", length, 0), ("bytes", text, 4)], ty.bytes_min())
        }
        Kind::Sequence { element, bound } => {
            let elements = (dtype_of(py, element)?, (bound.unwrap_or(0),)).into_bound_py_any(py)?;
            let length = "<u8".into_bound_py_any(py)?;
            structure(py, [("length", length, 0), ("elements", elements, 8)], ty.bytes_min())
        }
        Kind::Struct { fields, .. } => {
            let fields = fields.iter().map(|it| Ok((&*it.name, dtype_of(py, &it.ty)?, it.offset)));
            structure(py, fields.collect::<PyResult<Vec<_>>>()?, ty.bytes_min())
        }
        _ => format!("V{}", ty.bytes_min()).into_bound_py_any(py),
    }
}

fn number<'py>(py: Python<'py>, of: Primitive, order: char) -> PyResult<Bound<'py, PyAny>> {
    let code = numpy_code(of).map_or_else(|| "V16".to_owned(), |code| format!("{order}{code}"));
    code.into_bound_py_any(py)
}

fn structure<'py>(
    py: Python<'py>,
    fields: impl IntoIterator<Item = (impl AsRef<str>, Bound<'py, PyAny>, usize)>,
    bytes: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let (mut names, mut formats, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
    for (name, format, offset) in fields {
        names.push(name.as_ref().to_owned());
        formats.push(format);
        offsets.push(offset);
    }
    let dtype = PyDict::new(py);
    dtype.set_item("names", names)?;
    dtype.set_item("formats", formats)?;
    dtype.set_item("offsets", offsets)?;
    dtype.set_item("itemsize", bytes)?;
    Ok(dtype.into_any())
}

/// The times and the number of a message.
const HEAD_BYTES: usize = 24;
const ALIGN: usize = 8;
