//! Provenance: who recorded something, where, when, and with which version of this program.

use std::sync::OnceLock;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The user, host, time and program version of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The name of the host.
    pub host: String,
    /// The name of the user.
    pub user: String,
    /// The time.
    pub at: Timestamp,
    /// The version of compeval.
    pub compeval: String,
}

impl Provenance {
    /// This program, run by this user on this host now.
    pub fn now() -> Self {
        Self {
            host: host(),
            user: user(),
            at: Timestamp::now(),
            compeval: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// The name of this host.
pub(crate) fn host() -> String {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| rustix::system::uname().nodename().to_string_lossy().into_owned()).clone()
}

/// The name of the user.
fn user() -> String {
    static USER: OnceLock<String> = OnceLock::new();
    USER.get_or_init(|| {
        ["USER", "LOGNAME"]
            .into_iter()
            .find_map(|name| std::env::var(name).ok())
            .unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()))
    })
    .clone()
}
