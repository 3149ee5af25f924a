//! Summaries of pushes to a results repository, and of pulls from one.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::harmless;
use ce_exchange::{
    LeftOut, Pulled, Pushed, RefusedFor, RefusedResult, RemovedFile, RevokedResult, StrangeInbox,
};
use ce_model::humanize::{counted, size};

/// The greatest number of results that are named for one reason.
const NAMED: usize = 20;

/// Prints the results that were pushed to a repository, or would be.
pub fn pushed(pushed: &Pushed, url: &str, dry: bool, out: &mut dyn Write) -> io::Result<()> {
    let Pushed { bytes, known, revoked_before, now, inbox, .. } = pushed;
    let (url, what) = (harmless(url), pushed.summary());
    if what.is_empty() {
        let known = match (*known, *revoked_before) {
            (0, 0) => String::new(),
            (known, 0) => format!(": it has {}", counted(known, "result")),
            (_, revoked) => format!(": it has {} with this reason", counted(revoked, "revocation")),
        };
        writeln!(out, "nothing is new to {url}{known}")?;
    } else {
        let would = if dry { "would push" } else { "pushed" };
        writeln!(out, "{would} {what}{} to {url}", sized(*bytes))?;
    }
    if pushed.large > 0 {
        let (large, bytes) = (counted(pushed.large, "large output"), size(pushed.large_bytes));
        let are = match (dry, pushed.large) {
            (true, 1) => "would be a Git LFS object",
            (true, _) => "would be Git LFS objects",
            (false, 1) => "is a Git LFS object",
            (false, _) => "are Git LFS objects",
        };
        writeln!(out, "{large} ({bytes}) {are}")?;
    }
    if pushed.restored > 0 {
        let are = match (dry, pushed.restored) {
            (true, _) => "would be there again",
            (false, 1) => "is there again",
            (false, _) => "are there again",
        };
        writeln!(out, "{} that the repository had lost {are}", counted(pushed.restored, "object"))?;
    }
    if let Some(lfs) = pushed.lfs.filter(|_| pushed.is_set) {
        let are = if dry { "would become" } else { "become" };
        writeln!(out, "outputs above {} {are} Git LFS objects there from now on", size(lfs))?;
    }
    away(pushed.away, "stay here", out)?;
    if let Some(now) = now {
        let what = if *inbox { "an inbox, since others pushed all the time" } else { "results" };
        writeln!(out, "{}: {what} at {}", now.name, now.id.short())?;
    }
    match (pushed.waiting, pushed.emptied) {
        (0, _) => {}
        (waiting, 0) if pushed.strange.is_empty() => {
            let inboxes = if waiting == 1 { "inbox waits" } else { "inboxes wait" };
            writeln!(out, "{waiting} {inboxes}: --collect takes the results of others from there")?;
        }
        (waiting, emptied) => {
            let took = if dry { "would take" } else { "took" };
            writeln!(out, "{took} {emptied} of {}", in_words(waiting))?;
        }
    }
    Ok(())
}

/// Prints the results that were not pushed to a repository, or would not be, and why.
pub fn not_pushed(pushed: &Pushed, out: &mut dyn Write) -> io::Result<()> {
    let Pushed { strange, differing, left_out, .. } = pushed;
    for StrangeInbox { inbox, path } in strange {
        let (inbox, path) = (harmless(inbox), harmless(path));
        writeln!(out, "{inbox} stays: it has {path}, which no results have")?;
    }
    for record in differing.iter().take(NAMED) {
        let record = harmless(record);
        writeln!(
            out,
            "{record}: it has other outputs there, and they stay; this record goes to differs/"
        )?;
    }
    more(differing.len(), out)?;
    let (wrong, ruled): (Vec<_>, Vec<_>) = left_out.iter().partition(|it| it.why.is_wrong());
    for LeftOut { name, why } in wrong.iter().chain(ruled.iter().take(NAMED)) {
        writeln!(out, "{} stays here: {}", harmless(name), harmless(&why.to_string()))?;
    }
    more(ruled.len(), out)
}

