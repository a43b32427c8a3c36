//! Publish runs as a reader meets them: the publish call against the number of subscribers, in ns.

use myelin_bench_kit::protocol::Transport;

use super::document::{Column, Table, TableCell};
use super::entry::Entry;
use super::format;
use super::table::Notes;
use super::view::Group;

/// The call itself, and what remains of it beyond the clock, with what a subscriber adds.
pub(super) fn tables(group: &Group) -> Vec<Table> {
    let mut notes = Notes::default();
    let call = table(group, call_caption(group), |entry| call(entry, &mut notes));
    let beyond = table(group, beyond_caption(group), |entry| beyond(group, entry));
    vec![Table { notes: notes.0, ..call }, beyond]
}

fn table(group: &Group, caption: String, mut cell: impl FnMut(&Entry) -> TableCell) -> Table {
    let columns = group.configurations(&group.systems);
    let columns = columns.map(|place| (Column::new(place.0.name, place.1.name()), place)).collect();
    let rows = group.points().map(|point| (group.label(point), point));
    Table::new(caption, columns, rows, |point, configuration| {
        let entry = group.at(*point).find(|entry| entry.configured() == *configuration);
        entry.map_or_else(TableCell::absent, &mut cell)
    })
}

fn call_caption(group: &Group) -> String {
    let sizes: Vec<_> = group.payloads.iter().map(|&size| format::bytes(size)).collect();
    let sizes = sizes.join(", ");
    format!("publish call of {sizes}, ns: p50, p99 and [interval of p50, of at least 93.75 %]")
}

fn beyond_caption(group: &Group) -> String {
    let clock = match group.clock_read_ns > 0.0 {
        true => format!("{:.0} ns", group.clock_read_ns),
        false => "not calibrated".to_owned(),
    };
    format!(
        "p50 less a clock read ({clock}), ns; what each further subscriber adds [95 % interval]"
    )
}

fn call(entry: &Entry, notes: &mut Notes) -> TableCell {
    let cell = entry.cell;
    let [sent, received, lost] = [cell.sent, cell.received, cell.lost].map(format::count);
    TableCell { mark: notes.invalid(entry), ..TableCell::plain(format::ns_or_dash(entry.p50())) }
        .side(format::ns_or_dash(entry.latency().and_then(|latency| latency.p99)))
        .small(entry.p50_interval().map(format::interval_ns).unwrap_or_default())
        .valid(cell.valid)
        .title(format!("{}: {sent} published, {received} taken, {lost} lost", entry.name()))
}

fn beyond(group: &Group, entry: &Entry) -> TableCell {
    // A simulated clock is read in no time.
    let is_known = group.clock_read_ns > 0.0 && entry.system.transport != Transport::None;
    let rest = is_known.then(|| Some(entry.p50()? - group.clock_read_ns / 1e3));
    let further = entry.cell.further_subscriber.map(format::further_subscriber);
    TableCell::plain(format::ns_or_dash(rest.flatten()))
        .small(further.unwrap_or_default())
        .valid(entry.cell.valid)
        .title(entry.name())
}
