//! A hook: the events, and the program or the URL that they start.

use std::time::Duration;

use punctual_relay_access::{Secret, StreamPattern, Url};
use thiserror::Error;

use crate::event::{HookEvent, HookEventKind};

/// A command or a URL, and the events that start it.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    on: Vec<HookEventKind>,
    streams: StreamPattern,
    action: HookAction,
    timeout: Option<Duration>,
}

/// The action of a hook.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum HookAction {
    /// A program with its arguments.
    Run { words: Vec<String>, restarts: bool },
    /// A request with the event.
    Post { url: Url, key: Option<Secret> },
}

/// A hook that cannot be.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum HookError {
    /// No event starts it.
    #[error("the hook has no event")]
    NoEvent,
    /// It has no program.
    #[error("the command of the hook names no program")]
    NoProgram,
    /// A program is to be started again, but no state lasts.
    #[error(
        "a program is started again only while a state lasts: on connect, available, online, read \
         or forward-up, not on {0}"
    )]
    Restart(HookEventKind),
}

impl Hook {
    /// A hook that runs a program, without a shell: the first of `words` is the program. In the
    /// others `$NAME` and `${NAME}` are replaced by variables of the event, but in the one after
    /// `-c`, which is a script and reads its environment.
    ///
    /// # Errors
    ///
    /// There is no event, or no program.
    pub fn run(on: &[HookEventKind], words: Vec<String>) -> Result<Self, HookError> {
        if words.first().is_none_or(String::is_empty) {
            return Err(HookError::NoProgram);
        }
        Self::new(on, HookAction::Run { words, restarts: false })
    }

    /// A hook that sends the event to `url`, signed with `key` if there is one.
    ///
    /// # Errors
    ///
    /// There is no event.
    pub fn post(on: &[HookEventKind], url: Url, key: Option<Secret>) -> Result<Self, HookError> {
        Self::new(on, HookAction::Post { url, key })
    }

    fn new(on: &[HookEventKind], action: HookAction) -> Result<Self, HookError> {
        if on.is_empty() {
            return Err(HookError::NoEvent);
        }
        Ok(Self { on: on.to_vec(), streams: StreamPattern::all(), action, timeout: None })
    }

    /// The same, only for events of these streams.
    pub fn for_streams(self, streams: StreamPattern) -> Self {
        Self { streams, ..self }
    }

    /// The same, with this limit: of the time that a program runs, which has none otherwise, or of
    /// each request, which has 10 s otherwise.
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The same, with a program that is started again, five seconds after it ended, while the state
    /// lasts that the event begins.
    ///
    /// # Errors
    ///
    /// One of the events begins no state, or there is no program.
    pub fn with_restart(mut self) -> Result<Self, HookError> {
        if let Some(kind) = self.on.iter().find(|kind| kind.end().is_none()) {
            return Err(HookError::Restart(*kind));
        }
        match &mut self.action {
            HookAction::Run { restarts, .. } => *restarts = true,
            HookAction::Post { .. } => return Err(HookError::NoProgram),
        }
        Ok(self)
    }

    /// Whether the event starts it.
    pub(crate) fn starts_on(&self, event: &HookEvent) -> bool {
        let is_of_stream = |name: &String| self.streams.matches(name);
        self.on.contains(&event.kind)
            && event.stream.as_ref().map_or(self.streams == StreamPattern::all(), is_of_stream)
    }

    /// The event whose state this one ends, if it starts the hook.
    pub(crate) fn ended_by(&self, end: HookEventKind) -> Option<HookEventKind> {
        self.on.iter().copied().find(|kind| kind.end() == Some(end))
    }

    pub(crate) fn action(&self) -> &HookAction {
        &self.action
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// The hook as the log names it: its program or its URL, without secrets.
    pub(crate) fn title(&self) -> String {
        match &self.action {
            HookAction::Run { words, .. } => punctual_units::one_line(&words[0]).into_owned(),
            HookAction::Post { url, .. } => url.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_that_cannot_be_is_refused() {
        let run = |on: &[HookEventKind]| Hook::run(on, vec!["true".to_owned()]);
        assert_eq!(run(&[]), Err(HookError::NoEvent));
        assert_eq!(Hook::run(&[HookEventKind::Read], Vec::new()), Err(HookError::NoProgram));
        let both = [HookEventKind::Available, HookEventKind::Offline];
        let error = run(&both).and_then(Hook::with_restart).unwrap_err();
        assert_eq!(error, HookError::Restart(HookEventKind::Offline));
        assert!(run(&both[..1]).and_then(Hook::with_restart).is_ok());
    }

    #[test]
    fn a_hook_of_some_streams_is_not_started_by_others() {
        let hook = Hook::run(&[HookEventKind::Online], vec!["true".to_owned()]).unwrap();
        let some = hook.clone().for_streams("live/*".parse().unwrap());
        let event = HookEvent::new(HookEventKind::Online, punctual_units::UtcTime::default());
        assert!(hook.starts_on(&event) && !some.starts_on(&event));
        let of = |name| event.clone().of_stream(name);
        assert!(some.starts_on(&of("live/a")) && !some.starts_on(&of("studio/a")));
    }
}
