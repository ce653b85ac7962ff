/**
 * The terminal of a container, in a document of its own: xterm.js makes style elements, which the policy of the page forbids. It speaks
 * the protocol of kubectl exec, v5.channel.k8s.io. Links and the clipboard of escape sequences are off.
 */

import { FitAddon, Terminal } from "xterm";

const STDIN = 0;
const ERROR = 3;
const RESIZE = 4;

/** @param {number} channel @param {string} text */
function framed(channel, text) {
  const bytes = new TextEncoder().encode(text);
  const frame = new Uint8Array(bytes.length + 1);
  frame[0] = channel;
  frame.set(bytes, 1);
  return frame;
}

/** @param {string} text the Status at the end */
function ending(text) {
  try {
    const status = JSON.parse(text);
    return status.status === "Success" ? "the shell has ended" : status.message;
  } catch {
    return text;
  }
}

function main() {
  const { base } = JSON.parse(document.getElementById("fakekube")?.textContent ?? "{}");
  const query = new URLSearchParams(location.search);
  const terminal = new Terminal({ convertEol: true, cursorBlink: false, fontSize: 13, screenReaderMode: true, linkHandler: { activate: () => {} } });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.parser.registerOscHandler(52, () => true);
  terminal.parser.registerOscHandler(8, () => true);
  terminal.open(/** @type {HTMLElement} */ (document.getElementById("terminal")));
  const place = ["namespace", "name"].map((name) => encodeURIComponent(query.get(name) ?? "")).join("/");
  const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}${base}pods/${place}/terminal?container=${encodeURIComponent(query.get("container") ?? "")}`, ["v5.channel.k8s.io"]);
  socket.binaryType = "arraybuffer";
  const resize = () => {
    fit.fit();
    if (socket.readyState === WebSocket.OPEN) socket.send(framed(RESIZE, JSON.stringify({ Width: terminal.cols, Height: terminal.rows })));
  };
  let early = ""; // what is typed before the connection is open
  socket.addEventListener("open", () => {
    resize();
    terminal.focus();
    if (early) socket.send(framed(STDIN, early));
  });
  socket.addEventListener("message", ({ data }) => {
    const bytes = new Uint8Array(data);
    if (bytes[0] === ERROR) terminal.write(`\r\n[${ending(new TextDecoder().decode(bytes.subarray(1)))}]\r\n`);
    else terminal.write(bytes.subarray(1));
  });
  socket.addEventListener("close", () => terminal.write("\r\n[closed]\r\n"));
  terminal.onData((text) => {
    if (socket.readyState === WebSocket.CONNECTING) early += text;
    else if (socket.readyState === WebSocket.OPEN) socket.send(framed(STDIN, text));
  });
  addEventListener("resize", resize);
  Object.assign(globalThis, { terminal });
}

main();
