//! `[[user]]` and `[auth]`: who may do what, as plain data.

use std::time::Duration;

use punctual_relay_access::{
    Action, ActionError, CalloutConfig, CalloutFormat, JwtConfig, Network, Password, PatternError,
    SigningKey, SigningKeyError, StreamPattern, UrlError, User,
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
#[derive(Clone, Debug, Default, Eq, PartialEq)]
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
    /// The claim that has the permissions; `None`: `punctual` and `mediamtx_permissions`.
    pub claim: Option<String>,
    /// The key of short signed tokens.
    pub signing_key: Option<SecretValue>,
    /// Whether a reload ends connections that have lost their right.
    pub apply_to_existing: bool,
}

impl UserTable {
    /// The user, for the decision about callers.
    ///
    /// # Errors
    ///
    /// The user cannot be, which the check of a configuration tells.
    pub fn user(&self) -> Result<User, String> {
        let password = |value: &SecretValue| {
            Password::new(value.secret.clone()).map_err(|error| error.to_string())
        };
        let mut user = User::new(&self.name).with_networks(self.ips.clone());
        if let Some(value) = &self.password {
            user = user.with_password(password(value)?);
        }
        if let Some(value) = &self.token {
            user = user.with_token(password(value)?);
        }
        for permission in &self.permissions {
            let action = permission.action.ok_or("a permission has no `action`")?;
            user = user.with_permission(action, permission.stream.clone());
        }
        user.check().map_err(|error| error.to_string())?;
        Ok(user)
    }

    /// The fault of several keys together.
    pub(crate) fn fault(&self) -> Option<String> {
        match self.user() {
            Err(fault) => Some(fault),
            Ok(_) if self.permissions.is_empty() => {
                Some("it may do nothing: it has no `permissions`".to_owned())
            }
            Ok(_) => None,
        }
    }
}

impl Default for PermissionTable {
    fn default() -> Self {
        Self { action: None, stream: StreamPattern::all() }
    }
}

impl AuthSettings {
    /// The server that is asked about callers.
    ///
    /// # Errors
    ///
    /// The text is not a URL, which the check of a configuration tells.
    pub fn callout(&self) -> Result<Option<CalloutConfig>, UrlError> {
        let Some(url) = &self.http else { return Ok(None) };
        let url = url.secret.expose().parse()?;
        Ok(Some(CalloutConfig { url, format: self.format, timeout: TIMEOUT }))
    }

    /// The JSON web tokens that are accepted.
    ///
    /// # Errors
    ///
    /// The text is not a URL, which the check of a configuration tells.
    pub fn jwt(&self) -> Result<Option<JwtConfig>, UrlError> {
        let Some(url) = &self.jwks else { return Ok(None) };
        let keys = url.secret.expose().parse()?;
        let Self { issuer, audience, claim, .. } = self.clone();
        Ok(Some(JwtConfig { keys, issuer, audience, claim, timeout: TIMEOUT }))
    }

    /// The keys of short signed tokens; the first signs.
    ///
    /// # Errors
    ///
    /// A key is too short, which the check of a configuration tells.
    pub fn signing_keys(&self) -> Result<Vec<SigningKey>, SigningKeyError> {
        let keys = self.signing_key.as_ref().map(|keys| SigningKey::list(keys.secret.expose()));
        keys.unwrap_or_else(|| Ok(Vec::new()))
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
            "a text; default: `punctual` and `mediamtx_permissions`",
            "MediaMTX: authJWTClaimKey",
            "the claim that has the permissions",
        ),
        set: |it, value| store(&mut it.claim, value.filled_text(200).map(|it| Some(it.to_owned()))),
        show: |it| shown_option(it.claim.as_ref()),
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
        show: |it| shown_plain(&it.apply_to_existing),
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
    &[("mediamtx", CalloutFormat::MediaMtx), ("nginx", CalloutFormat::Nginx)];

/// The time in which a server must answer about a caller, or give its keys.
const TIMEOUT: Duration = Duration::from_secs(5);
const MOST_PERMISSIONS: usize = 1_000;
