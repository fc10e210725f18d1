import { announce } from "../ui/announce";
import { dialogFrame, modal } from "../ui/dialogs";
import { h } from "../ui/dom";
import { DiffView } from "../review/diffview";
import { bindDiffKeys } from "../review/keys";
import type { Doc, Documents } from "./documents";

/** The bar above an editor whose file changed on disk while it has unsaved changes. */
export class ConflictBar {
  private announced: Doc["conflict"] = null;

  constructor(
    private readonly element: HTMLElement,
    private readonly documents: Documents,
    private readonly save: (doc: Doc, force: boolean) => void,
    private readonly close: (doc: Doc) => void,
    private readonly focusEditor: () => void,
  ) {}

  /** Shows the shown document's conflict, or nothing. */
  show(doc: Doc | null): void {
    const conflict = doc?.conflict ?? null;
    this.element.hidden = !conflict;
    if (!doc || !conflict) {
      this.announced = null;
      return;
    }
    if (conflict === this.announced) return;
    this.announced = conflict;
    const button = (label: string, testid: string, onclick: () => void) => h("button", { type: "button", class: "button", text: label, testid, onclick });
    if (conflict.disk) {
      const text = `${doc.name} has changed on disk, and you have unsaved changes.`;
      this.element.replaceChildren(
        h("p", { text }),
        button("Compare", "conflict-compare", () => void this.compare(doc)),
        button("Keep mine", "conflict-mine", () => this.settle(() => this.documents.keepMine(doc), "Kept yours; save to write it")),
        button("Take the disk’s", "conflict-disk", () => this.settle(() => this.documents.takeDisk(doc), "Took the text on disk; undo brings yours back")),
      );
      announce(text, true);
    } else {
      const text = conflict.why === undefined ? `${doc.name} is gone from the disk.` : `${doc.name} on disk cannot be shown any more (${conflict.why}); this is its text from before.`;
      this.element.replaceChildren(
        h("p", { text }),
        button(conflict.why === undefined ? "Save it again" : "Save this instead", "conflict-restore", () => this.save(doc, true)),
        button("Close it", "conflict-close", () => this.close(doc)),
      );
      announce(text, true);
    }
  }

  /** Ends the conflict; the pressed button goes with the bar, so the editor gets the focus. */
  private settle(run: () => void, said: string): void {
    run();
    announce(said);
    this.focusEditor();
  }

  /** A diff of the disk's text and the buffer's, in which the latter can still be edited. */
  private async compare(doc: Doc): Promise<void> {
    const { conflict } = doc;
    const disk = conflict?.disk;
    if (!disk) return;
    const view = new DiffView({ path: doc.path, old: disk.content, text: doc.state.doc.toString(), editable: true, oldLabel: "On disk, read-only", newLabel: "Yours, editable" }, innerWidth < 900 ? "unified" : "side");
    const dialog = dialogFrame(`${doc.name}: the disk’s text and yours`, "compare-dialog");
    dialog.classList.add("wide");
    const finish = (value: string, label: string, kind: string) => h("button", { type: "button", class: `button ${kind}`, text: label, testid: `compare-${value}`, onclick: () => dialog.close(value) });
    dialog.append(
      h("div", { class: "diff-labels" }, h("span", { text: "On disk" }), h("span", { text: "Yours · editable" })),
      h("div", { class: "diff-body" }, view.element),
      h("div", { class: "dialog-buttons" }, finish("mine", "Keep what is on the right", "primary"), finish("disk", "Take the disk’s", "plain"), finish("", "Decide later", "plain")),
    );
    bindDiffKeys(dialog, { next: () => view.go(1), previous: () => view.go(-1), keep: () => view.keepHere(), revert: () => view.revertHere() });
    const answer = modal(dialog);
    view.goToFirst();
    view.focus();
    const value = await answer;
    if (value === "mine") {
      doc.setText(view.text, true);
      // The disk may have changed again: that the user has not seen.
      if (doc.conflict === conflict) this.documents.keepMine(doc);
    } else if (value === "disk" && doc.conflict === conflict) {
      this.documents.takeDisk(doc);
    }
    view.destroy();
    if (value) this.focusEditor();
  }
}
