//! CycloneDDS's and Fast DDS's XML.

use super::system::wanted_bytes;
use super::xml::Edits;
use super::{Advised, File, MARK, points};
use crate::lists::ascending;

/// A kind of configuration that a driver leaves in a run's folder.
struct PeerFile {
    /// As the driver calls it.
    file: &'static str,
    usage: &'static str,
    /// What a user has to know who takes it over.
    remark: &'static str,
    edit: fn(&mut Edits, &Advised),
}

const KINDS: [PeerFile; 2] = [
    PeerFile {
        file: "cyclonedds.xml",
        usage: "CYCLONEDDS_URI=file://",
        remark: "For the CycloneDDS that was measured, this host alone. For topics to other hosts \
                 delete the elements Interfaces, AllowMulticast and Discovery.",
        edit: edit_cyclonedds,
    },
    PeerFile {
        file: "fastdds.xml",
        usage: "FASTRTPS_DEFAULT_PROFILES_FILE=",
        remark: "For Fast DDS 2.9. As measured: this host alone, over this transport and no other. \
                 History, reliability and resource limits are those of the run, for participants, \
                 writers and readers that ask for no other profile: a program's own QoS prevails.",
        edit: edit_fastdds,
    },
];

/// One file for each system; and what could not be made, and why.
pub(super) fn files(advised: &[Advised]) -> (Vec<File>, Vec<String>) {
    let (mut files, mut failures) = (Vec::new(), Vec::new());
    for system in ascending(advised.iter().map(|one| one.system)) {
        for kind in &KINDS {
            let ours = || advised.iter().filter(|one| one.system == system);
            let given = ours().filter(|one| one.configuration.contains_key(kind.file));
            // What is made for a size does for smaller ones.
            let Some(largest) = given.max_by_key(|one| one.params.payload_bytes) else { continue };
            match kind.make(largest, &points(ours())) {
                Ok(file) => files.push(file),
                Err(error) => failures.push(format!(
                    "{system}: the recorded {} is not XML ({error}); nothing was made of it",
                    kind.file
                )),
            }
        }
    }
    (files, failures)
}

impl PeerFile {
    fn make(&self, largest: &Advised, points: &str) -> Result<File, roxmltree::Error> {
        let mut edits = Edits::of(&largest.configuration[self.file])?;
        let name = format!("{}.xml", largest.system);
        let usage = format!("{}…/{name}", self.usage);
        edits.comment(&format!(
            "{MARK} of what {} was given in the run of {}.\n     Use: {usage}\n     {}",
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
    // They shorten a run; a program that ends has to wait until what it wrote has arrived.
    edits.remove("PreEmptiveAckDelay");
    edits.remove("WriterLingerDuration");
    if let Some(measured) = edits.attribute_number("SocketReceiveBufferSize", "max") {
        let bytes = measured.max(wanted_bytes(advised.params.payload_bytes));
        edits.set_attribute("SocketReceiveBufferSize", "max", &format!("{bytes}B"));
    }
}

fn edit_fastdds(edits: &mut Edits, advised: &Advised) {
    // It says itself that a run is short.
    edits.remove("initialAnnouncements");
    for element in SOCKET_BUFFERS {
        if let Some(measured) = edits.text_number(element) {
            let bytes = measured.max(wanted_bytes(advised.params.payload_bytes));
            edits.set_text(element, &bytes.to_string());
        }
    }
}

const SOCKET_BUFFERS: [&str; 2] = ["sendBufferSize", "receiveBufferSize"];
