//! The library for other hosts. It costs no latency, but an old one costs safety.

use myelin_dds::{SOUND, version_of};

use super::finding::{Finding, State};
use super::host::{Host, Judged, Unknown};

/// Which CycloneDDS a node with the network loads.
pub fn version(host: &Host) -> Judged {
    let measured = host.measured.as_ref();
    let measured = measured.ok_or_else(|| Unknown("it is loaded on this machine alone".into()))?;
    let Some(file) = &measured.cyclonedds else {
        let because = measured.cyclonedds_missing.as_deref().unwrap_or("it was not looked for");
        return Err(Unknown(format!("there is none, and nodes cannot use the network: {because}")));
    };
    let shown = file.display().to_string();
    let Some(version) = version_of(file) else {
        return Err(Unknown(format!("{shown}: there is no version in its name")));
    };
    let number = version.map(|part| part.to_string()).join(".");
    let is_old = version < SOUND;
    let state = if is_old { State::Note } else { State::Ok };
    let finding = Finding::new(state, format!("{number}, {shown}"))
        .value("version", number)
        .value("file", shown);
    if !is_old {
        return Ok(finding);
    }
    let what = "with a keystore, a malformed handshake can end a process: the authentication plug-in reads \
                behind its end. The sender needs a certificate, which every handshake shows, and not its key";
    let newer = SOUND.map(|part| part.to_string()).join(".");
    let remedy = format!(
        "install {newer} or a later 0.10: that of ROS 2 in \
         /opt/ros is found by itself; MYELIN_CYCLONEDDS names another one. Or keep strangers off the network"
    );
    Ok(finding.expects(what, None, "CycloneDDS's commits 1d8aef61 and 683f50ed").remark(&remedy))
}
