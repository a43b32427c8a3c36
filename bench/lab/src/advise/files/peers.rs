//! XML files for CycloneDDS and Fast DDS.

use std::ops::Range;

use roxmltree::{Document, Node};

use super::system::wanted_bytes;
use super::{Advised, File, MARK, points};
use crate::lists::ascending;

/// A configuration file that a driver leaves in a run's folder.
struct PeerFile {
    /// Its name.
    file: &'static str,
    /// How to use the file, depending on its text.
    usage: fn(&str) -> &'static str,
    /// What a user of the file needs to know.
    remark: &'static str,
    edit: fn(&mut Edits, &Advised),
}

const KINDS: [PeerFile; 2] = [
    PeerFile {
        file: "cyclonedds.xml",
        usage: |_| "CYCLONEDDS_URI=file://",
        remark: "For the measured version of CycloneDDS, on this host only. To reach other hosts, \
                 delete the elements Interfaces, AllowMulticast and Discovery.",
        edit: edit_cyclonedds,
    },
    PeerFile {
        file: "fastdds.xml",
        usage: fastdds_variable,
        remark: "For the measured version of Fast DDS. As measured, it uses only this host and \
                 only this transport. History, reliability and resource limits are those of the \
                 run. They apply to participants, writers and readers without a profile of their \
                 own; QoS set in a program takes precedence.",
        edit: edit_fastdds,
    },
];

/// One file for each system; also the reasons why others could not be made.
pub(super) fn files(advised: &[Advised]) -> (Vec<File>, Vec<String>) {
    let (mut files, mut failures) = (Vec::new(), Vec::new());
    for system in ascending(advised.iter().map(|one| one.system)) {
        for kind in &KINDS {
            let ours = || advised.iter().filter(|one| one.system == system);
            let given = ours().filter(|one| one.configuration.contains_key(kind.file));
            // A configuration for one size works for smaller sizes, too.
            let Some(largest) = given.max_by_key(|one| one.params.payload_bytes) else { continue };
            match kind.make(largest, &points(ours())) {
                Ok(file) => files.push(file),
                Err(error) => failures.push(format!(
                    "{system}: the recorded {} is not XML ({error}); no file was written from it",
                    kind.file
                )),
            }
        }
    }
    (files, failures)
}

impl PeerFile {
    fn make(&self, largest: &Advised, points: &str) -> Result<File, roxmltree::Error> {
        let text = &largest.configuration[self.file];
        let mut edits = Edits::of(text)?;
        let name = format!("{}.xml", largest.system);
        let usage = format!("{}…/{name}", (self.usage)(text));
        edits.comment(&format!(
            "{MARK} from the configuration of {} in the run of {}.\n     Use: {usage}\n     {}",
            largest.system,
            largest.circumstances(),
            self.remark
        ));
        (self.edit)(&mut edits, largest);
        let about = format!("{} for: {points}", largest.system);
        Ok(File { name, about, usage, text: edits.finish() })
    }
}

fn edit_cyclonedds(edits: &mut Edits, advised: &Advised) {
    edits.set_attribute("Domain", "Id", "any");
    // These shorten a run; a program must wait at its end until its messages have arrived.
    edits.remove("PreEmptiveAckDelay");
    edits.remove("WriterLingerDuration");
    if let Some(measured) = edits.attribute_number("SocketReceiveBufferSize", "max") {
        let bytes = measured.max(wanted_bytes(advised.params.payload_bytes));
        edits.set_attribute("SocketReceiveBufferSize", "max", &format!("{bytes}B"));
    }
}

fn edit_fastdds(edits: &mut Edits, advised: &Advised) {
    // The comment next to it says that it suits a short run.
    edits.remove("initialAnnouncements");
    for element in SOCKET_BUFFERS {
        if let Some(measured) = edits.text_number(element) {
            let bytes = measured.max(wanted_bytes(advised.params.payload_bytes));
            edits.set_text(element, &bytes.to_string());
        }
    }
}

/// Fast DDS 3 reads another variable than 2, and its profiles have other names.
fn fastdds_variable(profiles: &str) -> &'static str {
    match profiles.contains("<heartbeat_response_delay>") {
        true => "FASTDDS_DEFAULT_PROFILES_FILE=",
        false => "FASTRTPS_DEFAULT_PROFILES_FILE=",
    }
}

/// An XML text and edits of parts of it; the rest, including comments and indentation, does not
/// change.
struct Edits<'a> {
    text: &'a str,
    document: Document<'a>,
    edits: Vec<(Range<usize>, String)>,
}

impl<'a> Edits<'a> {
    /// Parses `text`, which must be XML.
    fn of(text: &'a str) -> Result<Self, roxmltree::Error> {
        let document = Document::parse(text)?;
        Ok(Edits { text, document, edits: Vec::new() })
    }

