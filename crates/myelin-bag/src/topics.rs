//! Which topics of a recording are meant: one rule for the player, the reader and every tool.

use std::collections::BTreeSet;

use myelin::pattern::{is_match, is_pattern};

use crate::ending::Definitions;
use crate::recorded_losses::RecordedLosses;

/// Topics by names and by patterns, in which `*` stands for any text and `?` for one character.
/// The `/` with which names of ROS 2 begin may be left out, unless another topic has the shorter name.
#[derive(Clone, Debug, Default)]
pub struct Topics {
    /// Only these; all if there are none.
    pub wanted: Vec<String>,
    /// Not these.
    pub unwanted: Vec<String>,
}

/// A name or a pattern that no topic of the recording has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no topic of the recording matches {pattern:?}")]
pub struct NoTopic {
    /// As it was given.
    pub pattern: String,
}

impl Topics {
    /// The chosen topics of these.
    ///
    /// # Errors
    /// A name or a pattern that names none of them.
    pub fn choose<'a>(
        &self,
        of: impl IntoIterator<Item = &'a str>,
    ) -> Result<BTreeSet<&'a str>, NoTopic> {
        let all: BTreeSet<&str> = of.into_iter().collect();
        let mut chosen = match &self.wanted[..] {
            [] => all.clone(),
            wanted => named(wanted, &all)?,
        };
        for topic in named(&self.unwanted, &all)? {
            chosen.remove(topic);
        }
        Ok(chosen)
    }

    /// The chosen topics of the robot: [`RecordedLosses::TOPIC`], which the recorder wrote itself,
    /// is among them only if it is wanted by its full name.
    ///
    /// # Errors
    /// As [`choose`](Topics::choose).
    pub fn choose_of_robot<'a>(
        &self,
        of: impl IntoIterator<Item = &'a str>,
    ) -> Result<BTreeSet<&'a str>, NoTopic> {
        let mut chosen = self.choose(of)?;
        if !self.wanted.iter().any(|wanted| wanted == RecordedLosses::TOPIC) {
            chosen.remove(RecordedLosses::TOPIC);
        }
        Ok(chosen)
    }

    /// The channels of the chosen topics.
    ///
    /// # Errors
    /// As [`choose`](Topics::choose).
    pub fn channels(&self, of: &Definitions) -> Result<BTreeSet<u16>, NoTopic> {
        let topics = self.choose(of.topics())?;
        let channels = of.channels.iter().filter(|(_, it)| topics.contains(&*it.topic));
        Ok(channels.map(|(id, _)| *id).collect())
    }
}

/// The topics that at least one of the patterns names.
fn named<'a>(patterns: &[String], all: &BTreeSet<&'a str>) -> Result<BTreeSet<&'a str>, NoTopic> {
    let mut chosen = BTreeSet::new();
    for pattern in patterns {
        let mut named = all.iter().filter(|name| is_meant(pattern, name, all)).peekable();
        if named.peek().is_none() {
            return Err(NoTopic { pattern: pattern.clone() });
        }
        chosen.extend(named);
    }
    Ok(chosen)
}

/// Whether a name or a pattern, with or without the `/` of ROS 2, means this topic of all.
fn is_meant(typed: &str, name: &str, all: &BTreeSet<&str>) -> bool {
    let bare = name.strip_prefix('/');
    if is_pattern(typed) {
        return is_match(typed, name) || bare.is_some_and(|bare| is_match(typed, bare));
    }
    typed == name || bare == Some(typed) && !all.contains(typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] =
        ["/camera/left", "/camera/right", "odometry", "/odometry", RecordedLosses::TOPIC];

    fn topics(wanted: &[&str], unwanted: &[&str]) -> Topics {
        let owned = |of: &[&str]| of.iter().map(|it| (*it).to_owned()).collect();
        Topics { wanted: owned(wanted), unwanted: owned(unwanted) }
    }

    #[test]
    fn topics_are_named_and_excluded() {
        let chosen = |wanted: &[&str], unwanted: &[&str]| {
            topics(wanted, unwanted).choose(NAMES).map(|it| it.into_iter().collect::<Vec<_>>())
        };
        assert_eq!(chosen(&[], &[]).map(|it| it.len()), Ok(5));
        assert_eq!(chosen(&["camera/*"], &["*right"]), Ok(vec!["/camera/left"]));
        assert_eq!(chosen(&["odometry"], &[]), Ok(vec!["odometry"]), "its very name");
        assert_eq!(
            chosen(&["camera/left", "/odometry"], &[]),
            Ok(vec!["/camera/left", "/odometry"])
        );
        assert_eq!(chosen(&["?camera*"], &["*"]), Ok(vec![]));
        for (wanted, unwanted, pattern) in
            [(&["/camera/lfet"][..], &[][..], "/camera/lfet"), (&[], &["laser*"], "laser*")]
        {
            assert_eq!(chosen(wanted, unwanted), Err(NoTopic { pattern: pattern.into() }));
        }
    }

    #[test]
    fn what_the_recorder_wrote_is_chosen_by_its_name_alone() {
        let has_own = |wanted: &[&str]| {
            let chosen = topics(wanted, &[]).choose_of_robot(NAMES).unwrap();
            chosen.contains(RecordedLosses::TOPIC)
        };
        assert!(!has_own(&[]));
        assert!(!has_own(&["*"]));
        assert!(has_own(&["odometry", RecordedLosses::TOPIC]));
    }
}
