import { dirName, displayPath, nameOf } from "../core/paths";
import type { Root } from "../net/protocol";
import { h } from "../ui/dom";
import type { Diff } from "./diffs";

/** The list of waiting proposals in the side bar. */
export class Queue {
  constructor(
    private readonly section: HTMLElement,
    private readonly list: HTMLElement,
    private readonly count: HTMLElement,
    private readonly choose: (diff: Diff) => void,
  ) {}

  /** Draws the list; it is hidden when nothing waits. */
  show(diffs: readonly Diff[], shown: Diff | null, roots: readonly Root[]): void {
    this.section.hidden = diffs.length === 0;
    this.count.textContent = String(diffs.length);
    const focused = document.activeElement instanceof HTMLElement && this.list.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    this.list.replaceChildren(...diffs.map((d) => this.line(d, d === shown, roots)));
    if (focused) this.list.querySelector<HTMLElement>(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  }

  private line(diff: Diff, shown: boolean, roots: readonly Root[]): HTMLElement {
    const { info } = diff;
    const folder = displayPath(dirName(info.path), roots);
    const flags = [info.isNew ? "new file" : "", info.edited ? "edited" : ""].filter(Boolean).join(", ");
    return h(
      "li",
      {},
      h(
        "button",
        { type: "button", class: "queue-item", "aria-current": shown ? "true" : null, "data-id": info.id, testid: "queue-item", title: info.path, onclick: () => this.choose(diff) },
        h("span", { class: "queue-name", text: nameOf(info.path) }),
        h("span", { class: "queue-detail", text: [info.owner, flags, folder].filter(Boolean).join(" · ") }),
      ),
    );
  }
}
