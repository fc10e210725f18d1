import { getChunks } from "@codemirror/merge";
import { RangeSet, StateEffect, StateField, type EditorState, type Extension } from "@codemirror/state";
import { EditorView, gutter, GutterMarker, type BlockInfo } from "@codemirror/view";
import { h, icon } from "../ui/dom";
import type { Hunk } from "./hunks";

/** A stretch of the proposal that the user has agreed to. */
interface Kept {
  from: number;
  to: number;
}

/** Marks or unmarks the hunk of this range as agreed to. */
export const setKept = StateEffect.define<{ from: number; to: number; kept: boolean }>({
  map: ({ from, to, kept }, changes) => ({ from: changes.mapPos(from), to: changes.mapPos(to), kept }),
});

const keptField = StateField.define<readonly Kept[]>({
  create: () => [],
  update(value, tr) {
    let next = value;
    if (tr.docChanged && next.length > 0) {
      // An agreement ends when its text is touched: the user agreed to something else.
      next = next
        .filter((k) => tr.changes.touchesRange(k.from, k.to) === false)
        .map((k) => ({ from: tr.changes.mapPos(k.from, 1), to: tr.changes.mapPos(k.to, -1) }));
    }
    for (const e of tr.effects) {
      if (!e.is(setKept)) continue;
      next = next.filter((k) => k.from !== e.value.from);
      if (e.value.kept) next = [...next, { from: e.value.from, to: e.value.to }];
    }
    return next;
  },
});

/** Whether the user has agreed to this hunk as it stands. */
export function isKept(state: EditorState, hunk: Hunk): boolean {
  const from = Math.min(hunk.fromB, state.doc.length);
  return state.field(keptField, false)?.some((k) => k.from === from) ?? false;
}

/** What the buttons beside a hunk do. */
export interface HunkActions {
  keep(hunk: Hunk): void;
  revert(hunk: Hunk): void;
}

class HunkMarker extends GutterMarker {
  override elementClass = "cm-hunk";

  constructor(
    private readonly hunk: Hunk,
    private readonly kept: boolean,
    private readonly actions: HunkActions,
  ) {
    super();
  }

  override eq(other: HunkMarker): boolean {
    return this.hunk === other.hunk && this.kept === other.kept;
  }

  override toDOM(): Node {
    // Not in the tab order: gutters are hidden from screen readers; the same actions have keys and buttons in the toolbar.
    const button = (name: string, title: string, testid: string, run: () => void) =>
      h("button", { type: "button", tabindex: -1, title, class: `hunk-button hunk-${name}`, testid, onmousedown: (e: Event) => e.preventDefault(), onclick: run }, icon(name));
    return h(
      "div",
      { class: `hunk-buttons${this.kept ? " kept" : ""}`, testid: "hunk" },
      button("undo", "Revert this change (Alt+Backspace)", "hunk-revert", () => this.actions.revert(this.hunk)),
      button("check", this.kept ? "Kept; click to decide again" : "Keep this change (Alt+Enter)", "hunk-keep", () => this.actions.keep(this.hunk)),
    );
  }
}

/** The gutter with each hunk's buttons, and the memory of what was agreed to. */
export function hunkGutter(actions: HunkActions): Extension {
  const marker = (view: EditorView, line: BlockInfo) => {
    const chunks = getChunks(view.state)?.chunks ?? [];
    const { length } = view.state.doc;
    let low = 0;
    let high = chunks.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const chunk = chunks[middle];
      if (!chunk) break;
      const at = view.state.doc.lineAt(Math.min(chunk.fromB, length)).from;
      if (at === line.from) return new HunkMarker(chunk, isKept(view.state, chunk), actions);
      if (at < line.from) low = middle + 1;
      else high = middle - 1;
    }
    return null;
  };
  return [
    keptField,
    gutter({
      class: "cm-hunk-gutter",
      lineMarker: marker,
      lineMarkerChange: (u) =>
        getChunks(u.startState)?.chunks !== getChunks(u.state)?.chunks || u.startState.field(keptField, false) !== u.state.field(keptField, false),
      markers: () => RangeSet.empty,
    }),
  ];
}
