//! Just enough of HTML to count elements in text that a serialiser wrote.

/// Start tags of this name, from `<` to `>`.
pub fn elements<'a>(html: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> + Clone {
    html.match_indices('<').filter_map(move |(start, _)| {
        let rest = html[start + 1..].strip_prefix(name)?;
        let bounded = rest.starts_with([' ', '>', '\n', '/']);
        let end = rest.find('>')?;
        bounded.then(|| &html[start..start + 1 + name.len() + end + 1])
    })
}

/// The value of an attribute, without unescaping.
pub fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split('"').next()
}
