//! Attributes that a computation sets on its outputs and its log are kept from others while it runs, and removed when they
//! are published.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::getuid;

use super::is_possible;
use super::reach::python;
use super::sight::{as_each_user, evaluate};
use crate::lab::Lab;
use crate::needs::needs;
use crate::program::Running;

/// Makes set-user-id and set-group-id files of everything that it can write, and waits for permission to end.
const PRIVILEGED: &str = r#"echo told; chmod 6755 /proc/self/fd/1
    for file in /tmp/file "$2" "$3/member"; do cp /bin/true "$file"; chmod 6755 "$file"; done
    mkdir "$3/inner"; chmod 7777 "$3/inner" "$3" /tmp /outputs; touch /tmp/ready
    until [ -e LAB/data/go ]; do sleep 0.01; done"#;

/// The files below a directory with a set-user-id or set-group-id bit.
fn privileged(dir: &Path) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(dir).into_iter().flatten();
    let files = entries.filter(|it| {
        it.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o6000 != 0)
    });
    files.map(walkdir::DirEntry::into_path).collect()
}

/// Whether a directory above a file is closed to all but this user.
fn is_closed(file: &Path, storage: &Path, user: u32) -> bool {
    file.ancestors().skip(1).take_while(|it| it.starts_with(storage)).any(|dir| {
        dir.metadata().is_ok_and(|about| about.mode() & 0o077 == 0 && about.uid() == user)
    })
}

#[test]
fn set_user_id_programs_are_unreachable_during_and_after_the_call() {
    if !is_possible() {
        return;
    }
    let lab = Lab::task("Inputs: 'x'\n(make INPUT('x'))[0]").isolated();
    let place = lab.path("").display().to_string();
    let script = PRIVILEGED.replace("LAB", place.trim_end_matches('/'));
    let access = format!("read {}\n", lab.path("data").display());
    let lab = lab.computation("make", "a", "b c/", &script);
    let lab = lab.file("computations/make/access", access).commit();
    fs::set_permissions(lab.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    as_each_user(&lab, |user| {
        let (storage, go) = (lab.path("storage"), lab.path("data/go"));
        drop((fs::remove_dir_all(&storage), fs::remove_file(&go)));
        let mut command = lab.evaluation(&[]);
        user.map(|user| command.uid(user));
        let running = Running::start(&mut command);
        let limit = Instant::now() + Duration::from_secs(300);
        let is_ready = || {
            let mut entries = walkdir::WalkDir::new(&storage).into_iter().flatten();
            entries.any(|it| it.path().ends_with("work/ready"))
        };
        while !is_ready() {
            assert!(!running.has_ended() && Instant::now() < limit, "it begins");
            thread::sleep(Duration::from_millis(10));
        }
        let made = privileged(&storage);
        let user = user.unwrap_or_else(|| getuid().as_raw());
        let open: Vec<_> = made.iter().filter(|it| !is_closed(it, &storage, user)).collect();
        assert!(made.len() >= 4 && open.is_empty(), "{made:?} {open:?}");
        fs::write(&go, "").unwrap();
        assert!(running.output().status.success());
        assert_eq!(privileged(&storage), Vec::<PathBuf>::new());
        for entry in walkdir::WalkDir::new(&storage) {
            let (about, path) = {
                let entry = entry.unwrap();
                (entry.metadata().unwrap(), entry.into_path())
            };
            assert_eq!((about.uid(), about.mode() & 0o7002), (user, 0), "{}", path.display());
        }
    });
}

/// Reports the attributes of its inputs, and sets some of everything that it makes.
const ATTRIBUTES: &str = r#"
import array, fcntl, os, stat, struct
GET, SET, NODUMP, NOATIME = 0x80086601, 0x40086602, 0x40, 0x80
def look(path):
    about, file = os.lstat(path), os.open(path, os.O_RDONLY)
    flags = array.array('L', [0])
    try: fcntl.ioctl(file, GET, flags)
    except OSError: pass
    os.close(file)
    return os.listxattr(path), flags[0] & (NODUMP | NOATIME), oct(stat.S_IMODE(about.st_mode)), about.st_mtime < 9, about.st_atime < 9
def mark(path):
    acl = struct.pack('<I', 2) + b''.join(struct.pack('<HHI', tag, right, who)
        for tag, right, who in ((1, 7, 2**32 - 1), (2, 7, 1), (4, 5, 2**32 - 1), (16, 7, 2**32 - 1), (32, 5, 2**32 - 1)))
    def flag():
        file = os.open(path, os.O_RDONLY)
        try: fcntl.ioctl(file, SET, array.array('L', [NODUMP | NOATIME]))
        finally: os.close(file)
    for act in (lambda: os.setxattr(path, 'user.hidden', b'x'), lambda: os.setxattr(path, 'system.posix_acl_access', acl),
            lambda: os.path.isdir(path) and os.setxattr(path, 'system.posix_acl_default', acl), flag,
            lambda: os.utime(path, (1, 1)), lambda: os.chmod(path, 0o7777 if os.path.isdir(path) else 0o6444)):
        try: act()
        except OSError as error: print(path, error)
"#;

const MARK: &str = r#"
file, directory = sys.argv[2:4]
os.makedirs(directory + '/inner'); os.symlink('member', directory + '/link')
os.utime(directory + '/link', (1, 1), follow_symlinks=False)
print('told', flush=True)
for path in file, directory + '/member', directory + '/inner/member':
    open(path, 'w').write('same\n')
for path in file, directory + '/member', directory + '/inner/member', directory + '/inner', directory, '/proc/self/fd/1': mark(path)
assert look(file)[0] and look(file)[3]"#;

const LOOK: &str = r#"
file, directory = sys.argv[1:3]
told = [look(path) for path in (file, directory + '/member', directory + '/inner/member', directory + '/inner', directory)]
told.append(os.lstat(directory + '/link').st_mtime < 9)
open(sys.argv[3], 'w').write(f'{told}\n')"#;

#[test]
fn attributes_of_outputs_are_not_part_of_the_value() {
    if !is_possible() {
        return;
    }
    needs(&["python3"]);
    let text = "Inputs: 'x'\n(look (mark INPUT('x'))[0] (mark INPUT('x'))[1])[0]";
    let script =
        |lines: &str| python(&format!("{ATTRIBUTES}{lines}")).replace("\"$1\" \"$2\"", "\"$@\"");
    let lab = Lab::task(text).isolated();
    let lab = lab.computation("mark", "a", "b c/", &script(MARK));
    let lab = lab.computation("look", "b c/", "d", &script(LOOK)).commit();
    as_each_user(&lab, |user| {
        let file = "([], 0, '0o444', False, False)";
        let directory = "([], 0, '0o555', False, False)";
        let seen = evaluate(&lab, user);
        let expected = [file, file, file, directory, directory, "False"].join(", ");
        assert_eq!(seen, format!("[{expected}]\n"));
        let log =
            lab.storage().into_iter().find(|it| it.starts_with("c_mark/") && it.contains("/log/"));
        let about = lab.path("storage").join(log.unwrap()).metadata().unwrap();
        assert!(about.mode() & 0o7133 == 0 && about.mtime() > 9, "{:o}", about.mode());
    });
}
