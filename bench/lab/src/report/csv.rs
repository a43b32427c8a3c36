//! `summary.csv`: one row for each cell, one flat column for each figure, units in the names.
//! Empty means not measured or withheld; `summary.json` tells the two apart.

use crate::summary::{METRICS, Metric, Summary};

pub(super) fn render(summary: &Summary) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let written = write(summary, &mut writer);
    let bytes = written.and_then(|()| Ok(writer.into_inner().map_err(|e| e.into_error())?));
    let bytes = bytes.expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("every field was text")
}

/// Columns that would say the same of every cell are left out.
fn write(summary: &Summary, writer: &mut ::csv::Writer<Vec<u8>>) -> Result<(), ::csv::Error> {
    let metrics: Vec<&Metric> = METRICS.iter().filter(|it| it.is_of(&summary.cells)).collect();
    writer.write_record(metrics.iter().flat_map(|metric| metric.columns()))?;
    for cell in &summary.cells {
        writer.write_record(metrics.iter().flat_map(|metric| metric.fields(cell)))?;
    }
    Ok(())
}
