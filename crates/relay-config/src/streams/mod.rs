//! `[defaults]` and `[stream."NAME"]`: the settings of streams.

mod keys;
mod record_path;
mod settings;
mod uri;

use punctual_relay_access::{StreamName, StreamPattern};

pub use record_path::{RecordPath, SegmentTime};
pub use settings::{
    AbsentStream, CipherChoice, EncryptionSettings, ForwardSettings, PublisherSettings,
    RecordSettings, RetryRange, SecondPublisher, SlowViewer, SourceSettings, StreamSettings,
    ViewerSettings, ViewerStart,
};
pub use uri::StreamUri;

pub(crate) use keys::{FORWARD, STREAM};

/// A section `[stream."NAME"]`, with the keys of `[defaults]` where it has none.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StreamSection {
    /// The streams that it is about.
    pub pattern: StreamPattern,
    /// Their settings, with `$0` to `$9` as they are written.
    pub settings: StreamSettings,
}

/// The settings of every stream.
///
/// One section counts for a stream, over the defaults: the narrowest that matches its name. That is
/// the section with exactly this name; else the pattern with `*` or `?` that has the most other
/// characters; else a `~` regular expression; else `all_others`. Among equals, the first in the
/// file counts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct StreamTable {
    defaults: StreamSettings,
    /// The narrowest first.
    sections: Vec<StreamSection>,
}

impl StreamTable {
    /// Brings the sections, which are in the order of the file, into the order of their narrowness.
    pub(crate) fn new(defaults: StreamSettings, mut sections: Vec<StreamSection>) -> Self {
        sections.sort_by_key(|section| std::cmp::Reverse(section.pattern.narrowness()));
        Self { defaults, sections }
    }

    /// The settings of a stream without a section.
    pub const fn defaults(&self) -> &StreamSettings {
        &self.defaults
    }

    /// The sections, the narrowest first.
    pub fn sections(&self) -> &[StreamSection] {
        &self.sections
    }

    /// The section that counts for this stream.
    pub fn section(&self, name: &StreamName) -> Option<&StreamSection> {
        self.sections.iter().find(|section| section.pattern.matches(name.as_str()))
    }

    /// The settings of this stream, with `$0` replaced by its name and `$1` to `$9` by the groups
    /// of the regular expression.
    pub fn settings(&self, name: &StreamName) -> StreamSettings {
        match self.section(name) {
            Some(section) => section.settings.filled(&section.pattern, name.as_str()),
            None => self.defaults.filled(&StreamPattern::all(), name.as_str()),
        }
    }

    /// The streams that the relay pulls all the time: those whose section has their exact name.
    pub fn always_pulled(&self) -> impl Iterator<Item = StreamName> + '_ {
        let is_pulled = |section: &&StreamSection| {
            let source = &section.settings.source;
            source.uri.is_some() && !source.on_demand
        };
        self.sections
            .iter()
            .filter(is_pulled)
            .filter_map(|section| StreamName::new(section.pattern.as_str()).ok())
    }
}

/// Whether a pattern is the exact name of one stream.
pub(crate) fn is_exact(pattern: &StreamPattern) -> bool {
    let name = pattern.as_str();
    pattern.narrowness() == StreamPattern::exact(name).narrowness()
}
