import { dirName, displayPath, nameOf } from "../core/paths";
import type { Connection } from "../net/connection";
import { messageOf, type HistoryEntry, type Root } from "../net/protocol";
import { note } from "../ui/announce";
import { confirm } from "../ui/dialogs";
import { h, iconButton } from "../ui/dom";
import { DiffView, type Layout } from "./diffview";
import { bindDiffKeys } from "./keys";
import { narrow } from "./pane";

const outcomes: Record<string, string> = { accepted: "accepted", rejected: "rejected", withdrawn: "answered in the terminal" };

/** The history (SPEC F-12): past proposals, each as a read-only diff of what was and what became of it. */
export class HistoryPanel {
  private readonly list = h("ul", { class: "history-list", testid: "history-list" });
  private readonly head = h("header", { class: "review-head" });
  private readonly labels = h("div", { class: "diff-labels", "aria-hidden": "true" });
  private readonly body = h("div", { class: "diff-body" });
  private view: DiffView | null = null;
  private shown = "";

  constructor(
    element: HTMLElement,
    private readonly connection: Connection,
    private readonly roots: () => readonly Root[],
  ) {
    const refresh = iconButton("refresh", "Look again", "history-refresh", () => void this.refresh());
    element.append(
      h("div", { class: "history-side" }, h("div", { class: "side-head" }, h("h2", { text: "History" }), refresh), this.list),
      h("div", { class: "history-main" }, this.head, this.labels, this.body),
    );
    connection.on("history/changed", () => {
      if (element.checkVisibility()) void this.refresh();
    });
    new ResizeObserver(() => this.fit()).observe(this.body);
    bindDiffKeys(this.body, { next: () => this.view?.go(1), previous: () => this.view?.go(-1) });
  }

  /** Reads the list anew. */
  async refresh(): Promise<void> {
    try {
      const { entries } = await this.connection.request("history/list", {});
      this.draw(entries ?? []);
    } catch (e) {
      note(messageOf(e), { kind: "problem" });
    }
  }

  private draw(entries: HistoryEntry[]): void {
    const active = document.activeElement;
    const focused = active instanceof HTMLElement && this.list.contains(active) ? active.dataset.id : undefined;
    if (entries.length === 0) {
      this.list.replaceChildren(h("li", { class: "empty", text: "No proposals yet." }));
    } else {
      this.list.replaceChildren(...entries.map((e) => this.line(e)));
    }
    if (focused !== undefined) this.list.querySelector<HTMLElement>(`[data-id="${CSS.escape(focused)}"]`)?.focus();
    if (this.view) return;
    if (entries[0]) void this.open(entries[0]);
    else this.head.replaceChildren(h("p", { class: "dim", text: "Proposals and what became of them are kept here." }));
  }

  private line(entry: HistoryEntry): HTMLElement {
    const when = new Date(entry.at);
    const time = when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    const day = when.toDateString() === new Date().toDateString() ? "" : `${when.toLocaleDateString([], { day: "numeric", month: "short" })} `;
    return h(
      "li",
      {},
      h(
        "button",
        { type: "button", class: "queue-item", "aria-current": entry.id === this.shown ? "true" : null, testid: "history-item", "data-id": entry.id, title: entry.path, onclick: () => void this.open(entry) },
        h("span", { class: "queue-name" }, h("i", { class: `outcome outcome-${entry.outcome}` }), nameOf(entry.path)),
        h("span", { class: "queue-detail", text: `${day}${time} · ${outcomes[entry.outcome] ?? entry.outcome}${entry.edited ? ", edited" : ""}${entry.undone ? ", undone" : ""} · ${entry.owner}` }),
      ),
    );
  }

  private async open(entry: HistoryEntry): Promise<void> {
    try {
      const texts = await this.connection.request("history/read", { id: entry.id });
      const right = entry.outcome === "accepted" ? texts.final : texts.final || texts.new;
      this.view?.destroy();
      const label = entry.outcome === "accepted" ? "Accepted" : "Proposal";
      this.view = new DiffView({ path: entry.path, old: texts.old, text: right, editable: false, oldLabel: "Before, read-only", newLabel: `${label}, read-only` }, this.layout());
      this.labels.replaceChildren(h("span", { text: "Before" }), h("span", { text: label }));
      this.shown = entry.id;
      this.body.replaceChildren(this.view.element);
      this.fit();
      this.view.goToFirst();
      this.drawHead(entry);
      this.list.querySelectorAll<HTMLElement>(".queue-item").forEach((b) => (b.dataset.id === entry.id ? b.setAttribute("aria-current", "true") : b.removeAttribute("aria-current")));
    } catch (e) {
      note(messageOf(e), { kind: "problem" });
    }
  }

  private fit(): void {
    if (!this.view || this.body.clientWidth === 0) return;
    this.view.setLayout(this.layout());
    this.labels.hidden = this.view.layout !== "side";
  }

  private layout(): Layout {
    return this.body.clientWidth < narrow - 200 ? "unified" : "side";
  }

  private drawHead(entry: HistoryEntry): void {
    const undo = h("button", { type: "button", class: "button", text: "Undo this change", testid: "history-undo", disabled: !entry.undoable, onclick: () => void this.undo(entry) });
    this.head.replaceChildren(
      h(
        "div",
        { class: "review-what" },
        h("div", { class: "review-title" }, h("h2", {}, h("bdi", { text: nameOf(entry.path) }), " ", h("span", { class: "dim", text: displayPath(dirName(entry.path), this.roots()) }))),
        h("p", { class: "review-asker" }, h("strong", { text: entry.owner }), ` proposed it; ${outcomes[entry.outcome] ?? entry.outcome}${entry.edited ? " with edits" : ""}${entry.undone ? ", undone since" : ""}`),
      ),
      h("div", { class: "review-answers" }, undo),
    );
  }

  private async undo(entry: HistoryEntry): Promise<void> {
    const name = nameOf(entry.path);
    if (!(await confirm("Undo this change?", `${name} gets the text back that it had before. Nothing is written if the file has changed since.`, "Undo", "primary"))) return;
    try {
      await this.connection.request("history/undo", { id: entry.id });
      note(`${name} has its earlier text again.`);
      await this.refresh();
    } catch (e) {
      note(messageOf(e), { kind: "problem" });
    }
  }
}
