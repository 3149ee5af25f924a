//! Advice for users about files that cannot be read or written, and about the limits of processes.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::{fs, iter};

use crate::humanize::quoted_path;
use crate::suggest::nearest;

/// Returns advice for a shortage of threads, signals or open files.
pub fn raising_limits() -> String {
    "raise the limits of processes and open files (ulimit -u, ulimit -n), or give a smaller -j"
        .to_owned()
}

/// The errors of Linux for too many open files, of the host and of a process.
const NO_MORE_FILES: [i32; 2] = [23, 24];

/// Returns which limit an operation has met, if its error says that something is used up: processes, memory or open files. Who tries
/// again later, or does less at once, may succeed.
pub fn exhausted_limit(source: &io::Error) -> Option<&'static str> {
    let [host, process] = NO_MORE_FILES.map(|error| source.raw_os_error() == Some(error));
    match source.kind() {
        ErrorKind::WouldBlock => Some(
            "the limit of processes and threads is reached (ulimit -u, or pids.max of a control group)",
        ),
        ErrorKind::OutOfMemory => Some(
            "no memory is left (ulimit -v, ulimit -d, or memory of a control group or the host)",
        ),
        _ if process => Some("the limit of open files is reached (ulimit -Hn)"),
        _ if host => Some("the host's limit of open files is reached (sysctl fs.file-max)"),
        _ => None,
    }
}

/// Returns which limit is the cause of an error, or of one of its sources: see [`exhausted_limit`].
pub fn exhausted_limit_behind(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let mut causes = iter::successors(Some(error), |&error| error.source());
    causes.find_map(|error| error.downcast_ref().and_then(exhausted_limit))
}

/// The most names of a directory that are compared with a missing name.
const MOST_NAMES: usize = 10_000;

/// Returns advice for a file that cannot be read, if there is any.
pub fn for_reading(path: &Path, source: &io::Error) -> Option<String> {
    match source.kind() {
        ErrorKind::IsADirectory => {
            Some(format!("give a file; ls {} shows those in the directory", shell(path)))
        }
        _ => for_finding(path, source),
    }
}

/// Returns advice for a directory that cannot be read, if there is any.
pub fn for_directory(path: &Path, source: &io::Error) -> Option<String> {
    match source.kind() {
        ErrorKind::NotADirectory if path.exists() => {
            Some(format!("give a directory: {} is not one", path.display()))
        }
        _ => for_finding(path, source),
    }
}

/// Returns advice for a file or directory that cannot be written, if there is any.
pub fn for_writing(path: &Path, source: &io::Error) -> Option<String> {
    Some(match source.kind() {
        ErrorKind::NotFound
            if let Some(missing) = parent(path).filter(|it| it.symlink_metadata().is_err()) =>
        {
            format!("mkdir -p {} makes its directory", shell(missing))
        }
        ErrorKind::IsADirectory => {
            format!("give the name of a file: {} is a directory", path.display())
        }
        ErrorKind::AlreadyExists => format!("give another name: {} exists", path.display()),
        ErrorKind::PermissionDenied => {
            let place = path.ancestors().find(|it| it.exists()).unwrap_or_else(|| Path::new("."));
            format!("give another place; ls -ld {} shows who may write there", shell(place))
        }
        ErrorKind::ReadOnlyFilesystem => {
            "give another place: this file system is mounted for reading only".to_owned()
        }
        ErrorKind::StorageFull => {
            "make room there (see df and df -i), or give another place".into()
        }
        ErrorKind::FileTooLarge => "let files be larger: see ulimit -f".to_owned(),
        ErrorKind::QuotaExceeded => {
            "make room there, have your quota raised, or give another place".to_owned()
        }
        _ => return for_finding(path, source),
    })
}

/// Returns advice for an error on the way to a file, if there is any.
fn for_finding(path: &Path, source: &io::Error) -> Option<String> {
    Some(match source.kind() {
        ErrorKind::NotFound => for_missing(path),
        ErrorKind::NotADirectory => {
            let file = path.ancestors().skip(1).find(|it| it.exists())?;
            format!("correct the path: {} is a file, not a directory", file.display())
        }
        ErrorKind::PermissionDenied => {
            let hidden = path.ancestors().find(|it| it.symlink_metadata().is_ok()).unwrap_or(path);
            format!("ls -ld {} shows who may read it", shell(hidden))
        }
        ErrorKind::InvalidFilename => {
            "give a shorter path, whose names have at most 255 bytes".into()
        }
        ErrorKind::StaleNetworkFileHandle | ErrorKind::NotConnected => {
            "check whether its file system is still mounted".to_owned()
        }
        // The only other error of links is a circle.
        _ if path.is_symlink() && !path.exists() => {
            format!("correct the links: ls -l {} shows where it leads", shell(path))
        }
        _ => return None,
    })
}

