//! Repositories that are somewhere else: over ssh and http, with the user's own git.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use super::{evaluate, lab, listed, pull, push};
use crate::fifo::{Fifo, Never};
use crate::lab::Lab;
use crate::program::Ran;

/// git keeps a connection to no server that it reaches by a proxy of the user who runs the tests.
pub(super) const VARIABLES: [(&str, &str); 2] =
    [("no_proxy", "127.0.0.1"), ("GIT_TERMINAL_PROMPT", "0")];

/// Starts a server for the repositories of a laboratory, which has Git LFS objects, too; returns its port.
pub(super) fn serve(lab: &Lab) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let root = lab.path("");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let root = root.clone();
            thread::spawn(move || drop(answer(stream.unwrap(), &root)));
        }
    });
    port
}

/// `ce push` or `ce pull` of a URL, with variables for git.
pub(super) fn exchange<'a>(
    lab: &'a Lab,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Ran<'a> {
    let mut command = lab.command("ce");
    lab.finish(command.args(arguments).envs(variables.iter().copied()))
}

/// Pushes results to a URL, and pulls them from there into another storage.
fn there_and_back(lab: &Lab, url: &str, variables: &[(&str, &str)]) {
    evaluate(lab, "storage").exit(0).called(vec!["once", "twice"]);
    let there = exchange(lab, &["push", "../storage", url], variables).exit(0);
    there.shows("pushed 2 calls, 1 job");
    exchange(lab, &["push", "../storage", url], variables).exit(0).shows("nothing is new");
    assert_eq!(listed(lab, "results.git").iter().filter(|it| it.contains("/record/")).count(), 3);
    exchange(lab, &["pull", "../other", url], variables).exit(0).shows("pulled 2 calls, 1 job");
    evaluate(lab, "other").exit(0).called(vec![]);
}

/// Writes a program in place of ssh, which notes its arguments: commands for another host are executed here. Returns its
/// path.
pub(super) fn ssh(lab: &Lab) -> String {
    let place = lab.path("ssh");
    let script =
        "#!/bin/sh\necho \"$*\" >>\"$0.called\"\nfor command; do :; done\neval \"exec $command\"\n";
    fs::write(&place, script).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    place.to_str().unwrap().to_owned()
}

#[test]
fn results_go_over_ssh() {
    let lab = lab();
    let ssh = ssh(&lab);
    let variables = [("GIT_SSH_COMMAND", &*ssh), ("GIT_SSH_VARIANT", "ssh")];
    let place = lab.path("results.git");
    there_and_back(&lab, &format!("ssh://ada@lab.example{}", place.display()), &variables);
    let told = fs::read_to_string(lab.path("ssh.called")).unwrap();
    assert!(told.contains("ada@lab.example git-receive-pack"), "{told}");
    let scp = format!("lab.example:{}", place.display());
    exchange(&lab, &["push", "../storage", &scp], &variables)
        .exit(0)
        .shows("nothing is new to lab.example:");
}

#[test]
fn results_go_over_http_and_no_password_is_shown() {
    let lab = lab();
    let port = serve(&lab);
    let variables = VARIABLES;
    let url = format!("http://ada:hunter2@127.0.0.1:{port}/results.git");
    there_and_back(&lab, &url, &variables);
    let wrong = format!("http://ada:wrongword@127.0.0.1:{port}/results.git");
    let told = exchange(&lab, &["push", "../storage", &wrong], &variables).exit(5);
    let told = told.says(&format!("git ls-remote of http://127.0.0.1:{port}/results.git failed: "));
    assert!(!told.stderr.contains("wrongword"), "{}", told.stderr);
    let kept = walked(&lab.path("cache"));
    assert!(kept.iter().any(|it| it.ends_with("config")), "the mirror is in the cache: {kept:?}");
    for file in kept {
        let text = fs::read(&file).unwrap();
        assert!(!text.windows(7).any(|it| it == b"hunter2"), "{} has it", file.display());
    }
}

#[test]
fn a_damaged_mirror_is_made_anew() {
    let lab = lab();
    lab.ce_run(&[]).exit(0);
    push(&lab, &[], "storage", "results.git").exit(0);
    let mirrors = fs::read_dir(lab.path("cache/compeval/mirrors")).unwrap();
    let mirror = mirrors.map(|it| it.unwrap().path()).find(|it| it.is_dir()).unwrap();
    for damaged in ["objects", "HEAD", "refs"] {
        let damaged = mirror.join(damaged);
        if damaged.is_dir() { fs::remove_dir_all(damaged) } else { fs::remove_file(damaged) }
            .unwrap();
        pull(&lab, &["--no-sync"], "other", "results.git").exit(0);
    }
    fs::write(lab.path("cache/file"), "").unwrap();
    let mut command = lab.command("ce");
    command.args(["push", "../storage", "../results.git"]);
    let ran = lab.finish(command.env("XDG_CACHE_HOME", lab.path("cache/file")));
    ran.exit(5).says("the mirror of ").says("try: if it is damaged, remove it");
}

/// All files below a directory.
fn walked(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walked(&path) } else { vec![path] }).collect()
}

/// While it exists, the server of a laboratory sends no Git LFS object.
pub(super) struct Stall {
    begun: Fifo,
    never: Option<Never>,
    files: [PathBuf; 2],
}

impl Stall {
    pub(super) fn new(lab: &Lab) -> Self {
        let files = STALL.map(|name| lab.path(name));
        // The server looks for the first one.
        let never = Some(Never::new(files[1].clone()));
        Self { begun: Fifo::new(&files[0]), never, files }
    }

