//! The configuration files that drivers wrote for the measured runs, for a user's own programs.

use super::{Advised, File, MARK, points};
use crate::lists::ascending;

/// A configuration file that a driver leaves in a run's folder.
struct Recorded {
    /// Its name there.
    file: &'static str,
    /// Replaces it after the system's name.
    suffix: &'static str,
    /// How to use the file, depending on its text; the path follows.
    usage: fn(&str) -> &'static str,
    /// What a user of the file needs to know.
    remark: &'static str,
}

const RECORDED: [Recorded; 3] = [
    Recorded {
        file: "cyclonedds.xml",
        suffix: "xml",
        usage: |_| "CYCLONEDDS_URI=file://",
        remark: "For the measured version of CycloneDDS, on this host only. To reach other hosts, \
                 delete the elements Interfaces, AllowMulticast and Discovery.",
    },
    Recorded {
        file: "fastdds.xml",
        suffix: "xml",
        usage: fastdds_variable,
        remark: "For the measured version of Fast DDS. As measured, it uses only this host and \
                 only this transport. History, reliability and resource limits are those of the \
                 run. They apply to participants, writers and readers without a profile of their \
                 own; QoS set in a program takes precedence.",
    },
    Recorded {
        file: "roudi.toml",
        suffix: "roudi.toml",
        usage: |_| "iox-roudi -c ",
        remark: "The pools fit one run like the measured one; smaller messages use them, too. If \
                 several topics have this size, multiply count. A host has one RouDi: for several \
                 systems, put the pools of all files into one. RouDi reserves them when it starts.",
    },
];

/// The files of each system, from the run with the largest payload: they work for smaller ones, too.
pub(super) fn files(advised: &[Advised]) -> Vec<File> {
    let systems = ascending(advised.iter().map(|one| one.system));
    let of_system = |system| {
        let ours = move || advised.iter().filter(move |one| one.system == system);
        RECORDED.iter().filter_map(move |kind| {
            let given = ours().filter(|one| one.configuration.contains_key(kind.file));
            let largest = given.max_by_key(|one| one.params.payload_bytes)?;
            Some(kind.copy(largest, &points(ours())))
        })
    };
    systems.into_iter().flat_map(of_system).collect()
}

impl Recorded {
    fn copy(&self, of: &Advised, points: &str) -> File {
        let text = &of.configuration[self.file];
        let name = format!("{}.{}", of.system, self.suffix);
        let usage = format!("{}…/{name}", (self.usage)(text));
        let remark = [
            format!(
                "{MARK}: the {} of {} in the run of {}.",
                self.file,
                of.system,
                of.circumstances()
            ),
            format!("Use: {usage}"),
            self.remark.to_owned(),
        ];
        let text = match self.suffix {
            "xml" => below_declaration(&for_programs(text), &remark),
            _ => format!("# {}\n{text}", remark.join("\n# ")),
        };
        File { name, about: format!("{} for: {points}", of.system), usage, text }
    }
}

/// A run of CycloneDDS has a domain of its own, and does not wait at its end for acknowledgements.
fn for_programs(text: &str) -> String {
    let text = text.replace(LINGER, "<!-- WriterLingerDuration 0 s: for runs only -->");
    let domain = text.split_once("<Domain Id=\"").and_then(|(before, rest)| {
        Some(format!("{before}<Domain Id=\"any\"{}", rest.split_once('"')?.1))
    });
    domain.unwrap_or(text)
}

/// Nothing may stand before an XML declaration.
fn below_declaration(text: &str, remark: &[String]) -> String {
    let remark = format!("<!-- {} -->", remark.join("\n     "));
    match text.split_once("?>") {
        Some((declaration, rest)) => format!("{declaration}?>\n{remark}{rest}"),
        None => format!("{remark}\n{text}"),
    }
}

/// Fast DDS 3 reads another variable than 2, and its profiles have other names.
fn fastdds_variable(profiles: &str) -> &'static str {
    match profiles.contains("<heartbeat_response_delay>") {
        true => "FASTDDS_DEFAULT_PROFILES_FILE=",
        false => "FASTRTPS_DEFAULT_PROFILES_FILE=",
    }
}

const LINGER: &str = "<WriterLingerDuration>0 s</WriterLingerDuration>";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_of_fast_dds_has_its_own_variable() {
        let two = "<times><heartbeatResponseDelay></heartbeatResponseDelay></times>";
        let three = "<times><heartbeat_response_delay></heartbeat_response_delay></times>";
        assert_eq!(fastdds_variable(two), "FASTRTPS_DEFAULT_PROFILES_FILE=");
        assert_eq!(fastdds_variable(three), "FASTDDS_DEFAULT_PROFILES_FILE=");
    }
}