/// Returns advice for a path that leads to nothing: a similar name, or a look into the directory.
fn for_missing(path: &Path) -> String {
    let mut ways: Vec<&Path> = path.ancestors().filter(|it| !it.as_os_str().is_empty()).collect();
    ways.reverse();
    let Some(absent) = ways.into_iter().find(|it| !it.exists()) else {
        return "give the path of a file".to_owned();
    };
    if let Ok(target) = absent.read_link() {
        return format!("correct the link {}: there is no {}", absent.display(), target.display());
    }
    let dir = parent(absent).unwrap_or_else(|| Path::new("."));
    match similar(dir, absent) {
        Some(name) => format!("did you mean {}?", absent.with_file_name(name).display()),
        None if absent == path => format!("ls {} shows what is there", shell(dir)),
        None => format!(
            "correct the path: there is no {}; ls {} shows what is there",
            absent.display(),
            shell(dir)
        ),
    }
}

/// The name in a directory that may be meant.
fn similar(dir: &Path, absent: &Path) -> Option<String> {
    let entries = fs::read_dir(dir).ok()?.take(MOST_NAMES).filter_map(Result::ok);
    let names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    nearest(absent.file_name()?.to_str()?, &names)
}

/// The directory of a path, if it names one.
fn parent(path: &Path) -> Option<&Path> {
    path.parent().filter(|parent| !parent.as_os_str().is_empty())
}

/// A path as a word of a shell that is not an option.
fn shell(path: &Path) -> String {
    let is_option = path.as_os_str().as_encoded_bytes().starts_with(b"-");
    let path = if is_option { Path::new(".").join(path) } else { PathBuf::from(path) };
    quoted_path(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> Option<String> {
        for_reading(path, &fs::read(path).unwrap_err())
    }

    fn written(path: &Path) -> String {
        for_writing(path, &fs::write(path, "").unwrap_err()).unwrap()
    }

    #[test]
    fn an_error_names_the_limit_that_is_reached() {
        let limits = [11, 12, 23, 24].map(|errno| {
            exhausted_limit(&io::Error::from_raw_os_error(errno))
                .map(|it| it.split_once('(').unwrap().1)
        });
        for (limit, expected) in
            limits.iter().zip(["ulimit -u", "ulimit -v", "sysctl", "ulimit -Hn"])
        {
            assert!(limit.is_some_and(|limit| limit.starts_with(expected)), "{limit:?}");
        }
        for errno in [1, 2, 5, 13, 22, 28] {
            assert_eq!(exhausted_limit(&io::Error::from_raw_os_error(errno)), None, "{errno}");
        }
    }

    #[test]
    fn each_error_of_a_path_names_the_part_that_is_wrong() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path();
        let shown = dir.display();
        fs::write(dir.join("points.tsv"), "").unwrap();
        std::os::unix::fs::symlink("gone", dir.join("link")).unwrap();
        std::os::unix::fs::symlink("round", dir.join("round")).unwrap();
        for (name, expected) in [
            ("round", format!("correct the links: ls -l {shown}/round shows where it leads")),
            ("point.tsv", format!("did you mean {shown}/points.tsv?")),
            ("some", format!("ls {shown} shows what is there")),
            ("link", format!("correct the link {shown}/link: there is no gone")),
            (".", format!("give a file; ls {shown}/. shows those in the directory")),
            (
                "some/where",
                format!(
                    "correct the path: there is no {shown}/some; ls {shown} shows what is there"
                ),
            ),
            (
                "points.tsv/row",
                format!("correct the path: {shown}/points.tsv is a file, not a directory"),
            ),
        ] {
            assert_eq!(read(&dir.join(name)), Some(expected), "{name}");
        }
        let long = "x".repeat(256);
        assert!(read(&dir.join(long)).unwrap().starts_with("give a shorter path"));
    }

    #[test]
    fn the_hint_for_an_unwritable_path_names_the_missing_directory() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path();
        let page = dir.join("a b/page");
        assert_eq!(written(&page), format!("mkdir -p '{}/a b' makes its directory", dir.display()));
        assert_eq!(
            written(dir),
            format!("give the name of a file: {} is a directory", dir.display())
        );
        let denied = ErrorKind::PermissionDenied.into();
        let expected =
            format!("give another place; ls -ld {} shows who may write there", dir.display());
        assert_eq!(for_writing(&page, &denied), Some(expected));
    }

    #[test]
    fn a_limit_is_found_behind_other_errors() {
        #[derive(Debug, thiserror::Error)]
        #[error("no thread can be started")]
        struct NoThread(#[source] io::Error);
        let error = |errno| NoThread(io::Error::from_raw_os_error(errno));
        assert!(exhausted_limit_behind(&error(11)).is_some_and(|it| it.contains("ulimit -u")));
        assert_eq!(exhausted_limit_behind(&error(2)), None);
    }
}
