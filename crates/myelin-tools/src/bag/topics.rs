//! The topics of a recording that people mean, and the errors if there are none.

use std::collections::BTreeSet;

use myelin_bag::{Definitions, NoTopic, Topics};

use crate::Error;
use crate::names::{is_pattern, nearest};
use crate::text::printable;

/// The chosen topics of some files.
///
/// # Errors
/// A name or a pattern that names none of them: the nearest name. No topic is left.
pub fn choose<'d>(
    topics: &Topics,
    of: impl IntoIterator<Item = &'d Definitions>,
) -> Result<BTreeSet<String>, Error> {
    let all: Vec<&str> = of.into_iter().flat_map(Definitions::topics).collect();
    let chosen = topics.choose(all.iter().copied());
    let chosen = chosen.map_err(|error| missing(&error, all.iter().copied()))?;
    if chosen.is_empty() && !all.is_empty() {
        return Err(Error::BadInput("no topic is left: --exclude names all of them".to_owned()));
    }
    Ok(chosen.into_iter().map(str::to_owned).collect())
}

/// The channels of the chosen topics.
///
/// # Errors
/// As [`choose`].
pub fn channels(topics: &Topics, of: &Definitions) -> Result<BTreeSet<u16>, Error> {
    let topics = choose(topics, [of])?;
    let channels = of.channels.iter().filter(|(_, channel)| topics.contains(&channel.topic));
    Ok(channels.map(|(id, _)| *id).collect())
}

/// One sentence with the nearest name.
pub fn missing<'a>(error: &NoTopic, of: impl IntoIterator<Item = &'a str>) -> Error {
    let typed = &*error.pattern;
    let what = if is_pattern(typed) { "no topic matches" } else { "there is no topic" };
    let hint = match nearest(typed, of) {
        Some(nearest) => format!("did you mean {:?}?", printable(nearest)),
        None => "`myelin bag info` lists the topics".to_owned(),
    };
    Error::NotFound(format!("{what} {:?} in the recording; {hint}", printable(typed)))
}

#[cfg(test)]
mod tests {
    use myelin_bag::Channel;

    use super::*;

    #[test]
    fn a_missing_topic_names_the_nearest_and_none_left_says_why() {
        let mut of = Definitions::default();
        for (id, topic) in (1..).zip(["/camera/left", "/camera/right"]) {
            of.channels.insert(id, Channel { topic: topic.into(), ..Channel::default() });
        }
        let error = |wanted: &[&str], unwanted: &[&str]| {
            let owned = |of: &[&str]| of.iter().map(|it| (*it).to_owned()).collect();
            choose(&Topics { wanted: owned(wanted), unwanted: owned(unwanted) }, [&of]).unwrap_err()
        };
        let text = error(&["/camera/lfet"], &[]).to_string();
        let expected =
            "there is no topic \"/camera/lfet\" in the recording; did you mean \"/camera/left\"?";
        assert_eq!(text, expected);
        assert!(error(&[], &["laser*"]).to_string().contains("no topic matches"));
        assert_eq!(error(&[], &["*"]).status(), 2);
    }
}
