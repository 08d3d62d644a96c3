use std::sync::Arc;

use crate::action::{Action, Role};

/// A caller of the API, the page or the metrics, and its rights.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Operator {
    user: Option<Arc<str>>,
    role: Option<Role>,
    metrics: bool,
}

impl Operator {
    /// The caller with the rights that `may` gives; `None` if there are none.
    pub(crate) fn new(user: Option<&str>, may: impl Fn(Action) -> bool) -> Option<Self> {
        let roles = [Role::Admin, Role::Operate, Role::Read];
        let role = roles.into_iter().find(|role| may(Action::Api(*role)));
        let metrics = may(Action::Metrics);
        let user = user.filter(|user| !user.is_empty()).map(Arc::from);
        (role.is_some() || metrics).then_some(Self { user, role, metrics })
    }

    /// The name, for logs; `None` for callers without one.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The part of the API that the caller may use, if any.
    pub const fn role(&self) -> Option<Role> {
        self.role
    }

    /// Whether the caller may do this. Whoever may see all streams may read the metrics.
    pub fn may(&self, action: Action) -> bool {
        match action {
            Action::Api(role) => self.role >= Some(role),
            Action::Metrics => self.metrics || self.role.is_some(),
            Action::Publish | Action::Read | Action::Playback => false,
        }
    }
}
