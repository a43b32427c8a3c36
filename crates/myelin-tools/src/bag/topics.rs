//! The topics of a recording that people mean.

use std::collections::BTreeSet;

use myelin_bag::Definitions;

use crate::Error;
use crate::names::{is_match, is_pattern, nearest};
use crate::text::printable;

/// Patterns of topics.
#[derive(Clone, Debug, Default)]
pub struct Topics {
    /// Only these; all if there are none.
    pub wanted: Vec<String>,
    /// Not these.
    pub unwanted: Vec<String>,
}

impl Topics {
    /// The topics of these definitions.
    ///
    /// # Errors
    /// A name or a pattern that names none of them: the nearest name.
    pub fn choose<'d>(
        &self,
        of: impl IntoIterator<Item = &'d Definitions>,
    ) -> Result<BTreeSet<String>, Error> {
        let channels = of.into_iter().flat_map(|definitions| definitions.channels.values());
        let all: BTreeSet<&str> = channels.map(|channel| channel.topic.as_str()).collect();
        let mut chosen: BTreeSet<&str> = match &self.wanted[..] {
            [] => all.clone(),
            wanted => meant(wanted, &all)?,
        };
        for topic in meant(&self.unwanted, &all)? {
            chosen.remove(topic);
        }
        if chosen.is_empty() && !all.is_empty() {
            return Err(Error::BadInput(
                "no topic is left: --exclude names all of them".to_owned(),
            ));
        }
        Ok(chosen.into_iter().map(str::to_owned).collect())
    }

    /// The channels of these definitions whose topics are chosen.
    ///
    /// # Errors
    /// As [`choose`](Topics::choose).
    pub fn channels(&self, of: &Definitions) -> Result<BTreeSet<u16>, Error> {
        let topics = self.choose([of])?;
        let channels = of.channels.iter().filter(|(_, channel)| topics.contains(&channel.topic));
        Ok(channels.map(|(id, _)| *id).collect())
    }
}

fn meant<'a>(patterns: &[String], all: &BTreeSet<&'a str>) -> Result<BTreeSet<&'a str>, Error> {
    let mut chosen = BTreeSet::new();
    for pattern in patterns {
        let named = all.iter().filter(|name| is_meant(pattern, name, all)).copied();
        let mut named = named.peekable();
        if named.peek().is_none() {
            return Err(missing(pattern, all));
        }
        chosen.extend(named);
    }
    Ok(chosen)
}

/// A name, a pattern, or either without the `/` of ROS 2.
fn is_meant(typed: &str, name: &str, all: &BTreeSet<&str>) -> bool {
    let bare = name.strip_prefix('/');
    if is_pattern(typed) {
        return is_match(typed, name) || bare.is_some_and(|bare| is_match(typed, bare));
    }
    typed == name || bare == Some(typed) && !all.contains(typed)
}

fn missing(typed: &str, all: &BTreeSet<&str>) -> Error {
    let what = if is_pattern(typed) { "no topic matches" } else { "there is no topic" };
    let hint = match nearest(typed, all.iter().copied()) {
        Some(nearest) => format!("; did you mean {:?}?", printable(nearest)),
        None => "; `myelin bag info` lists them".to_owned(),
    };
    Error::NotFound(format!("{what} {typed:?}{hint}"))
}

#[cfg(test)]
mod tests {
    use myelin_bag::Channel;

    use super::*;

    #[test]
    fn topics_are_named_and_excluded() {
        let names = ["/camera/left", "/camera/right", "odometry", "/odometry"];
        let mut of = Definitions::default();
        for (id, topic) in (1..).zip(names) {
            of.channels.insert(id, Channel { topic: topic.into(), ..Channel::default() });
        }
        let chosen = |wanted: &[&str], unwanted: &[&str]| {
            let owned = |of: &[&str]| of.iter().map(|it| (*it).to_owned()).collect();
            Topics { wanted: owned(wanted), unwanted: owned(unwanted) }.channels(&of)
        };
        let ids = |wanted: &[&str], unwanted: &[&str]| {
            chosen(wanted, unwanted).unwrap().into_iter().collect::<Vec<_>>()
        };
        assert_eq!(ids(&[], &[]), [1, 2, 3, 4]);
        assert_eq!(ids(&["camera/*"], &["*right"]), [1]);
        assert_eq!(ids(&["odometry"], &[]), [3], "its very name");
        assert_eq!(ids(&["camera/left", "/odometry"], &[]), [1, 4]);
        let text = chosen(&["/camera/lfet"], &[]).unwrap_err().to_string();
        assert_eq!(text, r#"there is no topic "/camera/lfet"; did you mean "/camera/left"?"#);
        assert!(chosen(&[], &["laser*"]).unwrap_err().to_string().contains("no topic matches"));
        assert_eq!(chosen(&[], &["*"]).unwrap_err().status(), 2);
    }
}
