//! In which fields two types differ.

use std::collections::BTreeMap;

use myelin::value::{Kind, Type};

/// The first differences, for a sentence whose sides have these names; empty if the fields are the
/// same.
pub fn differences(one: &Type, other: &Type, names: [&str; 2]) -> String {
    let (ones, others) = (fields(one), fields(other));
    let mut found = Vec::new();
    for (path, ty) in &ones {
        match others.get(path) {
            None => found.push(format!("`{path}: {}` is only in {}", ty.text, names[0])),
            Some(it) if it.text != ty.text => found.push(format!(
                "`{path}` is {} in {} and {} in {}",
                ty.text, names[0], it.text, names[1]
            )),
            Some(it) if it.offset != ty.offset => found.push(format!(
                "`{path}` begins at byte {} in {} and at byte {} in {}",
                ty.offset, names[0], it.offset, names[1]
            )),
            Some(_) => {}
        }
    }
    for (path, ty) in others.iter().filter(|(path, _)| !ones.contains_key(*path)) {
        found.push(format!("`{path}: {}` is only in {}", ty.text, names[1]));
    }
    let more = found.len().saturating_sub(SHOWN_MAX);
    found.truncate(SHOWN_MAX);
    let mut text = found.join(", ");
    if more > 0 {
        text += &format!(", and {more} more");
    }
    text
}

/// A field that is no struct, or the whole type.
struct Leaf {
    text: String,
    offset: usize,
}

fn fields(ty: &Type) -> BTreeMap<String, Leaf> {
    let mut leaves = BTreeMap::new();
    add(&mut leaves, String::new(), ty, 0);
    leaves
}

fn add(leaves: &mut BTreeMap<String, Leaf>, path: String, ty: &Type, offset: usize) {
    if leaves.len() > FIELDS_MAX {
        return;
    }
    if let Kind::Struct { fields, .. } = ty.kind() {
        for field in fields {
            let path =
                if path.is_empty() { field.name.clone() } else { format!("{path}.{}", field.name) };
            add(leaves, path, &field.ty, offset + field.offset);
        }
        return;
    }
    let path = if path.is_empty() { "the sample".to_owned() } else { path };
    leaves.insert(path, Leaf { text: ty.to_string(), offset });
}

const SHOWN_MAX: usize = 3;
const FIELDS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;
    use myelin::value::Schema;

    fn of(layout: &str) -> Type {
        Schema::new(Schema::LAYOUT, "", layout.as_bytes()).parse().unwrap()
    }

    #[test]
    fn differences_are_named_field_by_field() {
        let one = of("Scan{stamp: u64 @0, at: P{x: f32 @0, y: f32 @4} 8 @8} 16");
        let other = of("Scan{stamp: u32 @0, seen: u32 @4, at: P{x: f32 @0, y: f32 @4} 8 @8} 16");
        let names = ["lidar", "planner"];
        let text = differences(&one, &other, names);
        assert_eq!(
            text,
            "`stamp` is u64 in lidar and u32 in planner, `seen: u32` is only in planner"
        );
        assert_eq!(differences(&one, &one, names), "");
        let text = differences(&of("f64"), &of("f32"), names);
        assert_eq!(text, "`the sample` is f64 in lidar and f32 in planner");
    }
}
