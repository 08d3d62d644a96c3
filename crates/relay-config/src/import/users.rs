//! Users and other judges of callers in `mediamtx.yml`.

use serde_json::{Map, Value as Json};

use super::document::{Document, Table, is_nothing, text, texts};
use crate::toml_text::{list, quoted};
use crate::users::{AUTH, USER};

/// Translates the users of the chosen method.
pub(super) fn translate(settings: &Map<String, Json>, document: &mut Document) {
    let given = |key: &str| settings.get(key).and_then(text);
    let method = given("authMethod").unwrap_or_else(|| "internal".to_owned());
    let mut table = Table::new("[auth]");
    let mut set = |key, from: &str| {
        if let Some(value) = settings.get(from).and_then(text) {
            document.set(&mut table, AUTH, (key, quoted(&value)), from);
        }
    };
    match method.as_str() {
        "http" => set("http", "authHTTPAddress"),
        "jwt" => {
            set("jwks", "authJWTJWKS");
            set("issuer", "authJWTIssuer");
            set("audience", "authJWTAudience");
            set("claim", "authJWTClaimKey");
        }
        _ => {}
    }
    document.add(table);
    match method.as_str() {
        "internal" => users(settings.get("authInternalUsers"), document),
        "http" | "jwt" => {}
        other => document.leave("authMethod", format!("there is no method `{other}`"), ""),
    }
}

fn users(users: Option<&Json>, document: &mut Document) {
    let Some(Json::Array(users)) = users else { return };
    for (index, user) in users.iter().enumerate() {
        let from = format!("authInternalUsers[{index}]");
        let Json::Object(user) = user else {
            document.leave(from, "it is not a table", "");
            continue;
        };
        let value = |key: &str| user.get(key).and_then(text);
        let name = value("user").unwrap_or_else(|| "any".to_owned());
        let is_hash = name.starts_with("sha256:") || name.starts_with("argon2:");
        let ips = user.get("ips").map(texts).unwrap_or_default();
        if is_hash {
            let advice = "write the name itself; only the password may be a hash";
            document.leave(from, "the name of a user cannot be a hash", advice);
            continue;
        }
        if name != "any" && value("pass").is_none() && ips.is_empty() {
            let advice = "give the user a password, or its permissions to `any`";
            document.leave(from, "the user has no password", advice);
            continue;
        }
        let permissions = permissions(user, &from, document);
        if permissions.is_empty() {
            continue;
        }
        let mut table = Table::new("[[user]]");
        document.set(&mut table, USER, ("name", quoted(&name)), &format!("{from}.user"));
        if let Some(password) = value("pass").filter(|_| name != "any") {
            let from = format!("{from}.pass");
            document.set(&mut table, USER, ("password", quoted(&password)), &from);
        }
        if !ips.is_empty() {
            document.set(&mut table, USER, ("ips", list(&ips)), &format!("{from}.ips"));
        }
        let permissions = format!("[{}]", permissions.join(", "));
        document.set(
            &mut table,
            USER,
            ("permissions", permissions),
            &format!("{from}.permissions"),
        );
        document.add(table);
    }
}

/// The permissions of a user, each as a table of TOML.
fn permissions(user: &Map<String, Json>, from: &str, document: &mut Document) -> Vec<String> {
    let Some(Json::Array(permissions)) = user.get("permissions") else { return Vec::new() };
    let mut found = Vec::new();
    for permission in permissions {
        let value =
            |key: &str| permission.get(key).filter(|value| !is_nothing(value)).and_then(text);
        let action = match value("action").as_deref() {
            Some("api") => "api-admin".to_owned(),
            // There is no profiler, so nobody needs the right to it.
            Some("pprof") => continue,
            Some(action @ ("publish" | "read" | "playback" | "metrics")) => action.to_owned(),
            other => {
                let reason = format!("there is no action `{}`", other.unwrap_or_default());
                document.leave(format!("{from}.permissions"), reason, "");
                continue;
            }
        };
        found.push(match value("path") {
            None => format!("{{ action = {} }}", quoted(&action)),
            Some(path) => {
                format!("{{ action = {}, stream = {} }}", quoted(&action), quoted(&path))
            }
        });
    }
    found
}