/// Prints the results that were pulled from a repository, or would be.
pub fn pulled(pulled: &Pulled, url: &str, dry: bool, out: &mut dyn Write) -> io::Result<()> {
    let Pulled { bytes, known, from, .. } = pulled;
    let (url, what) = (harmless(url), pulled.summary());
    match from {
        None => writeln!(out, "{url} has no results")?,
        Some(_) if what.is_empty() => {
            writeln!(out, "nothing is new in {url}: {} of it are here", counted(*known, "result"))?;
        }
        Some(from) => {
            let (would, at) = (if dry { "would pull" } else { "pulled" }, from.id.short());
            writeln!(out, "{would} {what}{} from {url} at {at}", sized(*bytes))?;
        }
    }
    away(pulled.away, "stay there", out)
}

/// Prints the results that were not pulled from a repository, or would not be, or are revoked, and why.
pub fn not_pulled(pulled: &Pulled, out: &mut dyn Write) -> io::Result<()> {
    let Pulled { differing, refused, .. } = pulled;
    for name in differing.iter().take(NAMED) {
        writeln!(out, "{}: it has other outputs here, and they stay", harmless(name))?;
    }
    more(differing.len(), out)?;
    for RevokedResult { name, reason } in &pulled.revoked {
        let (name, reason) = (harmless(name), harmless(reason));
        writeln!(out, "{name} is here, and revoked: {reason}; ce run --force executes it again")?;
    }
    for RemovedFile { name, commit } in pulled.removed.iter().take(NAMED) {
        let (path, commit) = (harmless(name), commit.short());
        writeln!(out, "{path} is there no more: the commit {commit} has taken it away")?;
    }
    more(pulled.removed.len(), out)?;
    let (untrusted, refused): (Vec<_>, Vec<_>) =
        refused.iter().partition(|it| matches!(it.why, RefusedFor::Untrusted(_)));
    print_untrusted(&untrusted, out)?;
    let (wrong, ruled): (Vec<_>, Vec<_>) = refused.into_iter().partition(|it| it.why.is_wrong());
    for RefusedResult { name, why } in wrong {
        writeln!(out, "{} was not taken: {}", harmless(name), harmless(&why.to_string()))?;
    }
    for RefusedResult { name, why } in ruled.iter().take(NAMED) {
        writeln!(out, "{} stays there: {}", harmless(name), harmless(&why.to_string()))?;
    }
    more(ruled.len(), out)
}

/// Prints the number of calls that are known without their outputs.
fn away(calls: usize, where_they_are: &str, out: &mut dyn Write) -> io::Result<()> {
    match calls {
        0 => Ok(()),
        1 => writeln!(out, "1 call is away: known, and outputs of it {where_they_are}"),
        calls => {
            writeln!(out, "{calls} calls are away: known, and outputs of them {where_they_are}")
        }
    }
}

/// Prints the results for which nobody trusted vouches: those with the same reason together.
fn print_untrusted(untrusted: &[&RefusedResult], out: &mut dyn Write) -> io::Result<()> {
    let mut reasons = BTreeMap::<String, Vec<&str>>::new();
    for RefusedResult { name, why } in untrusted {
        reasons.entry(why.to_string()).or_default().push(name);
    }
    for (why, names) in reasons {
        let why = harmless(&why);
        if let [name] = names[..] {
            writeln!(out, "{} was not taken: {why}", harmless(name))?;
            continue;
        }
        writeln!(out, "{} results were not taken, each since {why}:", names.len())?;
        for name in names.iter().take(NAMED) {
            writeln!(out, "  {}", harmless(name))?;
        }
        more(names.len(), out)?;
    }
    Ok(())
}

fn in_words(inboxes: usize) -> String {
    if inboxes == 1 { "1 inbox".to_owned() } else { format!("{inboxes} inboxes") }
}

/// The size of the files of results, in parentheses; nothing if there are none.
fn sized(bytes: u64) -> String {
    if bytes == 0 { String::new() } else { format!(" ({})", size(bytes)) }
}

fn more(all: usize, out: &mut dyn Write) -> io::Result<()> {
    match all.saturating_sub(NAMED) {
        0 => Ok(()),
        more => writeln!(out, "and {more} more"),
    }
}
