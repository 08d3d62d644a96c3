//! `[[user]]` and `[auth]`: who may do what, as plain data.

use punctual_relay_access::{
    Action, ActionError, Network, Password, PatternError, Role, SigningKey, StreamPattern,
};

use crate::http::{shown_url, url};
use crate::listener::{networks, shown_networks, word};
use crate::problem::Faults;
use crate::rows::{KeyFacts, KeyRow, ReloadEffect, Shown, store};
use crate::secret::SecretValue;
use crate::table;
use crate::toml_text::{quoted, shown_option, shown_plain, shown_text};
use crate::value::{MOST_TEXT, Value};

/// A user and what the user may do.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UserTable {
    /// The name; `any` stands for everybody, also for callers without a name.
    pub name: String,
    /// The password: plain, or `argon2:` or `sha256:` and its hash.
    pub password: Option<SecretValue>,
    /// A token in place of name and password.
    pub token: Option<SecretValue>,
    /// The networks that the user may come from; all, if there is none.
    pub ips: Vec<Network>,
    /// The actions that the user may do, and with which streams.
    pub permissions: Vec<PermissionTable>,
}

/// An action that is permitted on some streams.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PermissionTable {
    /// The action; the check lets no table pass that has none.
    pub action: Option<Action>,
    /// The streams.
    pub stream: StreamPattern,
}

/// Other judges of callers than the users of the configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AuthSettings {
    /// The URL that is asked about each caller.
    pub http: Option<SecretValue>,
    /// The form of that question.
    pub format: CalloutFormat,
    /// The URL of the keys that sign JWT.
    pub jwks: Option<SecretValue>,
    /// The issuer that a JWT must name.
    pub issuer: Option<String>,
    /// The audience that a JWT must name.
    pub audience: Option<String>,
    /// The claim that has the permissions.
    pub claim: String,
    /// The key of short signed tokens.
    pub signing_key: Option<SecretValue>,
    /// Whether a reload ends connections that have lost their right.
    pub apply_to_existing: bool,
}

/// The form of the question about a caller.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CalloutFormat {
    /// MediaMTX's JSON.
    #[default]
    Mediamtx,
    /// The form of nginx-rtmp, which srtrelay sends as well.
    Nginx,
}

impl UserTable {
    /// Everybody from these networks may do these things with all streams.
    fn anybody(ips: Vec<Network>, actions: &[Action]) -> Self {
        let permission = |action: &Action| PermissionTable {
            action: Some(*action),
            ..PermissionTable::default()
        };
        let permissions = actions.iter().map(permission).collect();
        Self { name: ANYBODY.to_owned(), ips, permissions, ..Self::default() }
    }

    /// Whether the user may do something by the page and the API.
    pub(crate) fn has_role(&self) -> bool {
        self.permissions.iter().any(|it| matches!(it.action, Some(Action::Api(_))))
    }

    /// The users of a relay whose configuration has no judge of callers: everybody may publish,
    /// view and play recordings.
    pub(crate) fn everybody_may_stream() -> Self {
        Self::anybody(Vec::new(), &[Action::Publish, Action::Read, Action::Playback])
    }

    /// The administrator of a relay whose configuration gives nobody a role: everybody on this
    /// machine.
    pub(crate) fn local_administrator() -> Self {
        let ips = LOCAL.iter().filter_map(|text| text.parse().ok()).collect();
        Self::anybody(ips, &[Action::Api(Role::Admin), Action::Metrics])
    }

    /// The fault of several keys together.
    pub(crate) fn fault(&self) -> Option<String> {
        let is_any = self.name == ANYBODY;
        let has_proof = self.password.is_some() || self.token.is_some() || !self.ips.is_empty();
        let message = match is_any {
            _ if self.name.is_empty() => "it has no `name`; `any` stands for everybody",
            true if self.password.is_some() => {
                "the user `any` has no password, since callers give the name of a user with it"
            }
            false if !has_proof => "it has neither a password nor a token nor `ips`",
            _ if self.permissions.is_empty() => "it may do nothing: it has no `permissions`",
            _ => return None,
        };
        Some(message.to_owned())
    }
}

impl Default for PermissionTable {
    fn default() -> Self {
        Self { action: None, stream: StreamPattern::all() }
    }
}

impl Default for AuthSettings {
    fn default() -> Self {
        Self {
            http: None,
            format: CalloutFormat::Mediamtx,
            jwks: None,
            issuer: None,
            audience: None,
            claim: "punctual".to_owned(),
            signing_key: None,
            apply_to_existing: false,
        }
    }
}

impl AuthSettings {
    /// Whether somebody else than the users of the configuration may admit callers.
    pub(crate) const fn judges(&self) -> bool {
        self.http.is_some() || self.jwks.is_some() || self.signing_key.is_some()
    }

    /// The fault of several keys together.
    pub(crate) fn fault(&self) -> Option<String> {
        let has_terms = self.issuer.is_some() || self.audience.is_some();
        (self.jwks.is_none() && has_terms)
            .then(|| "`issuer` and `audience` belong to JWT: `jwks` is missing".to_owned())
    }
}

