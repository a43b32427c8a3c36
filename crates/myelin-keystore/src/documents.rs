//! The two documents of DDS Security (9.4.1): what a domain protects, and what an identity may do.

use time::OffsetDateTime;

use crate::{Error, Rights};

/// All of a domain is encrypted, and nobody unknown comes in: as SROS 2 has it.
pub(crate) fn governance() -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:noNamespaceSchemaLocation="http://www.omg.org/spec/DDS-SECURITY/20170901/omg_shared_ca_governance.xsd">
  <domain_access_rules>
    <domain_rule>
      {DOMAINS}
      <allow_unauthenticated_participants>false</allow_unauthenticated_participants>
      <enable_join_access_control>true</enable_join_access_control>
      <discovery_protection_kind>ENCRYPT</discovery_protection_kind>
      <liveliness_protection_kind>ENCRYPT</liveliness_protection_kind>
      <rtps_protection_kind>SIGN</rtps_protection_kind>
      <topic_access_rules>
        <topic_rule>
          <topic_expression>*</topic_expression>
          <enable_discovery_protection>true</enable_discovery_protection>
          <enable_liveliness_protection>true</enable_liveliness_protection>
          <enable_read_access_control>true</enable_read_access_control>
          <enable_write_access_control>true</enable_write_access_control>
          <metadata_protection_kind>ENCRYPT</metadata_protection_kind>
          <data_protection_kind>ENCRYPT</data_protection_kind>
        </topic_rule>
      </topic_access_rules>
    </domain_rule>
  </domain_access_rules>
</dds>
"#
    )
}

/// What the enclave `name` may do, from when to when.
pub(crate) fn permissions(
    name: &str,
    rights: &Rights,
    not_before: OffsetDateTime,
    not_after: OffsetDateTime,
) -> Result<String, Error> {
    let (not_before, not_after) = (date(not_before), date(not_after));
    let publish = topics("publish", &rights.publish)?;
    let subscribe = topics("subscribe", &rights.subscribe)?;
    Ok(format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:noNamespaceSchemaLocation="http://www.omg.org/spec/DDS-SECURITY/20170901/omg_shared_ca_permissions.xsd">
  <permissions>
    <grant name="{name}">
      <subject_name>CN={name}</subject_name>
      <validity>
        <not_before>{not_before}</not_before>
        <not_after>{not_after}</not_after>
      </validity>
      <allow_rule>
        {DOMAINS}{publish}{subscribe}
      </allow_rule>
      <default>DENY</default>
    </grant>
  </permissions>
</dds>
"#
    ))
}

fn topics(direction: &str, names: &[String]) -> Result<String, Error> {
    let mut expressions: Vec<String> = OWN_TOPICS.map(str::to_owned).to_vec();
    for name in names {
        expressions.extend(expressions_of(name)?);
    }
    let topics =
        expressions.iter().map(|it| format!("\n            <topic>{}</topic>", escape(it)));
    let topics: String = topics.collect();
    Ok(format!(
        "
        <{direction}>
          <topics>{topics}
          </topics>
          <partitions>
            <partition>*</partition>
          </partitions>
        </{direction}>"
    ))
}

/// The names that a topic has in DDS: of Myelin's own type, of a DDS type, of a ROS 2 topic.
fn expressions_of(name: &str) -> Result<Vec<String>, Error> {
    let is_bad = |it: char| it.is_control() || it.is_whitespace() || "\"'<>&\\".contains(it);
    if name.is_empty() || name.contains(is_bad) {
        return Err(Error::Topic(name.to_owned()));
    }
    // `*` and `?` stay, also where they have a meaning inside brackets.
    let parts = name.split_inclusive(['*', '?']).map(|part| match part.strip_suffix(['*', '?']) {
        Some(text) => encode(text) + &part[text.len()..],
        None => encode(part),
    });
    let private = myelin_dds::TOPIC_PREFIX.to_owned() + &parts.collect::<String>();
    let ros = name.starts_with('/').then(|| format!("rt{name}"));
    Ok([private, name.to_owned()].into_iter().chain(ros).collect())
}

fn encode(text: &str) -> String {
    let name = myelin_dds::private_topic(text);
    name.strip_prefix(myelin_dds::TOPIC_PREFIX).unwrap_or(&name).to_owned()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// As SROS 2 writes it: the time of UTC, without a zone.
fn date(time: OffsetDateTime) -> String {
    let (year, month, day) = time.to_calendar_date();
    let (hour, minute, second) = time.to_hms();
    format!("{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}", u8::from(month))
}

/// All domains that DDS has ports for.
const DOMAINS: &str = "<domains><id_range><min>0</min><max>230</max></id_range></domains>";
/// The topics by which Myelin's nodes, and ROS 2's, know of each other.
const OWN_TOPICS: [&str; 2] = ["rt/_myelin/*", "ros_discovery_info"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_has_the_names_by_which_dds_programs_know_it() {
        let of = |name| expressions_of(name).unwrap();
        assert_eq!(of("front_camera"), ["myelin/front_5fcamera", "front_camera"]);
        assert_eq!(of("camera/*"), ["myelin/camera/*", "camera/*"]);
        assert_eq!(of("/chatter"), ["myelin//chatter", "/chatter", "rt/chatter"]);
        assert_eq!(of("*"), ["myelin/*", "*"]);
        for bad in ["", "a b", "a<b", "a\"", "a\n"] {
            assert!(expressions_of(bad).is_err(), "{bad:?}");
        }
    }
}
