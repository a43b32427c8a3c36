//! Latched messages of ROS 2: those that a subscriber gets which comes later. A part of a file that
//! begins in the middle has them at its begin.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::copy::CopyError;
use crate::format::Channel;
use crate::names::QOS_PROFILES;
use crate::qos::Offered;
use crate::reader::{BagReader, Message, MessagesError, Selection};
use crate::source::Source;

/// How many messages the publishers of a channel keep for subscribers that come later.
fn depth(channel: &Channel) -> usize {
    let profiles = channel.metadata.get(QOS_PROFILES).map(String::as_str);
    (Offered::read(profiles, &[]).latched as usize).min(KEPT_MAX)
}

/// The latched messages of these channels before a time, in order of log time.
pub(crate) fn before<S: Source>(
    from: &BagReader<S>,
    channels: Option<&BTreeSet<u16>>,
    start_ns: u64,
) -> Result<Vec<Message>, CopyError> {
    let all = from.info().definitions.channels.iter();
    let chosen = all.filter(|(id, _)| channels.is_none_or(|channels| channels.contains(id)));
    let depths: BTreeMap<u16, usize> = chosen.map(|(id, channel)| (*id, depth(channel))).collect();
    let latched = depths.iter().filter(|(_, depth)| **depth > 0).map(|(id, _)| *id);
    let selection = Selection {
        channels: Some(latched.collect()),
        end_ns: Some(start_ns),
        ..Selection::default()
    };
    let mut kept = BTreeMap::<u16, VecDeque<Message>>::new();
    for message in from.messages(&selection)? {
        let message = match message {
            Ok(message) => message,
            Err(MessagesError::Lost(_)) => continue, // It is no part of what was asked for.
            Err(error) => return Err(error.into()),
        };
        let of_channel = kept.entry(message.head.channel).or_default();
        if of_channel.len() == depths[&message.head.channel] {
            of_channel.pop_front();
        }
        of_channel.push_back(message.alone());
    }
    let mut kept: Vec<_> = kept.into_values().flatten().collect();
    kept.sort_by_key(|message| message.head.log_ns);
    Ok(kept)
}

/// Of a channel.
const KEPT_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_of_publishers_are_read() {
        let depth = |profiles: &str| {
            let metadata = [(QOS_PROFILES.to_owned(), profiles.to_owned())].into();
            super::depth(&Channel { metadata, ..Channel::default() })
        };
        assert_eq!(super::depth(&Channel::default()), 0);
        assert_eq!(depth("- history: keep_last\n  depth: 10\n  durability: volatile\n"), 0);
        assert_eq!(depth("- history: keep_last\n  depth: 10\n  durability: transient_local"), 10);
        let two = "- durability: 1\n  depth: 2\n- durability: 2\n  depth: 5\n- durability: 1\n";
        assert_eq!(depth(two), 3);
        assert_eq!(depth("- depth: 99999999\n  durability: transient_local"), KEPT_MAX);
        assert_eq!(depth("no list: at all"), 0);
    }
}
