//! A Chromium without a window, which is controlled through a pipe, by messages of the DevTools protocol.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::needs;

/// The programs that Chromium is.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The descriptors that Chromium reads messages from and writes them to. A Chromium that hangs is ended.
const SCRIPT: &str =
    r#"exec timeout -k 5 300 "$0" "$@" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null"#;

/// The time that a page may take to do something.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Chromium {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _home: TempDir,
    session: Option<String>,
    last: u64,
    events: Vec<Value>,
    runs_scripts: bool,
}

impl Chromium {
    /// Starts one, with an empty page. Where none is installed, the answer is `None`, and told.
    pub(super) fn start() -> Option<Self> {
        let Some(name) = NAMES.iter().find(|name| needs::is_there(name)) else {
            needs::lacks("chromium");
            return None;
        };
        let home = TempDir::new().unwrap();
        let profile = format!("--user-data-dir={}", home.path().display());
        let mut process = Command::new("sh")
            .args(["-c", SCRIPT, name, "--headless", "--no-sandbox", "--disable-gpu"])
            .args(["--no-first-run", "--disable-dev-shm-usage", "--remote-debugging-pipe"])
            .arg(profile)
            .env("HOME", home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (session, last, events) = (None, 0, Vec::new());
        let runs_scripts = true;
        let mut chromium =
            Self { process, input, output, _home: home, session, last, events, runs_scripts };
        let target = chromium.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = chromium.call("Target.attachToTarget", &attach);
        chromium.session = Some(session["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            chromium.call(&format!("{domain}.enable"), &json!({}));
        }
        // Without a window, no page has the focus.
        chromium.call("Emulation.setFocusEmulationEnabled", &json!({"enabled": true}));
        Some(chromium)
    }

    fn read(&mut self) -> Value {
        let mut message = Vec::new();
        self.output.read_until(0, &mut message).unwrap();
        assert_eq!(message.pop(), Some(0), "Chromium has ended");
        serde_json::from_slice(&message).unwrap()
    }

    /// Sends a message, and returns the answer. Events that come before are kept.
    #[track_caller]
    pub(super) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.input.write_all(message.to_string().as_bytes()).unwrap();
        self.input.write_all(&[0]).unwrap();
        self.input.flush().unwrap();
        loop {
            let mut message = self.read();
            if message["id"] == self.last {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    /// Opens a page in a window of this size, light or dark.
    pub(super) fn open(&mut self, file: &Path, size: [u32; 2], scheme: &str) {
        self.open_any(file, size, scheme);
        if !self.runs_scripts {
            return;
        }
        self.is("document.body.classList.contains('scripted')");
        self.is("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))");
    }

    /// Opens any file so.
    pub(super) fn open_any(&mut self, file: &Path, [width, height]: [u32; 2], scheme: &str) {
        let screen =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &screen);
        let scheme = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", &scheme);
        // Those of pages before it.
        self.events.retain(|event| event["method"] != "Page.loadEventFired");
        self.call("Page.navigate", &json!({"url": format!("file://{}", file.display())}));
        while self.events.iter().all(|event| event["method"] != "Page.loadEventFired") {
            let event = self.read();
            self.events.push(event);
        }
    }

    /// Lets pages that are opened from now on execute no scripts.
    pub(super) fn without_scripts(&mut self) {
        self.call("Emulation.setScriptExecutionDisabled", &json!({"value": true}));
        self.runs_scripts = false;
    }

    /// The page as it is printed, a PDF.
    pub(super) fn printed(&mut self) -> Vec<u8> {
        let printed = self.call("Page.printToPDF", &json!({"printBackground": true}));
        data_encoding::BASE64.decode(printed["data"].as_str().unwrap().as_bytes()).unwrap()
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub(super) fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", &asked);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// Waits until an expression is true in the page, which may take a few turns of its loop.
    #[track_caller]
    pub(super) fn is(&mut self, expression: &str) {
        let begin = Instant::now();
        while self.value(expression) != true {
            assert!(begin.elapsed() < PATIENCE, "{expression}");
        }
    }

    /// Presses the mouse in the middle of the element that an expression is, as a user does who has scrolled to it.
    #[track_caller]
    pub(super) fn click(&mut self, element: &str) {
        let place = format!(
            "(() => {{ const it = {element}; it.scrollIntoView({{ block: 'center' }}); \
             const box = it.getBoundingClientRect(); \
             return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        );
        let place = self.value(&place);
        self.click_at(place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    }

    /// Presses the mouse at a place of the window.
    pub(super) fn click_at(&mut self, x: f64, y: f64) {
        for (kind, buttons) in [("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons,
                "clickCount": 1});
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Types a text into an element.
    #[track_caller]
    pub(super) fn type_into(&mut self, element: &str, text: &str) {
        self.value(&format!("{element}.focus()"));
        self.call("Input.insertText", &json!({"text": text}));
    }

    /// Presses a key.
    pub(super) fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            _ => panic!("no code of the key {key}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event = json!({"type": kind, "key": key, "code": key, "text": text,
                "windowsVirtualKeyCode": code});
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Returns the troubles so far: errors, anything printed to the console, and requests for anything but the page.
    pub(super) fn troubles(&mut self) -> Vec<String> {
        self.value("0");
        let is_trouble = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded") => true,
            Some("Network.requestWillBeSent") => {
                let url = event["params"]["request"]["url"].as_str().unwrap();
                !(url.starts_with("file://") && url.ends_with("/page.html"))
            }
            _ => false,
        };
        self.events.iter().filter(is_trouble).map(ToString::to_string).collect()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // `timeout` passes the signal on to all that it has started.
        let process = rustix::process::Pid::from_child(&self.process);
        let _gone = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        drop(self.process.wait());
    }
}