/// A written secret as the value of a key.
pub(crate) fn shown_secret<'a>(value: Option<&'a SecretValue>) -> Shown<'a> {
    match value {
        Some(value) if value.file.is_none() => Shown::Hidden(vec![value], quoted("…")),
        _ => Shown::Nothing,
    }
}

/// The file of a secret as the value of a key; the secret itself is compared.
pub(crate) fn shown_secret_file<'a>(value: Option<&'a SecretValue>) -> Shown<'a> {
    match value.and_then(|value| Some((value, value.file.as_ref()?))) {
        Some((value, file)) => Shown::Hidden(vec![value], quoted(&file.to_string_lossy())),
        None => Shown::Nothing,
    }
}

/// Reads a pattern of streams.
pub(crate) fn pattern(value: &Value<'_>) -> Result<StreamPattern, Faults> {
    let text = value.filled_text(MOST_TEXT)?;
    text.parse().map_err(|error: PatternError| Faults::from(error.to_string()))
}

fn password(value: SecretValue) -> Result<Option<SecretValue>, Faults> {
    match Password::new(value.secret.clone()) {
        Ok(_) => Ok(Some(value)),
        Err(error) => Err(error.to_string().into()),
    }
}

fn permissions(value: &Value<'_>) -> Result<Vec<PermissionTable>, Faults> {
    value.list(MOST_PERMISSIONS, |part| {
        let permission: PermissionTable = table::part(part, PERMISSION)?;
        match permission.action {
            None => Err("it has no `action`".into()),
            Some(_) => Ok(permission),
        }
    })
}

fn shown_permissions<'a>(permissions: &[PermissionTable]) -> Shown<'a> {
    let shown: Vec<_> = permissions
        .iter()
        .map(|it| {
            let action = quoted(it.action.map_or("", Action::word));
            match it.stream == StreamPattern::all() {
                true => format!("{{ action = {action} }}"),
                false => {
                    format!("{{ action = {action}, stream = {} }}", quoted(it.stream.as_str()))
                }
            }
        })
        .collect();
    Shown::Toml(format!("[{}]", shown.join(", ")))
}

const fn facts(
    section: &'static str,
    name: &'static str,
    form: &'static str,
    habit: &'static str,
    meaning: &'static str,
) -> KeyFacts {
    KeyFacts { section, name, form, meaning, habit, reload: ReloadEffect::NewConnections }
}

/// The keys of `[[user]]`.
pub(crate) const USER: &[KeyRow<UserTable>] = &[
    KeyRow {
        facts: facts(
            "user",
            "name",
            "a text; \"any\": everybody, also callers without a name",
            "MediaMTX: authInternalUsers, user",
            "the name of the user",
        ),
        set: |it, value| store(&mut it.name, value.filled_text(200).map(str::to_owned)),
        show: |it| shown_text(&it.name),
    },
    KeyRow {
        facts: facts(
            "user",
            "password",
            "a text, or \"argon2:\" or \"sha256:\" and a hash",
            "MediaMTX: pass",
            "the password, which SRT carries as `s=` of the stream ID",
        ),
        set: |it, value| store(&mut it.password, value.secret(1_000).and_then(password)),
        show: |it| shown_secret(it.password.as_ref()),
    },
    KeyRow {
        facts: facts("user", "password-file", "the path of a file", "", "a file with the password"),
        set: |it, value| store(&mut it.password, value.secret_file().and_then(password)),
        show: |it| shown_secret_file(it.password.as_ref()),
    },
    KeyRow {
        facts: facts(
            "user",
            "token",
            "a text, or \"sha256:\" and a hash",
            "HTTP: Bearer",
            "a secret in place of name and password",
        ),
        set: |it, value| store(&mut it.token, value.secret(1_000).and_then(token)),
        show: |it| shown_secret(it.token.as_ref()),
    },
    KeyRow {
        facts: facts("user", "token-file", "the path of a file", "", "a file with the token"),
        set: |it, value| store(&mut it.token, value.secret_file().and_then(token)),
        show: |it| shown_secret_file(it.token.as_ref()),
    },
    KeyRow {
        facts: facts(
            "user",
            "ips",
            "a list of IP addresses and networks, like [\"192.0.2.0/24\"]",
            "MediaMTX: ips",
            "the networks that the user may come from; an empty list permits all",
        ),
        set: |it, value| store(&mut it.ips, networks(value)),
        show: |it| shown_networks(&it.ips),
    },
    KeyRow {
        facts: facts(
            "user",
            "permissions",
            "a list of tables, like [{ action = \"publish\", stream = \"live/*\" }]",
            "MediaMTX: permissions",
            "the actions that the user may do, each with the streams; without `stream`, all",
        ),
        set: |it, value| store(&mut it.permissions, permissions(value)),
        show: |it| shown_permissions(&it.permissions),
    },
];

