//! Where the needed fields lie in a record.

use super::declared::DeclaredTypes;
use super::fields::{FieldRole, KeyField};
use bernstream_release::source::columns::Columns;

/// The names of the needed fields as a tree of objects in objects; the first node is the record.
pub(super) struct FieldTree {
    nodes: Vec<FieldNode>,
    /// Number of values of a record.
    pub values: usize,
}

#[derive(Default)]
struct FieldNode {
    name: String,
    roles: Vec<FieldRole>,
    children: Vec<usize>,
}

/// A key or a user without a declared type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UndeclaredType {
    #[error(
        "the type of the key is not declared: add `type`, \"text\" or \"integer\", to `key` of [input]"
    )]
    Key,
    #[error(
        "the type of the user is not declared: add `type`, \"text\" or \"integer\", to `user` of [privacy]"
    )]
    Unit,
}

/// The steps of a path such as `after.amount`.
pub(super) fn path_steps(path: &str) -> Vec<&str> {
    path.split('.').collect()
}

/// A name as one step.
pub(super) fn whole_name(name: &str) -> Vec<&str> {
    vec![name]
}

/// A needed field.
pub(super) struct NeededField<'a> {
    /// Its name or path.
    pub path: &'a str,
    pub role: FieldRole,
}

/// The needed fields, the event time first.
///
/// # Errors
///
/// If the type of a key or a user is not declared.
pub(super) fn needed_fields<'a>(
    columns: &'a Columns,
    declared: &DeclaredTypes,
) -> Result<Vec<NeededField<'a>>, UndeclaredType> {
    let mut needed = vec![NeededField {
        path: &columns.time,
        role: FieldRole::Time(declared.time),
    }];
    for (part, (path, kind)) in columns.key.iter().zip(declared.key).enumerate() {
        let kind = kind.ok_or(UndeclaredType::Key)?;
        let role = FieldRole::Key(KeyField { part, kind });
        needed.push(NeededField { path, role });
    }
    if let Some(path) = &columns.unit {
        let role = FieldRole::Unit(declared.unit.ok_or(UndeclaredType::Unit)?);
        needed.push(NeededField { path, role });
    }
    for (at, path) in columns.values.iter().enumerate() {
        let role = FieldRole::Value(at);
        needed.push(NeededField { path, role });
    }
    Ok(needed)
}

impl FieldTree {
    /// # Errors
    ///
    /// If the type of a key or a user is not declared.
    pub fn new(
        columns: &Columns,
        declared: &DeclaredTypes,
        split: impl Fn(&str) -> Vec<&str>,
    ) -> Result<Self, UndeclaredType> {
        let mut tree = FieldTree {
            nodes: vec![FieldNode::default()],
            values: columns.values.len(),
        };
        for field in needed_fields(columns, declared)? {
            tree.add_path(&split(field.path), field.role);
        }
        Ok(tree)
    }

    fn add_path(&mut self, path: &[&str], role: FieldRole) {
        let mut at = 0;
        for step in path {
            at = match self.child(at, step) {
                Some(child) => child,
                None => self.add_child(at, step),
            };
        }
        if let Some(node) = self.nodes.get_mut(at) {
            node.roles.push(role);
        }
    }

    fn add_child(&mut self, node: usize, name: &str) -> usize {
        let child = self.nodes.len();
        self.nodes.push(FieldNode {
            name: name.to_owned(),
            ..FieldNode::default()
        });
        if let Some(node) = self.nodes.get_mut(node) {
            node.children.push(child);
        }
        child
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Roles that the value at a node is needed for.
    pub fn roles(&self, node: usize) -> &[FieldRole] {
        self.nodes.get(node).map_or(&[], |node| &node.roles)
    }

    /// The name of the field at a node.
    pub fn name(&self, node: usize) -> &str {
        self.nodes.get(node).map_or("", |node| &node.name)
    }

    /// The nodes of the needed fields of the object at a node.
    pub fn children(&self, node: usize) -> impl Iterator<Item = usize> {
        self.nodes
            .get(node)
            .into_iter()
            .flat_map(|node| node.children.iter().copied())
    }

    /// The node of a field of the object at a node.
    pub fn child(&self, node: usize, name: &str) -> Option<usize> {
        for child in &self.nodes.get(node)?.children {
            if self.name(*child) == name {
                return Some(*child);
            }
        }
        None
    }
}
