// A copy of a block with prompts has the commands: neither prompts nor what they print.
"use strict";
document.querySelectorAll("code").forEach((code) => {
  if (!code.querySelector(".gp")) return;
  const commands = [];
  let more = false;
  for (const line of code.textContent.split("\n")) {
    more = line.startsWith("$ ") || (more && line.startsWith("> "));
    if (more) commands.push(line.slice(2));
  }
  code.dataset.copy = commands.join("\n");
});
