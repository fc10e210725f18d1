import "./styles/index.css";
import { App } from "./app";
import { bindKeys, bindSide, toggleSide } from "./keys";
import { Connection, type ConnectionState } from "./net/connection";
import { Code, messageOf, RpcError, type AskParams, type Hello } from "./net/protocol";
import { dial, forgetKey, keepKey, putCode, storedKey, takeCode } from "./net/session";
import { announce, note } from "./ui/announce";
import { choose } from "./ui/dialogs";
import { byId, h, keyName } from "./ui/dom";
import { showHelp } from "./ui/help";
import { bindSplitter } from "./ui/splitter";
import { applyTheme, currentTheme, cycleTheme } from "./ui/theme";

/** A page of its own in every load, also in a duplicated browser tab. */
const clientId = crypto.randomUUID();

let hello: Hello | null = null;
let farewell = "";

/** What this page proves itself with, and how it goes on when that is not known. */
const entry = {
  /** The key, or the one-time code that is exchanged for it; "" before there is one. */
  secret: "",
  /** The key of before, while a code is tried. */
  before: "",
  /** Why it waits for an address, while a code is tried. */
  why: "",
  /** What listens at the companion's port does not know the secret. */
  impostor: false,
  /** The page is going away, and may be coming back. */
  leaving: false,
};

/** Waits for a code: from the address, or from a fresh address pasted later. */
async function code(why: string): Promise<string> {
  for (;;) {
    const found = takeCode();
    if (found) return found;
    showDenied(why);
    await new Promise((resolve) => addEventListener("hashchange", resolve, { once: true }));
  }
}

/** Goes on from a code, or from what this tab has kept. */
async function enter(): Promise<void> {
  const kept = storedKey() ?? "";
  const found = takeCode();
  if (found) use(found, kept);
  else if (kept) entry.secret = kept;
  else use(await code("This page needs an address from your terminal."), "");
}

function use(found: string, before: string): void {
  entry.secret = found;
  entry.before = before;
  entry.why = "This address has been used already.";
}

function showDenied(why: string): void {
  byId("denied-why").textContent = why;
  byId("denied").hidden = false;
  byId("shell").inert = true;
  byId("denied").focus();
  announce(`${why} Run pollux page in a terminal and open the address that it prints.`, true);
}

function banner(text: string, action?: { label: string; run: () => void }): void {
  const element = byId("banner");
  if (text && element.hidden) announce(text, true);
  element.hidden = text === "";
  element.replaceChildren(h("p", { text }), action ? h("button", { type: "button", class: "button", text: action.label, testid: "banner-action", onclick: action.run }) : "");
}

function connectionChanged(app: App, connection: Connection, state: ConnectionState, before: ConnectionState): void {
  app.status.connection(state);
  if (state === "open") {
    const regained = !byId("banner").hidden;
    farewell = "";
    entry.before = entry.why = "";
    keepKey(entry.secret);
    byId("denied").hidden = true;
    byId("shell").inert = false;
    banner("");
    if (regained) announce("Connected again");
    if (hello) void app.opened(hello);
  } else if (state === "lost") {
    if (!entry.leaving) forgetKey();
    const wait = before === "open" ? 600 : 0;
    window.setTimeout(() => lost(connection), wait);
  } else if (state === "denied") {
    banner("");
    if (entry.before && !connection.barred) {
      use(entry.before, "");
      entry.why = "";
      connection.connect();
      return;
    }
    forgetKey();
    const barred = connection.barred && `Refused: ${connection.barred}.`;
    void code(barred || entry.why || "The companion does not know this page any more.").then((found) => {
      putCode(found);
      location.reload();
    });
  }
}

/** Says why nothing works, as long as it does not. */
function lost(connection: Connection): void {
  if (connection.state === "open" || connection.state === "denied") return;
  const text = entry.impostor ? impostorText : farewell || lostText;
  banner(text, { label: "Try now", run: () => connection.connect() });
}

const lostText = "The connection to the companion is lost. What you write is kept here, and the page comes back by itself. If pollux was started anew, “pollux page” prints its new address.";
const impostorText = "Another program listens where the companion was, and was told nothing. The page comes back by itself when the companion does; “pollux page” prints a new address if it has moved.";