/// The keys of a permission.
pub(crate) const PERMISSION: &[KeyRow<PermissionTable>] = &[
    KeyRow {
        facts: facts(
            "user.permissions",
            "action",
            "\"publish\", \"read\", \"playback\", \"metrics\", \"api-read\", \"api-operate\" or \
             \"api-admin\"",
            "MediaMTX: action",
            "the permitted action; the API permits to see; also to kick, switch, record and \
             forward; also to change the configuration",
        ),
        set: |it, value| {
            let action = value.text(MOST_TEXT)?.parse();
            it.action = Some(action.map_err(|error: ActionError| error.to_string())?);
            Ok(())
        },
        show: |it| shown_option(it.action.map(Action::word)),
    },
    KeyRow {
        facts: facts(
            "user.permissions",
            "stream",
            "a name, a pattern like \"live/*\", or \"~\" and a regular expression",
            "MediaMTX: path",
            "the streams",
        ),
        set: |it, value| store(&mut it.stream, pattern(value)),
        show: |it| shown_text(it.stream.as_str()),
    },
];

/// The keys of `[auth]`.
pub(crate) const AUTH: &[KeyRow<AuthSettings>] = &[
    KeyRow {
        facts: facts(
            "auth",
            "http",
            "a URL with http:// or https://",
            "MediaMTX: authHTTPAddress",
            "the address that is asked about each caller whom no user of this file admits",
        ),
        set: |it, value| store(&mut it.http, url(value)),
        show: |it| shown_url(it.http.as_ref()),
    },
    KeyRow {
        facts: facts(
            "auth",
            "format",
            "\"mediamtx\" or \"nginx\"",
            "MediaMTX; nginx-rtmp, srtrelay",
            "the form of that question: JSON, or a form of `call`, `app`, `name`, `auth`",
        ),
        set: |it, value| store(&mut it.format, value.choice(FORMATS)),
        show: |it| shown_text(word(FORMATS, it.format)),
    },
    KeyRow {
        facts: facts(
            "auth",
            "jwks",
            "a URL with http:// or https://",
            "MediaMTX: authJWTJWKS",
            "the address of the keys that sign JWT",
        ),
        set: |it, value| store(&mut it.jwks, url(value)),
        show: |it| shown_url(it.jwks.as_ref()),
    },
    KeyRow {
        facts: facts("auth", "issuer", "a text", "JWT: iss", "the issuer that a JWT must name"),
        set: |it, value| {
            store(&mut it.issuer, value.filled_text(500).map(|it| Some(it.to_owned())))
        },
        show: |it| shown_option(it.issuer.as_ref()),
    },
    KeyRow {
        facts: facts("auth", "audience", "a text", "JWT: aud", "the audience that a JWT must name"),
        set: |it, value| {
            store(&mut it.audience, value.filled_text(500).map(|it| Some(it.to_owned())))
        },
        show: |it| shown_option(it.audience.as_ref()),
    },
    KeyRow {
        facts: facts(
            "auth",
            "claim",
            "a text",
            "MediaMTX: authJWTClaimKey",
            "the claim that has the permissions; `mediamtx_permissions` is read as well",
        ),
        set: |it, value| store(&mut it.claim, value.filled_text(200).map(str::to_owned)),
        show: |it| shown_text(&it.claim),
    },
    KeyRow {
        facts: facts(
            "auth",
            "signing-key-file",
            "the path of a file with 16 bytes or more",
            "",
            "the file with the key of short signed tokens (`punctual relay token`)",
        ),
        set: |it, value| store(&mut it.signing_key, value.secret_file().and_then(signing_key)),
        show: |it| shown_secret_file(it.signing_key.as_ref()),
    },
    KeyRow {
        facts: facts(
            "auth",
            "apply-to-existing",
            "true or false",
            "",
            "end connections that lose their right by a reload; otherwise it counts for new ones",
        ),
        set: |it, value| store(&mut it.apply_to_existing, value.switch()),
        show: |it| shown_plain(it.apply_to_existing),
    },
];

fn token(value: SecretValue) -> Result<Option<SecretValue>, Faults> {
    match value.secret.expose().starts_with("argon2:") {
        false => password(value),
        true => Err("a token is compared for every caller, and argon2 is slow: use sha256".into()),
    }
}

fn signing_key(value: SecretValue) -> Result<Option<SecretValue>, Faults> {
    match SigningKey::list(value.secret.expose()) {
        Ok(_) => Ok(Some(value)),
        Err(error) => Err(error.to_string().into()),
    }
}

const FORMATS: &[(&str, CalloutFormat)] =
    &[("mediamtx", CalloutFormat::Mediamtx), ("nginx", CalloutFormat::Nginx)];

/// The name of the user that stands for everybody.
const ANYBODY: &str = "any";
/// The addresses of this machine.
const LOCAL: [&str; 2] = ["127.0.0.0/8", "::1"];
const MOST_PERMISSIONS: usize = 1_000;
