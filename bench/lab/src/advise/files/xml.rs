//! Edits of XML that leave the rest of the text as it is, comments and indentation included.

use std::ops::Range;

use roxmltree::{Document, Node};

/// A text and what is to become of parts of it.
pub struct Edits<'a> {
    text: &'a str,
    document: Document<'a>,
    edits: Vec<(Range<usize>, String)>,
}

impl<'a> Edits<'a> {
    /// Of a text that has to be XML.
    pub fn of(text: &'a str) -> Result<Self, roxmltree::Error> {
        let document = Document::parse(text)?;
        Ok(Edits { text, document, edits: Vec::new() })
    }

    /// Puts a comment before the outermost element.
    pub fn comment(&mut self, comment: &str) {
        let start = self.document.root_element().range().start;
        self.edits.push((start..start, format!("<!-- {comment} -->\n")));
    }

    /// Gives an attribute of every element of this name another value.
    pub fn set_attribute(&mut self, element: &str, name: &str, value: &str) {
        self.replace(element, value, |node| Some(node.attribute_node(name)?.range_value()));
    }

    /// Gives every element of this name another text.
    pub fn set_text(&mut self, element: &str, text: &str) {
        self.replace(element, text, |node| Some(node.first_child()?.range()));
    }

    /// Removes the elements of this name, each with the comment right before it.
    pub fn remove(&mut self, element: &str) {
        let text = self.text;
        self.replace(element, "", |node| {
            let start = before(node).unwrap_or(node.range().start);
            Some(text[..start].trim_end().len()..node.range().end)
        });
    }

    /// The number in an attribute of an element, without its unit; the largest if there are
    /// several.
    pub fn attribute_number(&self, element: &str, name: &str) -> Option<u64> {
        let values = self.elements(element).into_iter().filter_map(|node| node.attribute(name));
        values.filter_map(number).max()
    }

    /// The number in the text of an element, without its unit; the largest if there are several.
    pub fn text_number(&self, element: &str) -> Option<u64> {
        self.elements(element).into_iter().filter_map(|node| number(node.text()?)).max()
    }

    /// The edited text.
    pub fn finish(mut self) -> String {
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

/// Where the comment right before an element begins.
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
}