async function ask(params: unknown): Promise<{ choice: string | null }> {
  const { title, message, choices } = params as AskParams;
  announce(title, true);
  const choice = await choose(title, message, choices.map((c, i) => ({ value: c, label: c, kind: i === 0 ? "primary" : "plain" })), "ask-dialog");
  return { choice };
}

function bindButtons(app: App): void {
  const click = (id: string, run: () => void) => byId(id).addEventListener("click", run);
  click("new-file", () => void app.files.create(false));
  click("new-folder", () => void app.files.create(true));
  click("refresh-tree", () => void app.tree.refresh());
  click("show-ignored", () => byId("show-ignored").setAttribute("aria-pressed", String(app.tree.toggleIgnored())));
  click("open-history", () => app.showHistory());
  click("open-quick", () => void app.quickOpen());
  click("open-help", () => void showHelp());
  click("empty-quick", () => void app.quickOpen());
  click("toggle-side", toggleSide);
  bindSplitter(byId("splitter"), byId("side"));
  click("status-pending", () => void app.review.step(1));
  byId("open-quick").title = `Open a file by name (${keyName("Mod-p")})`;
  byId("toggle-side").title = `Side bar (${keyName("Mod-b")})`;
  byId("empty-keys").textContent = keyName("Mod-p");
  const theme = byId("toggle-theme");
  const names = { system: "as the system", light: "light", dark: "dark" };
  const label = () => {
    theme.setAttribute("aria-label", `Theme: ${names[currentTheme()]}`);
    theme.title = `Theme: ${names[currentTheme()]}`;
  };
  label();
  click("toggle-theme", () => {
    announce(`Theme: ${names[cycleTheme()]}`);
    label();
  });
  byId("skip").addEventListener("click", (e) => {
    e.preventDefault();
    byId("main").focus();
  });
}

async function start(): Promise<void> {
  applyTheme();
  const connection: Connection = new Connection({
    dial: () =>
      dial({
        secret: entry.secret,
        proved: (key) => {
          entry.secret = key;
          entry.impostor = false;
        },
        impostor: () => {
          entry.impostor = true;
          lost(connection);
        },
      }),
    greet: async () => {
      hello = await connection.request("hello", { clientId });
    },
    answer: async (method, params) => {
      if (method === "ask") return ask(params);
      if (method === "file/saveOpen") return app.files.saveOpen((params as { path: string }).path);
      if (method === "diff/flush") return app.diffs.flush((params as { id: string }).id);
      throw new RpcError(Code.methodNotFound, `unknown method ${method}`);
    },
  });
  const app = new App(connection, clientId);
  let before: ConnectionState = "connecting";
  connection.changed.on((state) => {
    connectionChanged(app, connection, state, before);
    before = state;
  });
  connection.on("bye", ({ reason }) => (farewell = `The companion has stopped${reason ? `: ${reason}` : ""}. Start it again with “pollux serve”; this page comes back by itself.`));
  bindButtons(app);
  bindKeys(app);
  bindSide(app);
  addEventListener("focus", () => app.context.now());
  addEventListener("blur", () => app.context.now());
  document.addEventListener("visibilitychange", () => {
    app.context.now();
    if (document.visibilityState === "hidden") app.leave(); // the last word of a page that is going to be closed unseen
    if (document.visibilityState === "visible" && connection.state === "lost") connection.connect();
  });
  addEventListener("online", () => connection.state === "lost" && connection.connect());
  addEventListener("beforeunload", (e) => {
    if (app.unsaved) e.preventDefault();
    app.leave();
  });
  addEventListener("pagehide", () => {
    entry.leaving = true;
    app.leave();
  });
  addEventListener("pageshow", () => (entry.leaving = false));

  await enter();
  addEventListener("hashchange", () => {
    if (connection.state === "denied") return; // then `code` waits for it
    // A fresh address in a page that runs already is needed only where the companion is not the old one any more.
    const found = takeCode();
    if (!found || connection.state === "open") return;
    use(found, entry.secret);
    connection.connect();
  });
  connection.changed.on((state) => state === "open" && void app.restore());
  connection.connect();
}

start().catch((e: unknown) => note(messageOf(e), { kind: "problem", sticky: true }));
