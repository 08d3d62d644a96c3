//! The properties of paths.

use std::collections::BTreeMap;

use crate::path::{Path, PathId, PathProperties};

/// The properties that the carriage has set; other paths have those of UDP.
#[derive(Debug, Default)]
pub(super) struct Paths(BTreeMap<PathId, PathProperties>);

impl Paths {
    pub(super) fn insert(&mut self, path: PathId, properties: PathProperties) {
        self.0.insert(path, properties);
    }

    pub(super) fn remove(&mut self, path: PathId) {
        self.0.remove(&path);
    }

    /// A path with its properties.
    pub(super) fn get(&self, id: PathId) -> Path {
        match self.0.get(&id) {
            Some(&properties) => Path { id, properties },
            None => Path::usual(id),
        }
    }
}
