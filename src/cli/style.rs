//! How a program prints the tree: the original's text, or states in words for people.

use std::io::{self, IsTerminal};

use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;

use crate::report::TreeStyle;
use ce_evaluate::session::Error;
use ce_git::Config;

/// How the tree tells states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StyleName {
    Original,
    Words,
}

impl StyleName {
    /// The style that was asked for, or is configured, or suits standard output: a terminal gets words, and colours unless the
    /// user's environment is against them.
    pub(super) fn style(asked: Option<Self>, config: &Config) -> Result<TreeStyle, Error> {
        let configured = config.prints_words()?;
        let configured = configured.map(|words| if words { Self::Words } else { Self::Original });
        let usual = if io::stdout().is_terminal() { Self::Words } else { Self::Original };
        Ok(match asked.or(configured).unwrap_or(usual) {
            Self::Original => TreeStyle::Original,
            Self::Words => {
                let colours = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
                TreeStyle::Words { colours }
            }
        })
    }
}
