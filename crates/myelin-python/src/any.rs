//! Topics whose type is learnt: their samples as Python objects.

use std::borrow::Cow;

use myelin::value::{Input, Item, Kind, Primitive, Scalar, Value};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::errors::{raised, wrong_value};
use crate::info::EndpointInfo;
use crate::memory::Bytes;
use crate::types::Type;

/// A topic of another node, with the type that its schema describes.
#[pyclass(frozen, module = "myelin._native")]
pub struct AnyTopic(pub myelin::AnyTopic);

/// Numbers in a sample: where they begin in it, in bytes, their type as numpy names it, and their
/// shape.
#[pyclass(frozen, get_all, module = "myelin._native")]
pub struct Numbers {
    offset: usize,
    dtype: String,
    shape: Vec<usize>,
}

/// The publishers and subscribers of topics that a pattern names, as they come and go.
#[pyclass(module = "myelin")]
pub struct Discovery(pub myelin::Discovery);

/// The deepest nesting of a Python object that is written to a sample; types have less.
const DEPTH_MAX: usize = 200;

#[pymethods]
impl AnyTopic {
    /// The type of a payload: bytes, or a value of so many bytes.
    #[getter]
    fn native(&self) -> PyResult<Type> {
        Type::of(self.0.dynamic_type())
    }

    /// A sample as a Python object of its own.
    fn value<'py>(&self, sample: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = Bytes::of(sample)?;
        self.at(&bytes, "").and_then(|value| object(sample.py(), &value))
    }

    /// A part of a sample; numbers as [`Numbers`].
    fn field<'py>(&self, sample: &Bound<'py, PyAny>, path: &str) -> PyResult<Bound<'py, PyAny>> {
        let bytes = Bytes::of(sample)?;
        numbers(sample.py(), &bytes, &self.at(&bytes, path)?)
    }

    /// The bytes of a value.
    fn pack<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        check_depth(value, 0)?;
        let encoded = myelin::value::encode(self.0.ty(), Object(value.clone()));
        let encoded = encoded.map_err(|error| wrong_value(error.to_string()))?;
        Ok(PyBytes::new(value.py(), &encoded))
    }
}

impl AnyTopic {
    fn at<'a>(&'a self, sample: &'a Bytes, path: &str) -> PyResult<Value<'a>> {
        // SAFETY: the buffer keeps its bytes; they are read as bytes of another process, which may
        // change them.
        let bytes = unsafe { std::slice::from_raw_parts(sample.pointer(), sample.length()) };
        let value = self.0.value(if sample.length() == 0 { &[] } else { bytes });
        let value =
            value.and_then(|value| if path.is_empty() { Ok(value) } else { value.get(path) });
        value.map_err(|error| wrong_value(error.to_string()))
    }
}

#[pymethods]
impl Discovery {
    /// What has come and gone since the last call: pairs of `found` or `gone`, and the endpoint.
    fn changes(&mut self, py: Python<'_>) -> PyResult<Vec<(&'static str, Py<EndpointInfo>)>> {
        let changes = self.0.changes().map_err(raised)?;
        let pair = |change| {
            let (kind, endpoint) = match change {
                myelin::Change::Found(endpoint) => ("found", endpoint),
                myelin::Change::Gone(endpoint) => ("gone", endpoint),
            };
            Ok((kind, Py::new(py, EndpointInfo::from(endpoint))?))
        };
        changes.into_iter().map(pair).collect()
    }
}

/// A part of a buffer as a Python object; the numbers of an array as [`Numbers`].
pub fn numbers<'py>(
    py: Python<'py>,
    buffer: &Bytes,
    value: &Value<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let is_array = matches!(value.ty().kind(), Kind::Array { .. } | Kind::Sequence { .. });
    let Some(numbers) = is_array.then(|| value.as_slice().ok()).flatten() else {
        return object(py, value);
    };
    let Some(code) = numpy_code(numbers.element) else { return object(py, value) };
    let offset = match numbers.bytes {
        [] => 0,
        bytes => bytes.as_ptr() as usize - buffer.pointer() as usize,
    };
    let order = if numbers.big_endian { '>' } else { '<' };
    let dtype = format!("{order}{code}");
    Numbers { offset, dtype, shape: numbers.shape }.into_bound_py_any(py)
}