    /// Puts a comment before the outermost element.
    fn comment(&mut self, comment: &str) {
        let start = self.document.root_element().range().start;
        self.edits.push((start..start, format!("<!-- {comment} -->\n")));
    }

    /// Sets an attribute of every element with this name.
    fn set_attribute(&mut self, element: &str, name: &str, value: &str) {
        self.replace(element, value, |node| Some(node.attribute_node(name)?.range_value()));
    }

    /// Sets the text of every element with this name.
    fn set_text(&mut self, element: &str, text: &str) {
        self.replace(element, text, |node| Some(node.first_child()?.range()));
    }

    /// Removes the elements with this name, each with the comment right before it.
    fn remove(&mut self, element: &str) {
        let text = self.text;
        self.replace(element, "", |node| {
            let start = before(node).unwrap_or(node.range().start);
            Some(text[..start].trim_end().len()..node.range().end)
        });
    }

    /// The number in an attribute of an element, without its unit; the largest if there are
    /// several.
    fn attribute_number(&self, element: &str, name: &str) -> Option<u64> {
        let values = self.elements(element).into_iter().filter_map(|node| node.attribute(name));
        values.filter_map(number).max()
    }

    /// The number in the text of an element, without its unit; the largest if there are several.
    fn text_number(&self, element: &str) -> Option<u64> {
        self.elements(element).into_iter().filter_map(|node| number(node.text()?)).max()
    }

    /// The edited text.
    fn finish(mut self) -> String {
        self.edits.sort_by_key(|(range, _)| range.start);
        let mut text = self.text.to_owned();
        for (range, with) in self.edits.into_iter().rev() {
            text.replace_range(range, &with);
        }
        text
    }

    fn replace(
        &mut self,
        element: &str,
        with: &str,
        range: impl Fn(Node<'_, 'a>) -> Option<Range<usize>>,
    ) {
        let ranges: Vec<_> = self.elements(element).into_iter().filter_map(range).collect();
        self.edits.extend(ranges.into_iter().map(|range| (range, with.to_owned())));
    }

    fn elements(&self, name: &str) -> Vec<Node<'_, 'a>> {
        let is_it = |node: &Node| node.is_element() && node.tag_name().name() == name;
        self.document.descendants().filter(is_it).collect()
    }
}

/// Start of the comment right before an element.
fn before(node: Node) -> Option<usize> {
    let mut earlier = node.prev_siblings().skip(1);
    let first = earlier.find(|it| !it.is_text() || it.text().is_some_and(|text| !blank(text)))?;
    first.is_comment().then(|| first.range().start)
}

fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

const SOCKET_BUFFERS: [&str; 2] = ["sendBufferSize", "receiveBufferSize"];

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "<?xml version=\"1.0\"?>\n<a xmlns=\"x\">\n  <b n=\"7 B\">old</b>\n  \
                        <!-- of c -->\n  <c>\n    <d/>\n  </c>\n  <!-- of e -->\n  <e/>\n</a>\n";

    #[test]
    fn edits_leave_the_rest_alone() {
        let mut edits = Edits::of(TEXT).unwrap();
        assert_eq!(edits.attribute_number("b", "n"), Some(7));
        assert_eq!(edits.text_number("b"), None);
        edits.comment("said");
        edits.set_attribute("b", "n", "8 B");
        edits.set_text("b", "new");
        edits.remove("c");
        edits.remove("none");
        let text = edits.finish();
        assert_eq!(
            text,
            "<?xml version=\"1.0\"?>\n<!-- said -->\n<a xmlns=\"x\">\n  <b n=\"8 B\">new</b>\n  \
             <!-- of e -->\n  <e/>\n</a>\n"
        );
        assert!(Document::parse(&text).is_ok());
        assert!(Edits::of("<a>").is_err());
    }

    #[test]
    fn a_comment_of_another_element_stays() {
        let mut edits = Edits::of("<a><!-- of b --><b/><c/></a>").unwrap();
        edits.remove("c");
        assert_eq!(edits.finish(), "<a><!-- of b --><b/></a>");
    }

    #[test]
    fn each_series_of_fast_dds_has_its_own_variable() {
        let two = "<times><heartbeatResponseDelay></heartbeatResponseDelay></times>";
        let three = "<times><heartbeat_response_delay></heartbeat_response_delay></times>";
        assert_eq!(fastdds_variable(two), "FASTRTPS_DEFAULT_PROFILES_FILE=");
        assert_eq!(fastdds_variable(three), "FASTDDS_DEFAULT_PROFILES_FILE=");
    }
}
