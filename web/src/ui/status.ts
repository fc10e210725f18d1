import { languageOf } from "../editor/languages";
import { plain } from "../editor/setup";
import { positionAt } from "../editor/pane";
import type { Doc } from "../files/documents";
import type { ConnectionState } from "../net/connection";
import type { Session, Trouble } from "../net/protocol";
import { announce, note } from "./announce";
import { dialogFrame, modal } from "./dialogs";
import { byId, h } from "./dom";
import { untold } from "./sessions";

const stateNames: Record<ConnectionState, string> = {
  connecting: "Connecting…",
  open: "Connected",
  lost: "Reconnecting…",
  denied: "Not connected",
};

const eols: Record<string, string> = { lf: "LF", crlf: "CRLF", cr: "CR", mixed: "Mixed line ends" };

/** The status bar. */
export class Status {
  private sessions: Session[] = [];
  private troubles: Trouble[] = [];
  private dismiss: (() => void)[] = [];

  constructor(private readonly about: (sessions: Session[], paused: boolean) => void) {
    byId("status-troubles").addEventListener("click", () => void this.showTroubles());
    byId("status-sessions").addEventListener("click", () => this.about(this.sessions, this.paused));
  }

  /** Whether agents are told nothing. */
  get paused(): boolean {
    return this.troubles.some((t) => t.id === "paused");
  }

  /** Writes the connection's state. */
  connection(state: ConnectionState): void {
    const element = byId("status-connection");
    element.dataset.state = state;
    element.lastElementChild?.replaceChildren(stateNames[state]);
  }

  /** Writes how many CLIs are connected, and says so when that changes. */
  setSessions(sessions: Session[] | null, quiet = false): void {
    const before = this.sessions.length;
    this.sessions = sessions ?? [];
    const { length } = this.sessions;
    const kept = this.sessions.filter((s) => untold(s));
    const who = length === 0 ? "No CLI connected" : length === 1 ? (this.sessions[0]?.label ?? "1 CLI") : `${length} CLIs`;
    byId("status-sessions").textContent = kept.length > 0 ? `${who} · not told: ${length === 1 ? "what you look at" : kept.map((s) => s.label).join(", ")}` : who;
    if (!quiet && length !== before) announce(length > before ? "A CLI has connected" : "A CLI has left");
  }

  /** Writes what the companion does without, and notes what is new. */
  setTroubles(troubles: Trouble[]): void {
    const known = new Set(this.troubles.map((t) => t.what));
    if (troubles.length === 0) for (const away of this.dismiss.splice(0)) away();
    this.troubles = troubles;
    const element = byId("status-troubles");
    element.hidden = troubles.length === 0;
    element.textContent = troubles.length === 1 ? "1 problem" : `${troubles.length} problems`;
    for (const t of troubles) {
      if (!known.has(t.what)) this.dismiss.push(note(`${t.what}. ${t.do}`, { kind: "problem", sticky: true }));
    }
  }

  private async showTroubles(): Promise<void> {
    const lines = this.troubles.map((t) => h("li", {}, h("span", { text: `${t.what}. ${t.why}. ${t.do}` })));
    const close = h("button", { type: "button", class: "button", text: "Close", onclick: () => dialog.close() });
    const dialog = dialogFrame("Problems", "troubles-dialog", h("ul", { class: "rules" }, ...lines), h("div", { class: "dialog-buttons" }, close));
    const done = modal(dialog);
    close.focus();
    await done;
  }

  /** Writes what is known of the shown document. */
  document(doc: Doc | null): void {
    const write = (id: string, text: string) => {
      const element = byId(id);
      if (element.textContent !== text) element.textContent = text;
    };
    if (!doc) {
      for (const id of ["status-position", "status-eol", "status-language"]) write(id, "");
      return;
    }
    const { main, ranges } = doc.state.selection;
    const { line, character } = positionAt(doc.state, main.head);
    const chosen = ranges.reduce((n, r) => n + r.to - r.from, 0);
    const several = ranges.length > 1 ? `${ranges.length} cursors` : `Ln ${line + 1}, Col ${character + 1}`;
    write("status-position", chosen > 0 ? `${several} (${chosen} selected)` : several);
    const text = doc.state.doc;
    const noFinal = text.length > 0 && text.line(text.lines).length > 0;
    write("status-eol", [eols[doc.eol] ?? doc.eol, doc.bom ? "BOM" : "", noFinal ? "no final newline" : "", doc.readOnly ? "read-only" : ""].filter(Boolean).join(" · "));
    write("status-language", doc.state.facet(plain) ? "Plain (large file)" : (languageOf(doc.path)?.name ?? "Plain text"));
  }

  /** Writes how many proposals wait. */
  pending(count: number): void {
    const element = byId("status-pending");
    element.hidden = count === 0;
    element.textContent = count === 1 ? "1 proposal waits" : `${count} proposals wait`;
  }
}