/// A value as a Python object: a dict, a list, a number, text; octets as bytes.
pub fn object<'py>(py: Python<'py>, value: &Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    let read = |error: myelin::value::ReadError| wrong_value(error.to_string());
    match value.ty().kind() {
        Kind::Struct { .. } => {
            let fields = PyDict::new(py);
            for field in value.fields().map_err(read)? {
                let (name, field) = field.map_err(read)?;
                fields.set_item(name, object(py, &field)?)?;
            }
            Ok(fields.into_any())
        }
        Kind::Primitive(_) => match value.scalar().map_err(read)? {
            Scalar::Bool(value) => value.into_bound_py_any(py),
            Scalar::Signed(value) => value.into_bound_py_any(py),
            Scalar::Unsigned(value) => value.into_bound_py_any(py),
            Scalar::F32(value) => value.into_bound_py_any(py),
            Scalar::F64(value) => value.into_bound_py_any(py),
        },
        Kind::String { .. } => match value.as_string() {
            Ok(text) => text.into_bound_py_any(py),
            // Not UTF-8: what is there.
            Err(_) => Ok(PyBytes::new(py, value.as_bytes().map_err(read)?).into_any()),
        },
        Kind::Array { element, .. } | Kind::Sequence { element, .. } => {
            if matches!(element.kind(), Kind::Primitive(Primitive::U8)) {
                return Ok(PyBytes::new(py, value.as_bytes().map_err(read)?).into_any());
            }
            let elements = PyList::empty(py);
            for element in value.elements().map_err(read)? {
                elements.append(object(py, &element.map_err(read)?)?)?;
            }
            Ok(elements.into_any())
        }
        _ => Ok(PyBytes::new(py, value.as_bytes().map_err(read)?).into_any()),
    }
}

/// The code of a number in numpy, without the order of its bytes.
pub fn numpy_code(element: Primitive) -> Option<&'static str> {
    Some(match element {
        Primitive::Bool => "?",
        Primitive::I8 => "i1",
        Primitive::I16 => "i2",
        Primitive::I32 => "i4",
        Primitive::I64 => "i8",
        Primitive::U8 => "u1",
        Primitive::U16 => "u2",
        Primitive::U32 => "u4",
        Primitive::U64 => "u8",
        Primitive::F32 => "f4",
        Primitive::F64 => "f8",
        _ => return None,
    })
}

/// Fails for an object that contains itself, or is nested too deeply.
fn check_depth(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
    if depth > DEPTH_MAX {
        return Err(wrong_value(format!("it is nested more than {DEPTH_MAX} times")));
    }
    if let Ok(map) = value.cast::<PyDict>() {
        for (_, part) in map {
            check_depth(&part, depth + 1)?;
        }
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        for part in value.try_iter()? {
            check_depth(&part?, depth + 1)?;
        }
    }
    Ok(())
}

/// A Python object that a value is written from.
struct Object<'py>(Bound<'py, PyAny>);

impl<'py> Input<'py> for Object<'py> {
    fn item(self) -> Item<'py, Self> {
        let value = self.0;
        if value.is_none() {
            return Item::Null;
        }
        if value.is_instance_of::<PyBool>() {
            return value.extract().map_or(Item::Null, |it| Item::Scalar(Scalar::Bool(it)));
        }
        if value.is_instance_of::<PyInt>() {
            let signed = value.extract::<i128>().map(Scalar::Signed);
            let scalar = signed.or_else(|_| value.extract::<u128>().map(Scalar::Unsigned));
            return scalar.map_or(Item::Null, Item::Scalar);
        }
        if value.is_instance_of::<PyFloat>() {
            return value.extract().map_or(Item::Null, |it| Item::Scalar(Scalar::F64(it)));
        }
        if let Ok(text) = value.cast::<PyString>() {
            return text.extract::<String>().map_or(Item::Null, |it| Item::Text(Cow::Owned(it)));
        }
        if let Ok(map) = value.cast::<PyDict>() {
            let field =
                |(name, part): (Bound<'py, PyAny>, _)| (Cow::Owned(name.to_string()), Object(part));
            return Item::Map(map.iter().map(field).collect());
        }
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            let parts = value.try_iter().into_iter().flatten().flatten();
            return Item::List(parts.map(Object).collect());
        }
        if let Ok(bytes) = Bytes::of(&value)
            && bytes.are_plain()
            && bytes.length() > 0
        {
            // SAFETY: the buffer keeps its bytes, and the GIL keeps others from changing them.
            let bytes = unsafe { std::slice::from_raw_parts(bytes.pointer(), bytes.length()) };
            return Item::Bytes(Cow::Owned(bytes.to_vec()));
        }
        if Bytes::of(&value).is_ok_and(|bytes| bytes.are_plain()) {
            return Item::List(Vec::new());
        }
        // A scalar of numpy.
        match value.call_method0("item") {
            Ok(number)
                if number.is_instance_of::<PyInt>() || number.is_instance_of::<PyFloat>() =>
            {
                Object(number).item()
            }
            _ => Item::Null,
        }
    }
}
