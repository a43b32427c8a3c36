//! Payload types, as Python describes them.

use std::ffi::CString;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::{raised, wrong_value};
use crate::memory::Bytes;

/// The memory layout of a plain value.
#[pyclass(frozen, module = "myelin._native")]
pub struct Layout(myelin::Layout);

#[pymethods]
impl Layout {
    #[staticmethod]
    fn scalar(name: &str) -> PyResult<Layout> {
        let layout = myelin::Layout::scalar(name);
        layout.map(Layout).ok_or_else(|| wrong_value(format!("there is no scalar {name:?}")))
    }

    #[staticmethod]
    fn array(element: &Layout, length: usize) -> PyResult<Layout> {
        myelin::Layout::array(&element.0, length).map(Layout).map_err(raised)
    }

    #[staticmethod]
    fn structure(
        name: &str,
        fields: Vec<(String, Py<Layout>, usize)>,
        bytes: usize,
        align: usize,
    ) -> PyResult<Layout> {
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, layout, offset)| (name.as_str(), &layout.get().0, *offset))
            .collect();
        myelin::Layout::structure(name, &fields, bytes, align).map(Layout).map_err(raised)
    }

    fn named(&self, name: &str) -> Layout {
        Layout(self.0.clone().named(name))
    }

    #[getter]
    fn hash(&self) -> u64 {
        self.0.hash()
    }

    #[getter]
    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    #[getter]
    fn align(&self) -> usize {
        self.0.align()
    }

    #[getter]
    fn type_name(&self) -> &str {
        self.0.type_name()
    }
}

/// A payload type, and the format of its buffers.
#[pyclass(frozen, module = "myelin._native")]
pub struct Type {
    pub dynamic_type: myelin::DynamicType,
    /// The `struct` code of a scalar, and an element's shape in such scalars; otherwise bytes.
    format: CString,
    item_bytes: usize,
    element_shape: Option<Vec<isize>>,
}

#[pymethods]
impl Type {
    /// `element_shape`: `None` for elements that a buffer shows as bytes.
    #[new]
    #[pyo3(signature = (kind, layout, header=None, format="B", item_bytes=1, element_shape=None))]
    fn new(
        kind: &str,
        layout: &Layout,
        header: Option<&Layout>,
        format: &str,
        item_bytes: usize,
        element_shape: Option<Vec<isize>>,
    ) -> PyResult<Type> {
        let dynamic_type = match (kind, header) {
            ("value", _) => myelin::DynamicType::value(&layout.0),
            ("slice", _) => myelin::DynamicType::slice(&layout.0).map_err(raised)?,
            ("header_slice", Some(header)) => {
                myelin::DynamicType::header_slice(&header.0, &layout.0).map_err(raised)?
            }
            _ => return Err(PyValueError::new_err("value, slice or header_slice")),
        };
        let format = CString::new(format)?;
        Ok(Type { dynamic_type, format, item_bytes, element_shape })
    }

    #[getter]
    fn hash(&self) -> u64 {
        self.dynamic_type.hash()
    }

    #[getter]
    fn name(&self) -> &str {
        self.dynamic_type.type_name()
    }

    #[getter]
    fn elements_offset(&self) -> usize {
        self.dynamic_type.elements_offset()
    }
}

impl Type {
    /// One whose buffers show bytes.
    pub fn of(dynamic_type: myelin::DynamicType) -> PyResult<Type> {
        Ok(Type { dynamic_type, format: CString::new("B")?, item_bytes: 1, element_shape: None })
    }

    /// How many bytes a sample of `length` elements has; `None` for a single value.
    pub fn bytes_of(&self, length: Option<usize>) -> PyResult<usize> {
        match (length, self.dynamic_type.element_bytes()) {
            (None, 0) => Ok(self.dynamic_type.bytes_of(0)),
            (Some(length), 1..) => Ok(self.dynamic_type.bytes_of(length)),
            (None, _) => Err(wrong_value(format!(
                "a loan of {} takes the number of its elements",
                self.dynamic_type.type_name()
            ))),
            (Some(_), 0) => Err(wrong_value(format!(
                "a loan of {} takes no number, because it is one value",
                self.dynamic_type.type_name()
            ))),
        }
    }

    /// How many elements a sample of so many bytes has; `None` for a single value.
    pub fn elements_of(&self, bytes: usize) -> Option<usize> {
        let element = self.dynamic_type.element_bytes();
        (element > 0).then(|| (bytes - self.dynamic_type.elements_offset()) / element)
    }

    pub fn check(&self, bytes: usize) -> PyResult<()> {
        if self.dynamic_type.fits(bytes) {
            return Ok(());
        }
        Err(wrong_value(format!("{bytes} bytes are not a {}", self.dynamic_type.type_name())))
    }

    /// Whether a buffer of it is a row of bytes.
    pub fn shows_bytes(&self) -> bool {
        match &self.element_shape {
            None => true,
            Some(inner) => self.dynamic_type.element_bytes() == 1 && inner.is_empty(),
        }
    }

    /// The shape of a buffer of so many bytes, and the bytes of an item.
    pub fn shape(&self, bytes: usize) -> (Vec<isize>, usize) {
        let Some(inner) = &self.element_shape else { return (vec![bytes as isize], 1) };
        let outer = self.elements_of(bytes).map(|elements| elements as isize);
        (outer.into_iter().chain(inner.iter().copied()).collect(), self.item_bytes)
    }

    /// The format of an item.
    pub fn format(&self) -> &CString {
        &self.format
    }
}

/// A type with the Python object that reads and writes its values.
pub struct Carried {
    /// `myelin._types.Carried`.
    codec: Py<PyAny>,
    of_type: Py<Type>,
}

impl Carried {
    pub fn new(codec: &Bound<'_, PyAny>) -> PyResult<Carried> {
        let of_type = codec.getattr("native")?.cast_into::<Type>()?.unbind();
        Ok(Carried { codec: codec.clone().unbind(), of_type })
    }

    pub fn of_type(&self) -> &Type {
        self.of_type.get()
    }

    /// The bytes of a value. As long as the result lives, `value` does not change.
    pub fn pack(&self, value: &Bound<'_, PyAny>) -> PyResult<Bytes> {
        let dynamic_type = &self.of_type().dynamic_type;
        let is_bytes = (dynamic_type.elements_offset(), dynamic_type.element_bytes()) == (0, 1);
        let as_it_is = if is_bytes { Bytes::of(value).ok().filter(Bytes::are_plain) } else { None };
        let bytes = match as_it_is {
            Some(bytes) => bytes,
            None => Bytes::of(&self.codec(value.py()).call_method1("pack", (value,))?)?,
        };
        self.of_type().check(bytes.length())?;
        Ok(bytes)
    }

    pub fn codec<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.codec.bind(py)
    }
}
