//! What the Parquet files of a results folder have in common.

use std::fs::File;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::DataType;
use parquet::errors::Result;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedRowGroupWriter;

/// A row group of a file.
pub(crate) type Group<'a, 'b> = SerializedRowGroupWriter<'a, &'b File>;

/// How files are written.
pub(crate) fn properties() -> Result<WriterPropertiesBuilder> {
    Ok(WriterProperties::builder()
        .set_created_by(concat!("myelin ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(COMPRESSION)?)))
}

/// Writes the next column of the group. `None` is null.
pub(crate) fn write_column<T: DataType>(
    group: &mut Group<'_, '_>,
    cells: impl Iterator<Item = Option<T::T>>,
) -> Result<()> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    let mut column = group.next_column()?.expect("the schema has each of the columns");
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

/// Limit of a row group; with the columns of samples it takes some 100 MB of memory.
pub(crate) const ROWS_PER_GROUP: usize = 1 << 18;
/// Level of zstd.
const COMPRESSION: i32 = 3;
