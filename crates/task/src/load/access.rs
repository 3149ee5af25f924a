//! The file `access` of a computation: grants of access beyond its own tree.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use ce_model::access::{Access, Rule, RuleError};

use super::nearest;
use super::problems::{Exposed, LoadFault, Problems};
use super::source::{TaskSource, parse_lines};

/// The name of the file.
pub(super) const FILE: &str = "access";

/// Reads the file `access`; without one, nothing is granted. `inputs` are the names of the computation's
/// inputs, if these are known.
pub(super) fn read<S: TaskSource>(
    source: &mut S,
    dir: &S::Dir,
    place: &Path,
    inputs: Option<&[String]>,
    findings: &mut Problems,
) -> Option<Access> {
    if matches!(source.find(dir, FILE), Err(LoadFault::Missing)) {
        return Some(Access::default());
    }
    let path = &place.join(FILE);
    let lines = findings.note_lines(path, parse_lines(source.read(dir, FILE)))?;
    let (mut rules, mut root, mut right) = (Vec::new(), None, true);
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let rule = match (Rule::parse(line, inputs.unwrap_or_default()), root) {
            (Ok(Rule::Root(_)), Some(line)) => Err(RuleError::TwoRoots(line)),
            (rule, _) => rule,
        };
        match rule {
            Ok(rule) => {
                root = root.or(matches!(rule, Rule::Root(_)).then_some(at + 1));
                rules.push(rule);
            }
            Err(error) => {
                right = false;
                match (error, inputs) {
                    (RuleError::NoInput(name), Some(inputs)) => {
                        let nearest = nearest(&name, inputs);
                        let fault = LoadFault::NoLabel { name, nearest };
                        findings.problem_in_line(path, at + 1, fault);
                    }
                    // The file `inputs` has a problem, which is reported.
                    (RuleError::NoInput(_), None) => {}
                    (error, _) => findings.problem_in_line(path, at + 1, error),
                }
            }
        }
    }
    right.then_some(Access { rules })
}

/// Returns a fault for each line that this host cannot follow: see [`check_access`](super::check_access).
pub(super) fn faults(access: &Access, exposed: Option<&Exposed>) -> Vec<LoadFault> {
    let faults = access.rules.iter().filter_map(|rule| match (rule, exposed) {
        (Rule::Root(_), Some(exposed)) => {
            Some(LoadFault::Exposed { line: rule.to_string(), exposed: exposed.clone() })
        }
        (_, Some(_)) => None,
        (_, None) => check_exists(rule).err(),
    });
    faults.collect()
}

/// Whether a path is in `/dev`, but not in the shared memory there.
fn is_in_dev(path: &Path) -> bool {
    path.starts_with("/dev") && !path.starts_with("/dev/shm")
}

/// Checks that a granted path exists on this host, and can be shown.
fn check_exists(rule: &Rule) -> Result<(), LoadFault> {
    let (Rule::Read(path) | Rule::Write(path) | Rule::Device(path)) = rule else {
        return Ok(());
    };
    match path.metadata() {
        Ok(about) => {
            let kind = about.file_type();
            let device = kind.is_char_device() || kind.is_block_device() || kind.is_dir();
            match rule {
                Rule::Read(path) | Rule::Write(path) if is_in_dev(path) => {
                    Err(RuleError::InDev(path.clone()).into())
                }
                Rule::Device(_) if !device => Err(RuleError::NotADevice(path.clone()).into()),
                _ => Ok(()),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(LoadFault::NotHere(path.clone()))
        }
        Err(error) => Err(LoadFault::Read(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_is_on_this_host() {
        let fault = |line: &str| {
            check_exists(&Rule::parse(line, &[]).unwrap()).err().map(|fault| fault.to_string())
        };
        for line in
            ["network", "env NOT_SET", "read /etc/passwd", "device /dev/null", "read /dev/shm"]
        {
            assert_eq!(fault(line), None, "{line}");
        }
        assert_eq!(fault("write /nowhere").unwrap(), "/nowhere does not exist on this host");
        for line in ["read /dev", "read /dev/null", "write /dev"] {
            assert!(
                fault(line)
                    .unwrap()
                    .ends_with(" is in /dev, and only devices of it can be granted")
            );
        }
        let plain = check_exists(&Rule::Device("/etc/passwd".into())).unwrap_err();
        assert_eq!(plain.to_string(), "/etc/passwd is not a device");
    }
}
