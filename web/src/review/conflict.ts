import { RangeSetBuilder, StateEffect, StateField, type Text } from "@codemirror/state";
import { Decoration, EditorView, type DecorationSet } from "@codemirror/view";
import type { Place } from "../net/protocol";

/** Marks these lines as changed on disk, too, and takes the marks of before away. */
export const markPlaces = StateEffect.define<readonly Place[]>();

function marks(doc: Text, places: readonly Place[]): DecorationSet {
  const set = new RangeSetBuilder<Decoration>();
  for (const { start, end, text } of places) {
    const title = text === "" ? "Deleted on disk" : `On disk: ${text.replace(/\n$/, "")}`;
    for (let line = start + 1; line <= Math.max(end, start + 1) && line <= doc.lines; line++) {
      const { from } = doc.line(line);
      set.add(from, from, Decoration.line({ class: "cm-conflict", attributes: { title } }));
    }
  }
  return set.finish();
}

/** The marks beside the lines of a conflict; the text itself has none (SPEC F-13). */
export const conflictMarks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(value, tr) {
    for (const e of tr.effects) if (e.is(markPlaces)) return marks(tr.state.doc, e.value);
    return value.map(tr.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});