    /// Waits until somebody asks for an object.
    #[track_caller]
    pub(super) fn begun(&self) {
        assert_eq!(self.begun.line(), "begun");
    }
}

impl Drop for Stall {
    fn drop(&mut self) {
        fs::remove_file(&self.files[0]).unwrap();
        drop(self.never.take());
        fs::remove_file(&self.files[1]).unwrap();
    }
}

/// The FIFOs by which a server says that it would send an object, and waits.
const STALL: [&str; 2] = ["begun", "never"];

/// Answers a request by git's own program for servers, if the request has the password.
fn answer(stream: TcpStream, root: &Path) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let header = |name: &str| {
        headers
            .iter()
            .find(|(it, _)| it == name)
            .map(|(_, value)| value.as_str())
            .unwrap_or_default()
    };
    let mut stream = stream;
    // ada:hunter2
    if header("authorization") != "Basic YWRhOmh1bnRlcjI=" {
        let challenge = "WWW-Authenticate: Basic realm=\"lab\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return write!(stream, "HTTP/1.1 401 Unauthorized\r\n{challenge}");
    }
    let body = body(&mut reader, header("transfer-encoding"), header("content-length"))?;
    if path.ends_with("/info/lfs/objects/batch") || path.starts_with("/objects/") {
        let (status, answer) = lfs(&method, path, header("host"), (&body, root))?;
        let length = answer.len();
        let head = "Content-Type: application/vnd.git-lfs+json\r\nConnection: close\r\n";
        write!(stream, "HTTP/1.1 {status} -\r\n{head}Content-Length: {length}\r\n\r\n")?;
        return stream.write_all(&answer);
    }
    let mut server = Command::new("git")
        .arg("http-backend")
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .envs([("REQUEST_METHOD", &*method), ("PATH_INFO", path), ("QUERY_STRING", query)])
        .envs([("CONTENT_TYPE", header("content-type")), ("GIT_HTTP_EXPORT_ALL", "1")])
        .envs([("GIT_PROTOCOL", header("git-protocol")), ("REMOTE_USER", "ada")])
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("GIT_PROJECT_ROOT", root)
        // The directory may belong to somebody else.
        .envs([("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "safe.directory")])
        .env("GIT_CONFIG_VALUE_0", "*")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdin = server.stdin.take().unwrap();
    thread::spawn(move || stdin.write_all(&body));
    let mut answer = Vec::new();
    server.stdout.take().unwrap().read_to_end(&mut answer)?;
    server.wait()?;
    let status = if answer.starts_with(b"Status: ") { &answer[8..11] } else { b"200" };
    stream.write_all(&[b"HTTP/1.1 ", status, b" -\r\nConnection: close\r\n", &answer].concat())
}

/// The answer of a server for Git LFS: its objects are in `objects/`, its requests in the file `requests`. The file `refused` has the status
/// of answers to requests that begin so, such as `507 PUT`, in place of doing what they ask for.
fn lfs(
    method: &str,
    path: &str,
    host: &str,
    (body, root): (&[u8], &Path),
) -> std::io::Result<(u16, Vec<u8>)> {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let operation = request["operation"].as_str().unwrap_or_default();
    let line = format!("{method} {path} {operation}\n");
    let mut log =
        fs::File::options().create(true).append(true).open(root.join("requests")).unwrap();
    log.write_all(line.as_bytes()).unwrap();
    let refused = fs::read_to_string(root.join("refused")).unwrap_or_default();
    if let Some((status, begin)) = refused.trim().split_once(' ')
        && line.starts_with(begin)
    {
        return Ok((status.parse().unwrap(), br#"{"message":"refused"}"#.to_vec()));
    }
    let object = |oid: &str| root.join("objects").join(oid);
    if let Some(oid) = path.strip_prefix("/objects/") {
        let [begun, never] = STALL.map(|name| root.join(name));
        if method == "GET" && begun.exists() {
            fs::write(begun, "begun\n")?;
            fs::read(never)?;
        }
        return Ok(match method {
            "PUT" => {
                fs::create_dir_all(root.join("objects"))?;
                fs::write(object(oid), body)?;
                (200, Vec::new())
            }
            _ => fs::read(object(oid)).map_or((404, Vec::new()), |bytes| (200, bytes)),
        });
    }
    let objects = request["objects"].as_array().unwrap().iter().map(|it| {
        let (oid, size) = (it["oid"].as_str().unwrap(), it["size"].as_u64().unwrap());
        let is_there = fs::metadata(object(oid)).is_ok_and(|it| it.len() == size);
        let action = json!({
            "href": format!("http://{host}/objects/{oid}"),
            "header": { "Authorization": "Basic YWRhOmh1bnRlcjI=" },
        });
        match (operation, is_there) {
            ("upload", true) => json!({ "oid": oid, "size": size }),
            ("download", false) => json!({
                "oid": oid, "size": size, "error": { "code": 404, "message": "Object does not exist" },
            }),
            _ => json!({ "oid": oid, "size": size, "actions": { operation: action } }),
        }
    });
    let answer = json!({ "transfer": "basic", "objects": objects.collect::<Vec<_>>() });
    Ok((200, serde_json::to_vec(&answer)?))
}

/// The body of a request, in parts or whole.
fn body(reader: &mut impl BufRead, encoding: &str, length: &str) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if encoding != "chunked" {
        reader.take(length.parse().unwrap_or(0)).read_to_end(&mut body)?;
        return Ok(body);
    }
    loop {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = u64::from_str_radix(size.trim(), 16).unwrap_or(0);
        reader.by_ref().take(size).read_to_end(&mut body)?;
        reader.read_line(&mut String::new())?;
        if size == 0 {
            return Ok(body);
        }
    }
}
